/**
 * Leaf values from released sums: Newton steps with empirical-Bayes shrinkage, gradient steps (if
 * Hessians count rows), or released values, ordered by monotone constraints.
 *
 * The leaf values, covers, gains and base weights of all nodes are post-processing.
 *
 * Proof: docs/proofs/constraints.md
 * Proof: docs/proofs/leaves.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/mechanisms/leaves/shrinkage.h"  // for LeafShrinkage, NodeSum
#include "plugin_cpp/plan/plan.h"                    // for Plan, TreeIndex
#include "xgboost/base.h"                            // for bst_node_t
#include "xgboost/tree_model.h"                      // for RegTree

namespace xgboost::dp {
/**
 * @brief Compute the weights of leaves from their released sums.
 *
 * @param oblivious Whether all nodes of a level have the same split.
 */
std::vector<double> LeafWeights(Plan const& plan, bool oblivious,
                                std::vector<NodeSum> const& released, LeafShrinkage* shrinkage);
/**
 * @brief Set the values and statistics of a grown tree from the weights of its leaves.
 *
 * @param leaves   Leaf ids, ascending. In a complete tree this is from left to right.
 * @param released Released sums of the leaves.
 *
 * @return The released sums of all nodes; with output perturbation, each leaf has a count of one.
 */
std::vector<NodeSum> FinishTree(std::vector<double> const& leaf_weights, Plan const& plan,
                                TreeIndex idx, std::vector<bst_node_t> const& leaves,
                                std::vector<NodeSum> const& released, RegTree* tree);
}  // namespace xgboost::dp
