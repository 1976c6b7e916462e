/**
 * Which rows a round reads.
 *
 * Poisson subsampling: in every round each row takes part with the same public probability, by
 * coins that nobody sees. A row that does not take part contributes nothing to the round, which is
 * what amplifies its privacy; the coins must stay as secret as the noise.
 *
 * Disjoint parts: before an ensemble each row draws which of its rounds reads it, independently of
 * all values and of all other rows. A row takes part in one round only, so that the rounds of an
 * ensemble cost one of them (parallel composition). Each part has the same probability.
 *
 * Where the unit of privacy is a person, all rows of a person share its coins.
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
  /** @param test_key See MakeRandomSource. */
  RowSample(Plan const& plan, std::string const& test_key);

  /**
   * @brief Begin a round in the ledger, and draw its rows without looking at them.
   *
   * @param persons Whom the rows belong to; null where each row has coins of its own.
   *
   * @return One entry per local row, 1 for rows that take part; empty for all. Never shown to
   * anybody.
   */
  [[nodiscard]] std::vector<std::uint8_t> const& Draw(std::int32_t round, std::size_t n_rows,
                                                      Persons const* persons, Release* release);

 private:
  void DrawCoins(std::size_t n_units);
  void DrawParts(std::size_t n_units);

  Plan const& plan_;
  std::unique_ptr<RandomSource> coins_;  // null where every round reads all rows
  std::vector<std::uint16_t> parts_;     // which round of the ensemble reads a unit of privacy
  std::vector<std::uint8_t> units_;      // which units this round reads
  std::vector<std::uint8_t> rows_;       // of the same persons
};
}  // namespace xgboost::dp
