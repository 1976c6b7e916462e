/**
 * Which rows a round reads.
 *
 * Poisson subsampling: in every round each row takes part with the same public probability, by
 * coins that nobody sees. A row that does not take part contributes nothing to the round, which is
 * what amplifies its privacy; the coins must stay as secret as the noise.
 *
 * Disjoint parts: the rounds of an ensemble read one part each, so that a row takes part in one.
 *
 * Proof: docs/proofs/sampling.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, int32_t, uint8_t, uint16_t
#include <vector>   // for vector

#include "plugin_cpp/random/samplers.h"  // for RandomSource

namespace xgboost::dp {
/**
 * @brief Draw which rows take part: row i with probability num / 2^32, independently.
 *
 * @param out One entry per row, 1 for rows that take part. Never shown to anybody.
 */
void DrawSample(RandomSource* rng, std::int64_t num, std::size_t n_rows,
                std::vector<std::uint8_t>* out);

/**
 * @brief Draw which of `parts` rounds each row belongs to: with equal probability, or `halving`,
 *        where each round takes half of the rows that are left, and the last one all.
 *
 * The parts do not depend on the data; a row is in one of them.
 */
void DrawParts(RandomSource* rng, std::int32_t parts, bool halving, std::size_t n_rows,
               std::vector<std::uint16_t>* out);
}  // namespace xgboost::dp
