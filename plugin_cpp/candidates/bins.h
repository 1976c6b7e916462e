/**
 * Split candidates of all features and the binned rows.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <memory>  // for unique_ptr
#include <vector>  // for vector

#include "common/hist_util.h"            // for HistogramCuts
#include "data/gradient_index.h"         // for GHistIndexMatrix
#include "plugin_cpp/ledger.h"           // for Ledger
#include "plugin_cpp/noise/samplers.h"   // for RandomSource
#include "plugin_cpp/plan.h"             // for Plan
#include "xgboost/context.h"             // for Context
#include "xgboost/data.h"                // for DMatrix

namespace xgboost::dp {
/** @brief Binned rows, one index per page. */
using BinnedPages = std::vector<std::unique_ptr<GHistIndexMatrix>>;

/**
 * @brief Release or look up the candidates of all features. The noisy counts go to the ledger.
 *
 * @param rng Null for the noise-free algorithm.
 */
[[nodiscard]] common::HistogramCuts MakeCuts(Context const* ctx, Plan const& plan, DMatrix* p_fmat,
                                             RandomSource* rng, Ledger* ledger);

/** @brief Bin every page. Writes exactly one bin per stored entry. */
[[nodiscard]] BinnedPages BinRows(Context const* ctx, common::HistogramCuts const& cuts,
                                  DMatrix* p_fmat, double sparse_threshold);
}  // namespace xgboost::dp
