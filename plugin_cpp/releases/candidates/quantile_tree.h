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

#include "plugin_cpp/plan/plan.h"        // for QuantilePlan
#include "plugin_cpp/release/release.h"  // for Released, LocalInt, NoisyInt

namespace xgboost::dp {
/** @brief Exact count, times 2^shift, of this worker's part of node `cell` of `level` of a tree. */
using CellCount =
    std::function<std::int64_t(std::size_t tree, std::int32_t level, std::uint64_t cell)>;

/** @brief Such exact counts of this worker to noisy ones over all workers; in order. */
using CountRelease = std::function<Released<NoisyInt>(std::vector<LocalInt> const&)>;

/** @brief A leaf of a walk: an interval of keys and its estimated count, which is not negative. */
struct QuantileCell {
  std::uint64_t begin;
  std::uint64_t end;
  double count;
};

/** @brief What the noisy counts of a tree tell. All of it is public. */
struct QuantileTree {
  double target{1};                  // of the count of a bin
  double threshold{1};               // nodes of no more are leaves
  std::vector<QuantileCell> leaves;  // ascending
};

/** @brief Walk the trees of some features together. */
[[nodiscard]] std::vector<QuantileTree> WalkQuantileTrees(QuantilePlan const& plan,
                                                          std::size_t n_trees,
                                                          CellCount const& count,
                                                          CountRelease const& release);

/** @brief Cuts from one tree, in ascending order: finite, and normal or zero. Reads no data. */
[[nodiscard]] std::vector<float> CutsOf(QuantileTree const& tree);

/** @brief Candidate cuts of each feature: both of the above. */
[[nodiscard]] std::vector<std::vector<float>> QuantileCuts(QuantilePlan const& plan,
                                                           std::size_t n_trees,
                                                           CellCount const& count,
                                                           CountRelease const& release);
}  // namespace xgboost::dp
