/**
 * Private quantile candidates without public bounds.
 *
 * Each feature has a binary tree over the leading bits of the float keys. All trees are walked from
 * their roots, level by level; noisy counts are released only below nodes whose estimated count is
 * large. The number of levels is fixed before the walk, so one row touches one node per level and
 * feature: the squared L2 sensitivity of all counts is levels * features (times the square of the
 * counts' integer unit). One release serves a level of all trees, so that workers exchange a few
 * sums once a level.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <cstddef>     // for size_t
#include <cstdint>     // for uint64_t, int32_t, int64_t
#include <functional>  // for function
#include <vector>      // for vector

#include "plugin_cpp/plan/plan.h"        // for CandidatePlan
#include "plugin_cpp/release/release.h"  // for Released, LocalInt, NoisyInt

namespace xgboost::dp {
/** @brief Exact count, times 2^shift, of this worker's part of node `cell` of `level` of a tree. */
using CellCount =
    std::function<std::int64_t(std::size_t tree, std::int32_t level, std::uint64_t cell)>;

/** @brief Such exact counts of this worker to noisy ones over all workers; in order. */
using CountRelease = std::function<Released<NoisyInt>(std::vector<LocalInt> const&)>;

/** @brief Candidate cuts of each feature, in ascending order: finite, and normal or zero. */
[[nodiscard]] std::vector<std::vector<float>> QuantileCuts(CandidatePlan const& plan,
                                                           std::size_t n_trees,
                                                           CellCount const& count,
                                                           CountRelease const& release);
}  // namespace xgboost::dp
