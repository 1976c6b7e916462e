/** @brief Keys from the operating system. */
#pragma once

// Proof: docs/proofs/samplers.md

#include "plugin_cpp/random/chacha20.h"  // for ChaChaKey

namespace xgboost::dp {
/**
 * @brief A fresh key from the operating system's cryptographic generator.
 *
 * Blocks until that generator is seeded. Any failure is fatal: there is no weaker generator to fall
 * back to, as noise that can be guessed is no noise.
 */
[[nodiscard]] ChaChaKey SystemKey();
}  // namespace xgboost::dp
