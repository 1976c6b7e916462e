/**
 * Deviances of means on the log scale whose variance is a power of the mean: Poisson (1), Tweedie
 * (between), gamma (2).
 *
 * Predictions mu are in units of the released mean of labels, m. Labels are cut at a cap that
 * follows it, and are in units of their mean after the cut, c: so the trees fit what a prediction
 * is to the mean, however few and large the amounts are, and the mean itself stays m. The Hessian
 * is the expected one, which no label moves. With a = mu / m: g = (a - min(y, cap) / c) a^(1 - p),
 * h = a^(2 - p), both in units of cap / c, the largest label.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr

#include "plugin_cpp/loss/loss.h"  // for Loss, LabelRange

namespace xgboost::dp {
[[nodiscard]] std::shared_ptr<Loss const> ReadPowerLoss(JsonReader const& in, LabelRange range);
}  // namespace xgboost::dp
