/**
 * Private intercept: noisy sums of the labels, released before training.
 *
 * XGBoost would store the exact mean of the labels as `base_score`.
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
 * @param request JSON: unit, kind ("binary", "regression", "targets" for a sum of each of several
 * labels, "multiclass", "cells" for counts of labels in cells of their range, "range" for the same
 * of cells between `edges`, or "rows" for their number alone), sigma2, shift and the domain. Where
 * it names the number of `columns`, which needs the unit "row", a sum follows of the share of its
 * cells that each row has: those that are neither 0 nor missing. The kind "columns" has other sums:
 * of cells above 0, of the rows of label 0 column by column and then of label 1, in which a row
 * with k such cells adds 1 over the root of k to each of them. The second release of a plan says
 * `again`, and is refused for other persons than the first.
 *
 * @return JSON: the noisy sums, in units of 2^-shift, and the draw (absent without noise).
 */
[[nodiscard]] std::string ReleaseIntercept(Context const* ctx,
                                           std::shared_ptr<DMatrix> const& p_fmat,
                                           std::shared_ptr<Persons const> const& persons,
                                           std::string const& request);
}  // namespace xgboost::dp
