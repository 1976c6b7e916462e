/**
 * Cuts of all features, released or public, and the rows binned by them.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <cstdint>  // for uint64_t
#include <vector>   // for vector

#include "common/hist_util.h"              // for HistogramCuts
#include "plugin_cpp/plan/plan.h"          // for Plan
#include "plugin_cpp/rows/binned_pages.h"  // for BinnedPages
#include "xgboost/context.h"               // for Context
#include "xgboost/data.h"                  // for DMatrix, SparsePage

namespace xgboost::dp {
/**
 * @brief The cuts of all features, as XGBoost takes them.
 *
 * @param private_cuts Released cuts of the features of kind `kPrivate`, in ascending order.
 */
[[nodiscard]] common::HistogramCuts MakeCuts(Plan const& plan,
                                             std::vector<std::vector<float>> const& private_cuts);

/** @brief The most bytes that a page takes, binned, but for quantile trees with very many cuts. */
[[nodiscard]] std::uint64_t BytesOfBins(Plan const& plan, SparsePage const& page);

/**
 * @brief Fail, before anything is released, if the bins of a matrix on disk had no room beside it.
 *
 * @param n_bytes Of all pages, binned.
 */
void CheckRoom(DMatrix* p_fmat, std::uint64_t n_bytes);

/**
 * @brief Bin every page. Writes exactly one bin per stored entry.
 *
 * Pages that the matrix keeps on disk stay there, binned, beside its own.
 */
[[nodiscard]] BinnedPages BinRows(Context const* ctx, common::HistogramCuts const& cuts,
                                  DMatrix* p_fmat);
}  // namespace xgboost::dp
