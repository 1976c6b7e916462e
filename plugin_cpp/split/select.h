/**
 * The private choice of splits: one exponential mechanism for a node, or one for a whole level.
 *
 * Per node: the nodes of a level hold disjoint rows, so one row touches one of the selections of a
 * level, and the level costs one selection. Oblivious: the utility is summed over the nodes of the
 * level; a row is in one of them, so that the range is the same.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint64_t
#include <optional>  // for optional
#include <vector>   // for vector

#include "plugin_cpp/split/features.h"        // for FeatureList
#include "plugin_cpp/rows/gradient.h"           // for GradientSum
#include "plugin_cpp/random/samplers.h"     // for RandomSource
#include "plugin_cpp/plan/plan.h"               // for Plan
#include "plugin_cpp/split/offers.h"   // for SplitCandidates, Split
#include "plugin_cpp/split/history.h"      // for SplitHistory
#include "xgboost/base.h"                  // for bst_node_t
#include "xgboost/context.h"               // for Context

namespace xgboost::dp {
/** @brief A node that may be split: its histogram, exact totals, and the features allowed. */
struct OpenNode {
  bst_node_t nidx{0};
  GradientSum total;
  HistogramRow hist;
  FeatureList features;
};

class SplitSelector {
 public:
  /**
   * @param rng       Null for the noise-free algorithm.
   * @param structure Source of random splits.
   */
  SplitSelector(Context const* ctx, Plan const& plan, SplitCandidates const* candidates,
                RandomSource* rng, RandomSource* structure);

  /**
   * @brief Choose the split of every node of a level; empty where "no split" won.
   *
   * Random splits take a feature and then one of its candidates, each with equal probability: they
   * read neither histograms nor totals, and cost nothing.
   *
   * @param oblivious Whether one choice serves all nodes; the same features are allowed then.
   * @param group     The class, for its history.
   */
  [[nodiscard]] std::vector<std::optional<Split>> Select(std::vector<OpenNode> const& nodes,
                                                         bool oblivious, std::int64_t group,
                                                         SplitHistory const& history);

 private:
  void ListCandidates(FeatureList const& features);
  void AddUtilities(OpenNode const& node);
  [[nodiscard]] std::int64_t Choose();
  [[nodiscard]] std::int64_t ChooseAtRandom();
  [[nodiscard]] std::optional<Split> At(FeatureList const& features, std::int64_t winner);

  Context const* ctx_;
  Plan const& plan_;
  SplitCandidates const* candidates_;
  RandomSource* rng_;
  RandomSource* structure_;
  std::vector<std::size_t> offsets_;  // first candidate of each allowed feature
  std::vector<std::int64_t> utilities_;
};
}  // namespace xgboost::dp
