/**
 * Logistic loss of labels that are shares, anywhere in [0, 1].
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr

#include "plugin_cpp/loss/loss.h"  // for Loss, LabelRange

namespace xgboost::dp {
[[nodiscard]] std::shared_ptr<Loss const> ReadLogisticLoss(JsonReader const& in, LabelRange range);
}  // namespace xgboost::dp
