/**
 * From the integers of rows to those of persons: all rows of a person together keep a bound of K
 * rows, whatever cells of whatever tree they are in.
 *
 * The rows of a person are scaled by one factor. It depends on the norms that they would have with
 * the worst labels, not on the labels, so that probabilities are not biased; what it leaves is
 * rounded so that the sums of a person keep their fractions. The bound itself is enforced on the
 * integers. A person with one row is left as it is.
 *
 * Proof: docs/proofs/persons.md
 */
#pragma once

#include <cstdint>  // for int64_t, uint64_t
#include <cstdlib>  // for abs
#include <vector>   // for vector

#include "plugin_cpp/plan/row_bound.h"   // for RowBound
#include "plugin_cpp/random/samplers.h"  // for u128
#include "plugin_cpp/rows/gradient.h"    // for ClassGradients, RowsOfPersons
#include "plugin_cpp/rows/persons.h"     // for Persons
#include "xgboost/context.h"             // for Context

namespace xgboost::dp {
/** @brief An integer times most / size, towards 0; itself where the size is within. */
[[nodiscard]] inline std::int64_t CutTo(std::int64_t value, std::uint64_t most,
                                        std::uint64_t size) {
  if (size <= most) {
    return value;
  }
  auto part = static_cast<std::int64_t>(static_cast<u128>(std::abs(value)) * most / size);
  return value < 0 ? -part : part;
}

/** @brief Norms of rows with the worst label, where C = 1, in the mode kPrediction. */
struct NormsOfRows {
  float same{0};                  // if all rows have this one
  float const* of_rows{nullptr};  // else of each
};

/**
 * @brief Bound the persons with several rows.
 *
 * @param several Their rows, filled in; null if nobody asks.
 * @param out     Integers that keep the bound of a row, of each class; those of persons are
 *                replaced.
 */
void BoundPersons(Context const* ctx, RowBound const& bound, Persons const& persons,
                  NormsOfRows norms, RowsOfPersons* several, std::vector<ClassGradients>* out);
}  // namespace xgboost::dp
