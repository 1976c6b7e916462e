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

#include "common/hist_util.h"               // for HistogramCuts
#include "plugin_cpp/rows/gradient.h"            // for PackedPair
#include "plugin_cpp/release/ledger.h"              // for LedgerEvent
#include "plugin_cpp/random/samplers.h"      // for RandomSource
#include "plugin_cpp/plan/plan.h"                // for Plan
#include "plugin_cpp/release/masked_sums.h"  // for MaskedSums
#include "xgboost/context.h"                // for Context
#include "xgboost/data.h"                   // for DMatrix

namespace xgboost::dp {
/** @brief One release of the candidates of all private features. */
[[nodiscard]] LedgerEvent CandidateEvent(Plan const& plan);

class CandidateRelease {
 public:
  /**
   * @param rng    Null for the noise-free algorithm.
   * @param masked Null where sums travel in the clear.
   */
  CandidateRelease(Context const* ctx, Plan const& plan, RandomSource* rng, MaskedSums* masked);

  /** @brief Whether a round has candidates of its own; the first one always has. */
  [[nodiscard]] bool IsDue(std::int32_t round) const {
    return round == 0 || (plan_.NumPrivateFeatures() > 0 && round < plan_.candidates.rounds);
  }

  /**
   * @brief Release or look up the candidates of all features.
   *
   * @param gpair Integer gradients of the local rows, whose Hessians may be weights.
   */
  [[nodiscard]] common::HistogramCuts Release(DMatrix* p_fmat,
                                              std::vector<PackedPair> const& gpair);

 private:
  /** @brief Exact sums of this worker to noisy ones over all, the same on every worker. */
  [[nodiscard]] std::vector<std::int64_t> AddNoise(std::vector<std::int64_t> sums) const;
  [[nodiscard]] std::vector<std::vector<float>> FromTrees(DMatrix* p_fmat,
                                                          std::vector<PackedPair> const& gpair);
  [[nodiscard]] std::vector<std::vector<float>> FromHistograms(
      DMatrix* p_fmat, std::vector<PackedPair> const& gpair);

  Context const* ctx_;
  Plan const& plan_;
  RandomSource* rng_;
  MaskedSums* masked_;
  std::vector<bst_feature_t> features_;    // those of kind `kPrivate`, ascending
  std::vector<std::vector<float>> edges_;  // of their noisy histograms
};
}  // namespace xgboost::dp
