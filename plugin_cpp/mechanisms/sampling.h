/**
 * Random samples of rows.
 *
 * Poisson subsampling: in every round, each row takes part independently with the same public
 * probability. Other rows contribute nothing to the round, which amplifies privacy. The sample must
 * stay as secret as the noise.
 *
 * Disjoint parts: before an ensemble, each row is assigned to one of its rounds, uniformly and
 * independently of all values and other rows. The rounds of an ensemble therefore cost as much as a
 * single one (parallel composition).
 *
 * If the privacy unit is a person, all rows of a person are sampled together.
 *
 * Proof: docs/proofs/sampling.md
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, uint8_t, uint16_t
#include <memory>   // for unique_ptr
#include <string>   // for string
#include <vector>   // for vector

#include "plugin_cpp/plan/plan.h"        // for Plan
#include "plugin_cpp/random/chacha20.h"  // for RandomSource
#include "plugin_cpp/release/release.h"  // for Release
#include "plugin_cpp/rows/persons.h"     // for Persons

namespace xgboost::dp {
class RowSample {
 public:
  /** @param test_key Key of known noise, or empty; see MakeRandomSource. */
  RowSample(Plan const& plan, std::string const& test_key);

  /**
   * @brief Begin a round in the ledger, and draw its rows.
   *
   * @param persons The persons of the rows; null if the unit is a row.
   *
   * @return 1 for each local row that takes part, otherwise 0; empty if all rows do. Must stay
   *         secret.
   */
  [[nodiscard]] std::vector<std::uint8_t> const& Draw(std::int32_t round, std::size_t n_rows,
                                                      Persons const* persons, Release* release);

 private:
  void DrawSample(std::size_t n_units);
  void DrawParts(std::size_t n_units);

  Plan const& plan_;
  std::unique_ptr<RandomSource> source_;  // null if every round reads all rows
  std::vector<std::uint16_t> parts_;      // the round of each privacy unit in its ensemble
  std::vector<std::uint8_t> units_;       // whether this round reads a unit
  std::vector<std::uint8_t> rows_;        // the same for the rows of persons
};
}  // namespace xgboost::dp
