/**
 * What the leaves of a tree say, with noise: sums from which the values follow, (G, H) of every
 * leaf with Gaussian or with Laplace noise. A row is in one leaf.
 *
 * Proof: docs/proofs/leaves.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/grow/splitter.h"              // for LeafSums
#include "plugin_cpp/plan/plan.h"                  // for Plan
#include "plugin_cpp/release/release.h"            // for Release
#include "plugin_cpp/releases/leaves/shrinkage.h"  // for NodeSum, TreeTilt

namespace xgboost::dp {
/** @brief What leaves are released with. */
struct LeafParts {
  Plan const& plan;
  Release* release;
};

class LeafRelease {
 public:
  virtual ~LeafRelease() = default;
  /**
   * @brief The released sums of every leaf, in order. Noisy ones are released already.
   *
   * @param of   Which tree it is.
   * @param tilt Of the class, over its trees.
   */
  [[nodiscard]] virtual std::vector<NodeSum> operator()(TreeOfRound of, LeafSums const& leaves,
                                                        TreeTilt* tilt) const = 0;
};

using LeafReleases = Registry<LeafRelease, LeafNoise, LeafParts>;
}  // namespace xgboost::dp
