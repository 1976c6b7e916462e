/**
 * Bounds the contribution of a person: all rows of a person together contribute no more than K
 * rows, however a tree distributes them over its cells.
 *
 * All rows of a person are scaled by one factor. It is computed from the norms with the worst
 * labels and not from the labels, so probabilities are not biased. Rounding errors are carried from
 * row to row, so that fractions are not lost in the sums of a person. The bound is enforced on the
 * integers. A person with a single row is left unchanged.
 *
 * Proof: docs/proofs/persons.md
 */
#pragma once

#include <cstdint>  // for int64_t, uint64_t
#include <cstdlib>  // for abs
#include <vector>   // for vector

#include "plugin_cpp/plan/row_bound.h"   // for RowBound
#include "plugin_cpp/random/samplers.h"  // for u128
#include "plugin_cpp/rows/gradient.h"    // for ClassGradients, PersonRows
#include "plugin_cpp/rows/persons.h"     // for Persons
#include "xgboost/context.h"             // for Context

namespace xgboost::dp {
/** @brief Scale by limit / size, rounding towards 0, if `size` exceeds `limit`. */
[[nodiscard]] inline std::int64_t ScaleDown(std::int64_t value, std::uint64_t limit,
                                            std::uint64_t size) {
  if (size <= limit) {
    return value;
  }
  auto part = static_cast<std::int64_t>(static_cast<u128>(std::abs(value)) * limit / size);
  return value < 0 ? -part : part;
}

/** @brief Norms of rows with the worst label, for C = 1. Used in mode kPrediction. */
struct WorstNorms {
  float same{0};                 // common norm of all rows, if `by_row` is null
  float const* by_row{nullptr};  // norm of each row
};

/**
 * @brief Bound the persons with several rows.
 *
 * @param several Receives their rows as they were before bounding, or null.
 * @param out     Row-bounded integers of each class; replaced by the bounded values.
 */
void BoundPersons(Context const* ctx, RowBound const& bound, Persons const& persons,
                  WorstNorms norms, PersonRows* several, std::vector<ClassGradients>* out);
}  // namespace xgboost::dp
