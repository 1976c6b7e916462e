/**
 * The features that a tree or a node may be split on. They depend only on public rules and released
 * splits, and cost no privacy.
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
 * @brief The features that a node may be split on, given the features of the splits above it.
 *
 * As in XGBoost, these are the features used above, and all members of the interaction sets that
 * contain every one of them. The splits above are released, so the list does not depend on the
 * data.
 */
class InteractionSets {
 public:
  explicit InteractionSets(Plan const& plan);
  /** @param tree_features Features of the tree, ascending; a superset of `above`. */
  [[nodiscard]] FeatureList Allowed(FeatureList const& tree_features,
                                    FeatureList const& above) const;

 private:
  std::vector<FeatureList> sets_;
};

/**
 * @brief The features that a tree may use, in ascending order: all features, the `offered` ones,
 *        the next ones in turn, or a random choice with equal or public weights.
 *
 * @param tree_idx Number of earlier trees of the class.
 * @param rng      Source of public choices.
 */
[[nodiscard]] FeatureList SelectFeatures(Plan const& plan, std::int64_t tree_idx,
                                         RandomSource* rng);
}  // namespace xgboost::dp
