/**
 * Cuts of all features, released or public, and the rows binned by them.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <memory>  // for unique_ptr
#include <vector>  // for vector

#include "common/hist_util.h"            // for HistogramCuts
#include "data/gradient_index.h"         // for GHistIndexMatrix
#include "plugin_cpp/plan.h"             // for Plan
#include "xgboost/context.h"             // for Context
#include "xgboost/data.h"                // for DMatrix

namespace xgboost::dp {
/** @brief Binned rows, one index per page. */
using BinnedPages = std::vector<std::unique_ptr<GHistIndexMatrix>>;

/**
 * @brief The cuts of all features, as XGBoost takes them.
 *
 * @param private_cuts Released cuts of the features of kind `kPrivate`, in ascending order.
 */
[[nodiscard]] common::HistogramCuts MakeCuts(Plan const& plan,
                                             std::vector<std::vector<float>> const& private_cuts);

/** @brief Bin every page. Writes exactly one bin per stored entry. */
[[nodiscard]] BinnedPages BinRows(Context const* ctx, common::HistogramCuts const& cuts,
                                  DMatrix* p_fmat, double sparse_threshold);
}  // namespace xgboost::dp
