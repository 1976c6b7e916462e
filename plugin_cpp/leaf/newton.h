/**
 * Newton leaves from noisy sums, with empirical-Bayes shrinkage.
 *
 * Only the noisy sums of the leaves read the data. Leaf values, cover, gain and base weights of all
 * nodes are post-processing of them.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/gradient.h"         // for GradientSum
#include "plugin_cpp/noise/samplers.h"   // for RandomSource
#include "plugin_cpp/plan.h"             // for Plan
#include "xgboost/base.h"                // for bst_node_t
#include "xgboost/context.h"             // for Context
#include "xgboost/tree_model.h"          // for RegTree

namespace xgboost::dp {
/** @brief Released sums of a leaf, and the variance of their noise in grid units. */
struct ReleasedLeaf {
  GradientSum sum;
  double variance{0};
};

/** @brief Add noise to the exact sums of every leaf, in order. One row is in one leaf. */
[[nodiscard]] std::vector<ReleasedLeaf> ReleaseLeafSums(Context const* ctx, Plan const& plan,
                                                        std::vector<GradientSum> const& exact,
                                                        RandomSource* rng);

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
