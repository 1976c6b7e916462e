/**
 * The likelihood of accelerated failure times: the logarithm of a time is the margin plus a scaled
 * error of a normal, logistic or extreme law. A label is an interval in which the time lies.
 *
 * Pairs are derivatives by the margin in units of the scale, z = (log t - F) / scale.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr

#include "plugin_cpp/loss/loss.h"  // for Loss, LabelRange

namespace xgboost::dp {
[[nodiscard]] std::shared_ptr<Loss const> ReadSurvivalLoss(JsonReader const& in, LabelRange range);
}  // namespace xgboost::dp
