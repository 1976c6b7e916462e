/**
 * What compilers and processors have for fast loops: instructions that are wider than those that
 * all of a kind have, and early transfers to the caches.
 *
 * Results are the same: every operation is rounded on its own (-ffp-contract=off), in an order that
 * the width does not change.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for size_t, __GLIBC__: other C libraries choose no functions when they load

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define XGB_DP_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define XGB_DP_WIDE
#endif  // defined(__x86_64__)

namespace xgboost::dp {
/** @brief What one transfer to the caches brings. */
inline constexpr std::size_t kBytesOfLine = 64;

/** @brief Start the transfer of an address to the caches, where the compiler has a way. */
inline void Prefetch([[maybe_unused]] void const* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif  // defined(__GNUC__)
}
}  // namespace xgboost::dp
