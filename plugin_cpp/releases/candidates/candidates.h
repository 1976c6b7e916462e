/**
 * The private release of split candidates: once, or again in each of the first rounds.
 *
 * A row is in one cell of every feature, and on one path of every quantile tree, with a weight of
 * one or with its bounded Hessian; the rows of a person share a weight of one. That gives the
 * sensitivity; what is made of the noisy sums is free.
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
#include "plugin_cpp/rows/persons.h"     // for Persons
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
   * @param persons Whom the rows belong to; null where each row counts one.
   * @param gpair Integer gradients of the local rows, whose Hessians may be weights.
   */
  [[nodiscard]] common::HistogramCuts MakeCuts(DMatrix* p_fmat, Persons const* persons,
                                               std::vector<PackedPair> const& gpair);

 private:
  /** @brief What the rows weigh. */
  struct Weights {
    std::vector<PackedPair> const& gpair;
    Persons const* persons;
  };

  /** @brief Add the rows of a page, each with its Hessian or what it counts. */
  template <typename CellFn>
  void AddRows(SparsePage const& page, CellFn&& cell, Weights const& weights, CellSums* sums) const;
  [[nodiscard]] std::vector<std::vector<float>> FromTrees(DMatrix* p_fmat, Weights const& weights);
  [[nodiscard]] std::vector<std::vector<float>> FromHistograms(DMatrix* p_fmat,
                                                               Weights const& weights);

  Context const* ctx_;
  Plan const& plan_;
  Release* release_;
  std::vector<bst_feature_t> features_;    // those of kind `kPrivate`, ascending
  std::vector<std::vector<float>> edges_;  // of their noisy histograms
};
}  // namespace xgboost::dp
