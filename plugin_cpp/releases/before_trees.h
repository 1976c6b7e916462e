/**
 * What is released before the first tree: the number of rows, sums of their labels, and what each
 * column says of the label. XGBoost would store the exact mean of the labels as `base_score`.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr
#include <string>  // for string

#include "plugin_cpp/rows/persons.h"  // for Persons
#include "xgboost/context.h"          // for Context
#include "xgboost/data.h"             // for DMatrix

namespace xgboost::dp {
/**
 * @brief Release the sums that the request asks for.
 *
 * @param persons Whom the rows belong to, of which each adds the mean of its rows; null where each
 * row counts one. The trees of the plan that the request names are refused for others.
 * @param request JSON: unit, sigma2, shift and the kind of the sums: "rows" (CountRows), "binary",
 * "regression" or "targets" (SumLabels), "multiclass" (CountClasses), "cells" (CountCells), "range"
 * (CountBetween) or "columns" (CellsByColumn), each with its domain. Where another kind names the
 * number of `columns`, which needs the unit "row", PresentCells follows. The second release of a
 * plan says `again`, and is refused for other persons than the first.
 *
 * @return JSON: the noisy sums, in units of 2^-shift, and the draw (absent without noise).
 */
[[nodiscard]] std::string ReleaseBeforeTrees(Context const* ctx,
                                             std::shared_ptr<DMatrix> const& p_fmat,
                                             std::shared_ptr<Persons const> const& persons,
                                             std::string const& request);
}  // namespace xgboost::dp
