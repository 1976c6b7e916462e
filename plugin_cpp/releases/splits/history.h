/**
 * What earlier trees say about which features are worth a split. Reads released leaf sums only.
 *
 * The exponential mechanism starts from a prior over its candidates, uniform without a history. Any
 * prior that does not depend on the data given what was released leaves its range as it is: it adds
 * the same number to a utility under both of two neighbours.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "plugin_cpp/grow/features.h"              // for FeatureList
#include "plugin_cpp/plan/plan.h"                  // for Plan
#include "plugin_cpp/releases/leaves/shrinkage.h"  // for NodeSum
#include "xgboost/tree_model.h"                    // for RegTree

namespace xgboost::dp {
/** @brief Gains of the features in the trees of each class, the noise's part taken off. */
class SplitHistory {
 public:
  explicit SplitHistory(Plan const& plan)
      : plan_{plan}, gain_(static_cast<std::size_t>(plan.n_features) * plan.num_class, 0.0) {}

  /**
   * @brief Count the splits of a tree of a class, from the released sums of all of its nodes. Where
   *        the classes share their splits their gains add up, and there is one list of them.
   */
  void Update(std::size_t class_idx, RegTree const& tree, std::vector<NodeSum> const& sums);

  /**
   * @brief What to add to the utilities of the candidates of each feature: (range / eps0) log of
   *        its prior relative to the uniform one. Zero without a history.
   */
  [[nodiscard]] std::vector<std::int64_t> Offsets(std::size_t class_idx,
                                                  FeatureList const& features) const;

 private:
  Plan const& plan_;
  std::vector<double> gain_;  // class by class
};
}  // namespace xgboost::dp
