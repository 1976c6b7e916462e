/**
 * Grow one tree, level by level, from the splits of a splitter.
 */
#pragma once

#include <cstdint>  // for int32_t
#include <memory>   // for unique_ptr
#include <utility>  // for pair
#include <vector>   // for vector

#include "common/hist_util.h"                  // for HistogramCuts
#include "common/timer.h"                      // for Monitor
#include "plugin_cpp/grow/bins.h"              // for BinnedPages
#include "plugin_cpp/grow/features.h"          // for InteractionSets
#include "plugin_cpp/grow/split_candidates.h"  // for SplitCandidates, OpenNode
#include "plugin_cpp/grow/splitter.h"          // for LeafSums, Splitter, TreeSpec
#include "plugin_cpp/plan/plan.h"              // for Plan
#include "plugin_cpp/release/release.h"        // for Release
#include "plugin_cpp/rows/gradient.h"          // for ClassGradients
#include "xgboost/context.h"                   // for Context
#include "xgboost/tree_model.h"                // for RegTree

namespace xgboost::dp {
class TreeGrower {
 public:
  struct Grown {
    std::vector<std::pair<bst_node_t, Split>> splits;  // in order
    std::vector<bst_node_t> leaves;                    // by ascending node id
    std::vector<LeafSums> sums;                        // of the leaves, for each class
    std::vector<bst_node_t> positions;                 // the leaf of every local row
  };

  /** @param structure Source of public choices, the same on all workers. */
  TreeGrower(Context const* ctx, Plan const& plan, common::HistogramCuts cuts, BinnedPages pages,
             RandomSource* structure, Release* release);

  /** @param gradients Gradients of the classes whose trees share the structure. */
  [[nodiscard]] Grown Grow(common::Span<ClassGradients const> gradients, TreeSpec const& spec,
                           RegTree* tree);
  /** @brief Grow the same structure for another class. Reads no data. */
  void Repeat(Grown const& grown, RegTree* tree) const;

 private:
  void Expand(bst_node_t nidx, Split const& split, RegTree* tree) const;
  /** @brief Expand all nodes of a level. @return The children of each node, left to right. */
  [[nodiscard]] std::vector<std::vector<bst_node_t>> Expand(std::vector<OpenNode> const& level,
                                                            Partitions const& partitions,
                                                            std::int32_t n_levels, RegTree* tree,
                                                            Grown* grown) const;

  Plan const& plan_;
  common::HistogramCuts cuts_;
  BinnedPages pages_;
  SplitCandidates candidates_;
  InteractionSets interactions_;
  std::unique_ptr<Splitter> splitter_;
  common::Monitor monitor_;
};
}  // namespace xgboost::dp
