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

#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "plugin_cpp/rows/gradient.h"            // for GradientSum
#include "plugin_cpp/release/ledger.h"              // for LedgerEvent
#include "plugin_cpp/random/samplers.h"      // for RandomSource
#include "plugin_cpp/plan/plan.h"                // for Plan
#include "plugin_cpp/release/masked_sums.h"  // for MaskedSums
#include "xgboost/context.h"                // for Context

namespace xgboost::dp {
/** @brief Released numbers of a leaf. */
struct ReleasedLeaf {
  GradientSum sum;      // grid units; with output perturbation empty
  double variance{0};   // of the noise on each sum, or on the value
  double value{0};      // output perturbation: the leaf's value before eta, where C = 1
};

/** @brief The leaf releases of one round: all classes and parallel trees together. */
[[nodiscard]] LedgerEvent LeafEvent(Plan const& plan);

/**
 * @brief Add noise to the exact sums of every leaf, in order.
 *
 * @param round  Rounds before this one, on which the geometric clip depends.
 * @param exact  Over all workers, or, to be masked, of this worker alone.
 * @param masked Null where sums travel in the clear.
 */
[[nodiscard]] std::vector<ReleasedLeaf> ReleaseLeaves(Context const* ctx, Plan const& plan,
                                                      std::int64_t round,
                                                      std::vector<GradientSum> const& exact,
                                                      RandomSource* rng, MaskedSums* masked);
}  // namespace xgboost::dp
