/**
 * The rows of a DMatrix as private training sees them: at most one entry per (row, feature).
 *
 * A DMatrix keeps a column that a sparse row stores twice. Such a row would count twice in a
 * histogram and break every sensitivity, and what XGBoost predicts for it depends on other rows. It
 * is refused by itself.
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
 * @brief Refuse infinite features and categories outside their declared domain. Each is a defect of
 *        one row by itself, so that the error tells no more than that; it names no value.
 */
void CheckFeatures(Context const* ctx, Plan const& plan, SparsePage const& page);

/**
 * @brief Call fn(page) for every page of `p_fmat`, with the columns of each row in order.
 *
 * Refuses a row that has a column twice, or one that the matrix does not have.
 */
void ForEachPage(Context const* ctx, DMatrix* p_fmat,
                 std::function<void(SparsePage const&)> const& fn);

/** @brief Refuse more rows, of all workers together, than sums are proved for. */
void CheckNumRows(Context const* ctx, Masking const& masking, std::uint64_t n_rows,
                  std::int64_t most);
}  // namespace xgboost::dp
