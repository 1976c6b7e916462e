/**
 * What a linear start of two classes follows from: candidates, released before the first tree, and
 * sums of products of the scores of each row with one another and with its label.
 *
 * A column of numbers has a score of each of its bins, a column of categories one coordinate of
 * each category. All are public. The scores of a row are shrunk to a bounded norm, so that its
 * products are a vector of a bounded norm.
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
/** @brief Whether a request before the first tree is for one of these. */
[[nodiscard]] bool IsOfLinearStart(std::string const& request);

/**
 * @brief Release candidates or products; see ReleaseBeforeTrees.
 *
 * @param request JSON, of kind "candidates" (candidates and features of the plan) or "products"
 *        (sums, constant_score, and of each scored column index, categories, cuts and scores).
 *
 * @return JSON: the quantile tree of each column, or the noisy sums; and the draw.
 */
[[nodiscard]] std::string ReleaseLinearStart(Context const* ctx,
                                             std::shared_ptr<DMatrix> const& p_fmat,
                                             std::shared_ptr<Persons const> const& persons,
                                             std::string const& request);
}  // namespace xgboost::dp
