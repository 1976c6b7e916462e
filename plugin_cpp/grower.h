/**
 * Grow one tree: histograms level by level, splits from the selectors.
 *
 * What is data here (histograms, row sets, totals) stays inside; out go the splits that the selector
 * released, and the exact leaf totals, which the caller must noise.
 */
#pragma once

#include <cstdint>   // for int32_t, int64_t
#include <vector>    // for vector

#include "common/hist_util.h"                   // for HistogramCuts
#include "common/timer.h"                       // for Monitor
#include "plugin_cpp/split/features.h"             // for FeatureList, InteractionSets
#include "plugin_cpp/rows/gradient.h"                // for GradientSum
#include "plugin_cpp/release/ledger.h"                  // for Ledger
#include "plugin_cpp/random/samplers.h"          // for RandomSource
#include "plugin_cpp/rows/binned_pages.h"      // for BinnedPages
#include "plugin_cpp/plan/plan.h"                    // for Plan
#include "plugin_cpp/release/masked_sums.h"      // for MaskedSums
#include "plugin_cpp/split/offers.h"        // for SplitCandidates, CellSum
#include "plugin_cpp/split/partitions.h"            // for GroupSelector
#include "plugin_cpp/split/noisy.h"         // for HistogramSelector, ReleasedSplit
#include "plugin_cpp/split/history.h"           // for SplitHistory
#include "plugin_cpp/rows/node_histograms.h"   // for NodeHistograms
#include "plugin_cpp/rows/row_router.h"        // for RowRouter
#include "plugin_cpp/rows/row_sets.h"          // for RowSets, Branching
#include "plugin_cpp/split/select.h"            // for SplitSelector, OpenNode
#include "xgboost/context.h"                    // for Context
#include "xgboost/tree_model.h"                 // for RegTree

namespace xgboost::dp {
class TreeGrower {
 public:
  /**
   * @brief A leaf with its totals: exact and not private, over all workers or, to be masked, of
   *        this one alone; or read from noisy histograms, then with the number of cells.
   */
  struct Leaf {
    bst_node_t nidx{0};
    GradientSum total;
    std::int64_t noisy_cells{0};
  };

  /** @param masked Null where sums travel in the clear. */
  TreeGrower(Context const* ctx, Plan const& plan, common::HistogramCuts cuts, BinnedPages pages,
             RandomSource* rng, RandomSource* structure, MaskedSums* masked, Ledger* ledger);

  /**
   * @brief Grow the structure of a tree.
   *
   * @param gpair     Integer gradients of the local rows.
   * @param total     Their sum.
   * @param features  What the tree may split on.
   * @param oblivious Whether one split serves a whole level.
   * @param group     The class.
   * @param history   Of all classes.
   *
   * @return The leaves by ascending node id.
   */
  [[nodiscard]] std::vector<Leaf> Grow(std::vector<PackedPair> const& gpair, GradientSum total,
                                       FeatureList const& features, bool oblivious,
                                       std::int64_t group, SplitHistory const& history,
                                       RegTree* tree);

  /** @brief Leaf of every local row in the tree that was grown last. */
  [[nodiscard]] std::vector<bst_node_t> const& LeafPositions() const { return positions_; }

 private:
  struct Node {
    bst_node_t nidx{0};
    GradientSum total;
    CellSum released;  // with noisy histograms
  };

  /** @brief The splits of `n_levels` levels below every node; empty where "no split" won. */
  [[nodiscard]] SplitGroups Choose(std::vector<OpenNode> const& open, bool oblivious,
                                   std::int32_t n_levels, std::int64_t group,
                                   SplitHistory const& history,
                                   std::vector<ReleasedSplit>* released);
  /** @brief Send all rows to the leaves at once, and fill in the totals of these. */
  void RouteRows(std::vector<PackedPair> const& gpair, std::vector<Leaf>* leaves);
  void Expand(bst_node_t nidx, Split const& split, RegTree* tree) const;
  /** @brief Expand all nodes of a level by their groups. @return Their children, left to right. */
  [[nodiscard]] std::vector<std::vector<bst_node_t>> Expand(std::vector<Node> const& level,
                                                            SplitGroups const& groups,
                                                            std::int32_t n_levels, RegTree* tree);
  /**
   * @brief Part the rows of the nodes above, and sum those of the level that is begun: one pass
   *        over the pages.
   */
  void SumLevel(std::vector<PackedPair> const& gpair, std::vector<Branching> const& branchings);

  Context const* ctx_;
  Plan const& plan_;
  common::HistogramCuts cuts_;
  BinnedPages pages_;
  SplitCandidates candidates_;
  InteractionSets interactions_;
  SplitSelector selector_;
  GroupSelector group_selector_;
  HistogramSelector histogram_selector_;
  Ledger* ledger_;
  NodeHistograms histograms_;
  RowRouter router_;
  RowSets rows_;
  std::vector<bst_node_t> positions_;
  common::Monitor monitor_;
};
}  // namespace xgboost::dp
