/**
 * Logistic loss of a label that is a share, anywhere in [0, 1], and of several labels of 0 and 1.
 *
 * All labels of a row have one bound together, by a factor of the row's predictions alone.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr

#include "plugin_cpp/loss/loss.h"  // for Loss, LabelRange

namespace xgboost::dp {
[[nodiscard]] std::shared_ptr<Loss const> ReadLogisticLoss(JsonReader const& in, LabelRange range);
[[nodiscard]] std::shared_ptr<Loss const> ReadLabelsLoss(JsonReader const& in, LabelRange range);
}  // namespace xgboost::dp
