/**
 * The pseudo-Huber loss of a public slope, which is the unit of margins: squared near the label and
 * absolute far from it.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr

#include "plugin_cpp/loss/loss.h"  // for Loss, LabelRange

namespace xgboost::dp {
[[nodiscard]] std::shared_ptr<Loss const> ReadPseudoHuberLoss(JsonReader const& in,
                                                              LabelRange range);
}  // namespace xgboost::dp
