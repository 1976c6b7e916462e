/**
 * The features that a tree or a node may be split on: public rules applied to released splits,
 * which cost no privacy.
 *
 * Proof: docs/proofs/constraints.md
 */
#pragma once

#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "plugin_cpp/plan/plan.h"        // for Plan
#include "plugin_cpp/random/samplers.h"  // for RandomSource
#include "xgboost/base.h"                // for bst_feature_t

namespace xgboost::dp {
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
 * @brief The features that a tree may use, ascending: all, those that the plan offers to every
 * tree, the next ones in turn, or random ones, evenly or by their public weights.
 *
 * @param tree_idx How many trees of the class came before.
 * @param rng      Decides what may be public; unused where nothing is random.
 */
[[nodiscard]] FeatureList FeaturesOfTree(Plan const& plan, std::int64_t tree_idx,
                                         RandomSource* rng);
}  // namespace xgboost::dp
