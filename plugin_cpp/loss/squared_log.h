/**
 * Squared error of log(1 + prediction), in half widths of the declared range. Residuals are clipped
 * on the scale of the logarithm.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr

#include "plugin_cpp/loss/loss.h"  // for Loss, LabelRange

namespace xgboost::dp {
[[nodiscard]] std::shared_ptr<Loss const> ReadSquaredLogLoss(JsonReader const& in,
                                                             LabelRange range);
}  // namespace xgboost::dp
