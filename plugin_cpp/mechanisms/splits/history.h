/**
 * Gains of features in earlier trees, from released leaf sums.
 *
 * They give the exponential mechanism a prior over its candidates; without a history it is uniform.
 * A prior that depends only on releases does not change the range, because it adds the same number
 * to a utility on both neighbouring data sets.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "plugin_cpp/grow/features.h"                // for FeatureList
#include "plugin_cpp/mechanisms/leaves/shrinkage.h"  // for NodeSum
#include "plugin_cpp/plan/plan.h"                    // for Plan
#include "xgboost/tree_model.h"                      // for RegTree

namespace xgboost::dp {
/** @brief Gains of the features in the trees of each class, corrected for noise. */
class SplitHistory {
 public:
  explicit SplitHistory(Plan const& plan)
      : plan_{plan}, gain_(static_cast<std::size_t>(plan.n_features) * plan.num_class, 0.0) {}

  /**
   * @brief Add the splits of a tree, from the released sums of all nodes. Classes with shared
   *        splits share one list of gains.
   */
  void Update(std::size_t class_idx, RegTree const& tree, std::vector<NodeSum> const& sums);

  /**
   * @brief The additive term of the utilities of each feature: (range / eps0) log of its prior
   *        relative to the uniform one. Zero without a history.
   */
  [[nodiscard]] std::vector<std::int64_t> Offsets(std::size_t class_idx,
                                                  FeatureList const& features) const;

 private:
  Plan const& plan_;
  std::vector<double> gain_;  // class by class
};
}  // namespace xgboost::dp
