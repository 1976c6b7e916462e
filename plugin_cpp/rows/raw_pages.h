/**
 * The rows of a DMatrix for private training, with at most one entry per (row, feature).
 *
 * A sparse row of a DMatrix may contain a column twice. It would count twice in a histogram and
 * break every sensitivity, and XGBoost's prediction for it depends on other rows. Such a row is
 * refused.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <cstdint>     // for int64_t, uint64_t
#include <functional>  // for function

#include "plugin_cpp/plan/plan.h"        // for Plan
#include "plugin_cpp/release/masking.h"  // for Masking
#include "xgboost/context.h"             // for Context
#include "xgboost/data.h"                // for SparsePage, DMatrix

namespace xgboost::dp {
/**
 * @brief Refuse infinite features and categories outside their declared domain. Both checks depend
 *        on one row only, so the error reveals only that such a row exists. It contains no value.
 */
void CheckFeatures(Context const* ctx, Plan const& plan, SparsePage const& page);

/**
 * @brief Call fn(page) for every page, with the columns of each row in order.
 *
 * Refuses a row with a repeated column, or with a column that the matrix does not have.
 */
void ForEachPage(Context const* ctx, DMatrix* p_fmat,
                 std::function<void(SparsePage const&)> const& fn);

/** @brief Refuse more than `most` rows over all workers. */
void CheckNumRows(Context const* ctx, Masking const& masking, std::uint64_t n_rows,
                  std::int64_t most);
}  // namespace xgboost::dp
