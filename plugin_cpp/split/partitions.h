/**
 * The private choice of several levels at once: one exponential mechanism picks a feature and a
 * partition of its values into 2^m cells, which m levels of the tree then carry out.
 *
 * The candidates are drawn at random without looking at the data, a few for each feature. The utility
 * is the sum of the score over all cells. A row is in one cell, so the range is that of a single
 * split, and m levels cost one selection.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t, uint64_t
#include <vector>   // for vector

#include "plugin_cpp/split/features.h"       // for FeatureList
#include "plugin_cpp/rows/gradient.h"          // for GradientSum
#include "plugin_cpp/random/samplers.h"    // for RandomSource
#include "plugin_cpp/plan/plan.h"              // for Plan
#include "plugin_cpp/split/offers.h"  // for SplitCandidates, SplitGroups
#include "plugin_cpp/split/history.h"     // for SplitHistory
#include "plugin_cpp/split/select.h"      // for OpenNode
#include "xgboost/context.h"              // for Context

namespace xgboost::dp {
class GroupSelector {
 public:
  /**
   * @param rng       Null for the noise-free algorithm.
   * @param structure Source of the candidates.
   */
  GroupSelector(Context const* ctx, Plan const& plan, SplitCandidates const* candidates,
                RandomSource* rng, RandomSource* structure);

  /**
   * @brief Choose the splits of `n_levels` levels below every node.
   *
   * @param oblivious Whether one choice serves all nodes; the same features are allowed then.
   * @param group     The class, for its history.
   */
  [[nodiscard]] SplitGroups Select(std::vector<OpenNode> const& nodes, bool oblivious,
                                   std::int32_t n_levels, std::int64_t group,
                                   SplitHistory const& history);

 private:
  void DrawCandidates(FeatureList const& features, std::int64_t group,
                      SplitHistory const& history);
  void DrawNumeric(bst_feature_t f);
  void DrawCategorical(bst_feature_t f);
  void AddUtilities(OpenNode const& node);

  Context const* ctx_;
  Plan const& plan_;
  SplitCandidates const* candidates_;
  RandomSource* rng_;
  RandomSource* structure_;
  std::size_t n_splits_{0};  // of one candidate
  std::vector<Split> drawn_;  // a fixed number for each allowed feature
  std::vector<std::int64_t> utilities_;
};
}  // namespace xgboost::dp
