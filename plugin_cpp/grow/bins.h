/**
 * Cuts of all features, released or public, and the rows binned by them.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <vector>  // for vector

#include "common/hist_util.h"              // for HistogramCuts
#include "plugin_cpp/grow/binned_pages.h"  // for BinnedPages
#include "plugin_cpp/plan/plan.h"          // for Plan
#include "xgboost/context.h"               // for Context
#include "xgboost/data.h"                  // for DMatrix

namespace xgboost::dp {
/**
 * @brief The cuts of all features, as XGBoost takes them.
 *
 * @param private_cuts Released cuts of the features of kind `kPrivate`, in ascending order.
 */
[[nodiscard]] common::HistogramCuts MakeCuts(Plan const& plan,
                                             std::vector<std::vector<float>> const& private_cuts);

/**
 * @brief Bin every page. Writes exactly one bin per stored entry.
 *
 * Pages that the matrix keeps on disk stay there, binned, beside its own.
 */
[[nodiscard]] BinnedPages BinRows(Context const* ctx, common::HistogramCuts const& cuts,
                                  DMatrix* p_fmat);
}  // namespace xgboost::dp
