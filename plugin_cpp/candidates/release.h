/**
 * The private release of split candidates: once, or again in each of the first rounds.
 *
 * A row is in one cell of every feature, and on one path of every quantile tree, with a weight of
 * one or with its bounded Hessian. That gives the sensitivity; what is made of the noisy sums is
 * free.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <cstdint>  // for int32_t, int64_t
#include <vector>   // for vector

#include "common/hist_util.h"            // for HistogramCuts
#include "plugin_cpp/plan/plan.h"        // for Plan
#include "plugin_cpp/release/release.h"  // for Release
#include "plugin_cpp/rows/gradient.h"    // for PackedPair
#include "xgboost/context.h"             // for Context
#include "xgboost/data.h"                // for DMatrix, SparsePage

namespace xgboost::dp {
class CellSums;

class CandidateRelease {
 public:
  CandidateRelease(Context const* ctx, Plan const& plan, Release* release);

  /** @brief Whether a round has candidates of its own; the first one always has. */
  [[nodiscard]] bool IsDue(std::int32_t round) const {
    return round == 0 || plan_.ReleasesCandidates(round);
  }

  /**
   * @brief Release or look up the candidates of all features.
   *
   * @param gpair Integer gradients of the local rows, whose Hessians may be weights.
   */
  [[nodiscard]] common::HistogramCuts MakeCuts(DMatrix* p_fmat,
                                               std::vector<PackedPair> const& gpair);

 private:
  /** @brief Add what each row of a page weighs: its Hessian, or one on the grid of the counts. */
  template <typename CellFn>
  void AddRows(SparsePage const& page, CellFn&& cell, std::vector<PackedPair> const& gpair,
               CellSums* sums) const;
  [[nodiscard]] std::vector<std::vector<float>> FromTrees(DMatrix* p_fmat,
                                                          std::vector<PackedPair> const& gpair);
  [[nodiscard]] std::vector<std::vector<float>> FromHistograms(
      DMatrix* p_fmat, std::vector<PackedPair> const& gpair);

  Context const* ctx_;
  Plan const& plan_;
  Release* release_;
  std::vector<bst_feature_t> features_;    // those of kind `kPrivate`, ascending
  std::vector<std::vector<float>> edges_;  // of their noisy histograms
};
}  // namespace xgboost::dp
