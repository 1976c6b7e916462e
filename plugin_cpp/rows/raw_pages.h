/**
 * The rows of a DMatrix as private training sees them: at most one entry per (row, feature).
 *
 * A DMatrix keeps a column that a sparse row stores twice. Such a row would count twice in a
 * histogram and break every sensitivity, so the last stored entry counts, as in prediction.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <memory>  // for unique_ptr

#include "plugin_cpp/plan/plan.h"  // for Plan
#include "xgboost/context.h"       // for Context
#include "xgboost/data.h"          // for SparsePage, DMatrix

namespace xgboost::dp {
/**
 * @brief Whether every row has strictly increasing column indices. A column that the matrix does
 * not have is a defect of its row alone, and refused.
 */
[[nodiscard]] bool HasDistinctColumns(Context const* ctx, SparsePage const& page,
                                      bst_feature_t n_features);

/** @brief Copy of a page with sorted, distinct columns. */
[[nodiscard]] std::unique_ptr<SparsePage> WithDistinctColumns(SparsePage const& page);

/**
 * @brief Refuse infinite features and categories outside their declared domain. Each is a defect of
 *        one row by itself, so that the error tells no more than that; it names no value.
 */
void CheckFeatures(Context const* ctx, Plan const& plan, SparsePage const& page);

/** @brief Call fn(page) for every page of `p_fmat`, with distinct columns. */
template <typename Fn>
void ForEachPage(Context const* ctx, DMatrix* p_fmat, Fn&& fn) {
  for (auto const& page : p_fmat->GetBatches<SparsePage>(ctx)) {
    if (HasDistinctColumns(ctx, page, p_fmat->Info().num_col_)) {
      fn(page);
    } else {
      auto copy = WithDistinctColumns(page);
      fn(*copy);
    }
  }
}
}  // namespace xgboost::dp
