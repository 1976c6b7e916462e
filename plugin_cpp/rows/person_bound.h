/**
 * The bound of a person: all rows of a person together keep a bound of K rows, in any cells of any
 * tree.
 *
 * One factor scales the rows of a person. It depends on the norms with the worst labels and not on
 * the labels, so probabilities are not biased. Rounding errors are carried from row to row, so the
 * sums of a person keep their fractions. The bound is enforced on the integers. A person with one
 * row does not change.
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
/** @brief An integer times limit / size, rounded towards 0, if the size exceeds the limit. */
[[nodiscard]] inline std::int64_t ScaleDown(std::int64_t value, std::uint64_t limit,
                                            std::uint64_t size) {
  if (size <= limit) {
    return value;
  }
  auto part = static_cast<std::int64_t>(static_cast<u128>(std::abs(value)) * limit / size);
  return value < 0 ? -part : part;
}

/** @brief Norms of rows with the worst label, for C = 1, in the mode kPrediction. */
struct WorstNorms {
  float same{0};                 // the norm of all rows, unless
  float const* by_row{nullptr};  // each row has its own
};

/**
 * @brief Bound the persons with several rows.
 *
 * @param several Output for their rows before the bound, or null.
 * @param out     Row-bounded integers of each class, to be replaced.
 */
void BoundPersons(Context const* ctx, RowBound const& bound, Persons const& persons,
                  WorstNorms norms, PersonRows* several, std::vector<ClassGradients>* out);
}  // namespace xgboost::dp
