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

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint32_t, uint64_t
#include <cstdlib>  // for abs
#include <vector>   // for vector

#include "plugin_cpp/plan/row_bound.h"   // for RowBound
#include "plugin_cpp/random/samplers.h"  // for u128
#include "plugin_cpp/rows/gradient.h"    // for ClassGradients
#include "plugin_cpp/rows/persons.h"     // for Persons
#include "xgboost/context.h"             // for Context
#include "xgboost/span.h"                // for Span

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

class PersonBound {
 public:
  /** @param n_class Classes of a round. */
  PersonBound(RowBound const& bound, std::size_t n_class);

  /**
   * @brief Bound the persons with several rows.
   *
   * @param rows Of these persons. What is bounded is filled in.
   * @param out  Integers that keep the bound of a row, of each class; those of persons are
   * replaced.
   */
  void operator()(Context const* ctx, Persons const& persons, RowsOfPersons* rows,
                  std::vector<ClassGradients>* out) const;

 private:
  using Integers = std::vector<std::int64_t>;  // g and h, of some classes, of each row
  /** @brief Room for one person after the other. */
  struct Scratch {
    Integers given, kept;
  };

  /**
   * @brief Bound one person in some classes that have one norm.
   *
   * @param begin Of its rows.
   * @param n     How many they are.
   * @param first Of the classes.
   */
  void Bound(std::size_t begin, std::size_t n, std::size_t first, RowsOfPersons* rows,
             common::Span<LocalSum> change, Scratch* scratch) const;
  /** @brief Whether a size is surely within the limit, by an estimate that is never too small. */
  [[nodiscard]] bool IsSurelyWithin(Integers const& rows, std::size_t width) const;
  /** @brief The factor of a person. */
  [[nodiscard]] double Scale(common::Span<float const> norms, std::uint64_t size) const;
  /** @brief No less than the sum of the norms of the rows, in units of 2^-kBits. */
  [[nodiscard]] std::uint64_t Size(Integers const& rows, std::size_t width) const;

  bool is_ball_, by_prediction_;
  std::size_t joint_;  // classes that have one norm
  std::uint64_t unit_, h_max_;
  std::uint64_t limit_;  // of a size
  double most_;          // sum of norms, where C = 1
};
}  // namespace xgboost::dp
