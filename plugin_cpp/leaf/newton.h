/**
 * Leaf values from what was released: Newton steps with empirical-Bayes shrinkage, gradient steps
 * where Hessians count rows, or the released values themselves.
 *
 * Reads no data. Leaf values, cover, gain and base weights of all nodes are post-processing.
 *
 * Proof: docs/proofs/leaves.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/leaf/release.h"  // for ReleasedLeaf
#include "plugin_cpp/plan.h"          // for Plan
#include "xgboost/base.h"             // for bst_node_t
#include "xgboost/tree_model.h"       // for RegTree

namespace xgboost::dp {
/**
 * @brief Prior variance of the leaf weights, estimated from released sums over all trees so far.
 *
 * Leaves whose signal drowns in noise shrink to zero. Reads no data.
 */
class ShrinkagePrior {
 public:
  /** @return The prior variance after another tree with this signal and total Hessian. */
  double Update(double signal, double hessian, double prior_max);

 private:
  bool started_{false};
  double signal_{0};
  double hessian_{0};
};

/** @brief Set values and statistics of a grown tree from its released leaf sums. */
void FinishTree(Plan const& plan, std::vector<bst_node_t> const& leaves,
                std::vector<ReleasedLeaf> const& released, ShrinkagePrior* prior, RegTree* tree);
}  // namespace xgboost::dp
