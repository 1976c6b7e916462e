/**
 * Private quantile candidates without public bounds.
 *
 * The binary tree over the leading bits of the float keys is walked from the root; noisy counts are
 * released only for nodes whose estimated count is large. The number of levels is fixed before the
 * walk, so one row touches one node per level and feature: the squared L2 sensitivity of all
 * counts is levels * features (times the square of the counts' integer unit).
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <cstdint>     // for uint64_t, int64_t
#include <functional>  // for function
#include <vector>      // for vector

#include "plugin_cpp/plan.h"  // for CandidatePlan

namespace xgboost::dp {
/** @brief Exact number of rows in node `cell` of `level`. Not private. */
using CellCount = std::function<std::int64_t(std::int32_t level, std::uint64_t cell)>;

/** @brief Exact counts, times 2^shift, to noisy ones; in order. */
using CountRelease = std::function<std::vector<std::int64_t>(std::vector<std::int64_t>)>;

/**
 * @brief Candidate cuts of one feature, in ascending order; all are finite and normal (or zero).
 *
 * @param release  Adds the noise.
 * @param variance Of that noise; 0 for the noise-free algorithm.
 */
[[nodiscard]] std::vector<float> QuantileCuts(CandidatePlan const& plan, CellCount const& count,
                                              CountRelease const& release, double variance);
}  // namespace xgboost::dp
