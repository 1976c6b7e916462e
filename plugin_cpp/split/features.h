/**
 * Constraints on trees that cost no privacy: which features a node may be split on, and an order of
 * the leaf weights. Both are public rules applied to released values.
 *
 * Proof: docs/proofs/constraints.md
 */
#pragma once

#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "plugin_cpp/random/samplers.h"  // for RandomSource
#include "plugin_cpp/plan/plan.h"            // for Plan
#include "xgboost/base.h"               // for bst_feature_t
#include "xgboost/tree_model.h"         // for RegTree

namespace xgboost::dp {
/** @brief Features in ascending order. */
using FeatureList = std::vector<bst_feature_t>;

/**
 * @brief The features that a node may be split on, given those of the splits above it.
 *
 * As in XGBoost: the features above, and those of every set that holds all of them. The splits
 * above were released, so that the list is known without the data.
 */
class InteractionSets {
 public:
  explicit InteractionSets(Plan const& plan);
  /** @param of_tree Features of the tree, ascending; those above are among them. */
  [[nodiscard]] FeatureList Allowed(FeatureList const& of_tree, FeatureList const& above) const;

 private:
  std::vector<FeatureList> sets_;
};

/**
 * @brief The features that a tree may use, ascending: all, the next ones in turn, or random ones.
 *
 * @param tree_idx How many trees of the class came before.
 * @param rng      Decides what may be public; unused where nothing is random.
 */
[[nodiscard]] FeatureList FeaturesOfTree(Plan const& plan, std::int64_t tree_idx,
                                         RandomSource* rng);

/**
 * @brief Make the leaf weights of a tree follow the monotone constraints of the plan.
 *
 * @param hess   Released Hessian of every node.
 * @param weight Weight of every node; changed at the leaves, and filled in at the inner nodes.
 */
void OrderLeaves(Plan const& plan, RegTree const& tree, std::vector<double> const& hess,
                 std::vector<double>* weight);
}  // namespace xgboost::dp
