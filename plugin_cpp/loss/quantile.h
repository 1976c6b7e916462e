/**
 * The check loss of one or several quantiles, smoothed by Epanechnikov's kernel.
 *
 * Its gradient is a probability less a level, its Hessian a density, so that leaves can take Newton
 * steps. The kernel has a public width, which is the unit of margins, and falls over the rounds.
 *
 * The first rounds may fit the median, whatever the levels are: it has the least bound of a row,
 * and what moves it moves all quantiles. All outputs start at one number and have the same trees
 * there. From then on each goes its own way.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr

#include "plugin_cpp/loss/loss.h"  // for Loss, LabelRange

namespace xgboost::dp {
[[nodiscard]] std::shared_ptr<Loss const> ReadQuantileLoss(JsonReader const& in, LabelRange range);
}  // namespace xgboost::dp
