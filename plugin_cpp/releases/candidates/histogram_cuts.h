/**
 * Candidates from noisy histograms on public edges: equal mass (Sarus' DP-XGBoost; DP-EBM), or
 * edges that are moved to where the mass is (iterative Hessian splitting; the DP-TR paper,
 * algorithm 2). Both are post-processing of the released sums and read no data.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <cstdint>  // for int32_t
#include <vector>   // for vector

#include "plugin_cpp/release/sums.h"  // for NoisyInt

namespace xgboost::dp {
/** @brief Inner edges such that about 1 / max_bin of the mass lies between two of them. */
[[nodiscard]] std::vector<float> EqualMassCuts(std::vector<float> const& edges,
                                               std::vector<NoisyInt> const& mass,
                                               std::int32_t max_bin);

/** @brief Edges of at most max_bin bins: light neighbours merged, heavy bins cut into pieces. */
[[nodiscard]] std::vector<float> RefineEdges(std::vector<float> const& edges,
                                             std::vector<NoisyInt> const& mass,
                                             std::int32_t max_bin);
}  // namespace xgboost::dp
