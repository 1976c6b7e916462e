/**
 * The private choice of several levels at once: one exponential mechanism picks a feature and a
 * partition of its values into 2^m cells, which m levels of the tree then carry out.
 *
 * The partitions are drawn at random without looking at the data, a few for each feature. The
 * utility is the sum of the score over all cells. A row is in one cell, so the range is that of a
 * single split, and m levels cost one selection. A partition is made, and its utility computed,
 * where the selection asks for it.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t
#include <vector>   // for vector

#include "plugin_cpp/grow/exact_levels.h"  // for ExactLevels
#include "plugin_cpp/grow/splitter.h"      // for TreeSpec, OpenNode, SplitCandidates

namespace xgboost::dp {
class PartitionSelector {
 public:
  explicit PartitionSelector(SplitterParts const& parts) : parts_{parts} {}

  /** @brief Choose the splits of `n_levels` levels below every node. */
  [[nodiscard]] Partitions Select(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t n_levels, ExactLevels<GlobalSum> const& levels);

 private:
  SplitterParts parts_;
};
}  // namespace xgboost::dp
