/**
 * Covers and gains of the nodes of a tree, from released sums of its leaves and from their weights.
 *
 * The noise of a leaf is as large where no row is. So the share of a node's cover that a split
 * sends to the right is estimated against a prior by which most of a node may lie on one side, and
 * nodes of a level with the same split inform each other.
 *
 * Reads no data.
 *
 * Proof: docs/proofs/leaves.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/releases/leaves/shrinkage.h"  // for NodeSum
#include "xgboost/tree_model.h"                    // for RegTree

namespace xgboost::dp {
/**
 * @brief Covers of all nodes: positive, and without noise the sums of the leaves.
 *
 * @param sums Of all nodes.
 */
[[nodiscard]] std::vector<double> EstimateCovers(RegTree const& tree,
                                                 std::vector<NodeSum> const& sums);
/**
 * @brief Gains of the splits: what they explain of the spread of the leaf weights, weighted by the
 *        covers that the tree holds.
 *
 * @param weights Of the leaves; other nodes are ignored.
 */
[[nodiscard]] std::vector<double> ExplainedGains(RegTree const& tree, std::vector<double> weights);
}  // namespace xgboost::dp
