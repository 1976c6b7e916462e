/**
 * Grow one tree, level by level: the splits come from a splitter, and the tree learns nothing else.
 */
#pragma once

#include <cstdint>  // for int32_t
#include <memory>   // for unique_ptr
#include <vector>   // for vector

#include "common/hist_util.h"              // for HistogramCuts
#include "common/timer.h"                  // for Monitor
#include "plugin_cpp/leaf/release.h"       // for LeafSums
#include "plugin_cpp/plan/plan.h"          // for Plan
#include "plugin_cpp/release/release.h"    // for Release
#include "plugin_cpp/rows/binned_pages.h"  // for BinnedPages
#include "plugin_cpp/rows/gradient.h"      // for PackedPair
#include "plugin_cpp/split/features.h"     // for InteractionSets
#include "plugin_cpp/split/offers.h"       // for Offers, OpenNode
#include "plugin_cpp/split/splitter.h"     // for Splitter, TreeSpec
#include "xgboost/context.h"               // for Context
#include "xgboost/tree_model.h"            // for RegTree

namespace xgboost::dp {
class TreeGrower {
 public:
  /** @brief The leaves by ascending node id. */
  struct Leaves {
    std::vector<bst_node_t> ids;
    LeafSums sums;
  };

  /** @param structure Source of choices that read no data, the same on all workers. */
  TreeGrower(Context const* ctx, Plan const& plan, common::HistogramCuts cuts, BinnedPages pages,
             RandomSource* structure, Release* release);

  /**
   * @brief Grow the structure of a tree.
   *
   * @param gpair     Integer gradients of the local rows.
   * @param total     Their sum.
   * @param positions The leaf of every local row.
   */
  [[nodiscard]] Leaves Grow(std::vector<PackedPair> const& gpair, LocalSum const& total,
                            TreeSpec const& spec, RegTree* tree,
                            std::vector<bst_node_t>* positions);

 private:
  void Expand(bst_node_t nidx, Split const& split, RegTree* tree) const;
  /** @brief Expand all nodes of a level. @return The children of each, from left to right. */
  [[nodiscard]] std::vector<std::vector<bst_node_t>> Expand(std::vector<OpenNode> const& level,
                                                            Partitions const& partitions,
                                                            std::int32_t n_levels,
                                                            RegTree* tree) const;

  Plan const& plan_;
  common::HistogramCuts cuts_;
  BinnedPages pages_;
  Offers offers_;
  InteractionSets interactions_;
  std::unique_ptr<Splitter> splitter_;
  common::Monitor monitor_;
};
}  // namespace xgboost::dp
