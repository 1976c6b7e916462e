/**
 * What the leaves of a tree say, with noise: sums from which the values follow, or the values.
 *
 * Sums: (G, H) of every leaf with Gaussian or with Laplace noise. Output perturbation: the value
 * V = -G / (max(n, N) + lambda) of a leaf with n rows, with Laplace noise. The floor N in the
 * denominator stands where published systems test n >= N, which is not private; its sensitivity is
 * (2 N + lambda) / ((N + lambda)(N + 1 + lambda)) for |g| <= 1, whatever n. A row is in one leaf.
 *
 * Proof: docs/proofs/leaves.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t
#include <vector>   // for vector

#include "plugin_cpp/grow/splitter.h"              // for LeafSums
#include "plugin_cpp/plan/plan.h"                  // for Plan
#include "plugin_cpp/release/release.h"            // for Release
#include "plugin_cpp/releases/leaves/shrinkage.h"  // for NodeSum, TreeTilt

namespace xgboost::dp {
/**
 * @brief The released sums of every leaf, in order. Noisy ones are released already.
 *
 * @param round Rounds before this one, on which the geometric clip depends.
 * @param tilt  Of the class, over its trees.
 */
[[nodiscard]] std::vector<NodeSum> ReleaseLeaves(Plan const& plan, std::int32_t round,
                                                 std::size_t class_idx, LeafSums const& leaves,
                                                 TreeTilt* tilt, Release* release);
}  // namespace xgboost::dp
