/**
 * Who the rows of a matrix belong to, where the unit of privacy is a person.
 *
 * The table lives beside the matrix, never in a model: no id, code or number of persons is saved.
 * XGBoost's own `qid` would have to be sorted, has 32 bits, and couples rows in objectives.
 *
 * The rows of a person have an order that is theirs alone, whatever other rows there are and
 * however all of them came to lie: what is rounded row by row is a function of the person.
 *
 * Proof: docs/proofs/persons.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for uint32_t
#include <memory>   // for shared_ptr
#include <vector>   // for vector

#include "xgboost/data.h"  // for DMatrix
#include "xgboost/span.h"  // for Span

namespace xgboost::dp {
class Persons {
 public:
  /**
   * @param codes     Of the person of each row, below `n_persons`.
   * @param n_persons Of this worker, on which all rows of each of them are.
   */
  Persons(common::Span<std::uint32_t const> codes, std::size_t n_persons);

  /** @brief The persons of a matrix from here on, whose rows get their order; null for none. */
  static void Set(std::shared_ptr<DMatrix> const& p_fmat, std::shared_ptr<Persons> persons);
  /** @brief The persons of a matrix, null if it has none. */
  [[nodiscard]] static std::shared_ptr<Persons const> Of(DMatrix const& fmat);

  /** @brief Number of rows that the table is for. */
  [[nodiscard]] std::size_t NumRows() const { return codes_.size(); }
  [[nodiscard]] std::size_t NumPersons() const { return counts_.size(); }
  /** @brief Codes by row. */
  [[nodiscard]] std::vector<std::uint32_t> const& Codes() const { return codes_; }
  /** @brief How many rows the person of a row has. */
  [[nodiscard]] std::uint32_t RowsOf(std::size_t row) const { return counts_[codes_[row]]; }

  /** @brief How many persons have several rows. */
  [[nodiscard]] std::size_t NumSeveral() const { return begins_.size() - 1; }
  /** @brief How many rows those before the i-th of them have. */
  [[nodiscard]] std::size_t BeginOf(std::size_t i) const { return begins_[i]; }
  /** @brief The rows of all of them, person by person. */
  [[nodiscard]] std::vector<std::uint32_t> const& RowsOfSeveral() const { return rows_; }
  /** @brief The rows of the i-th of them, ordered by what they hold. */
  [[nodiscard]] common::Span<std::uint32_t const> Several(std::size_t i) const {
    return {rows_.data() + begins_[i], begins_[i + 1] - begins_[i]};
  }

 private:
  /** @brief Order the rows of each person by what they hold; rows alike are interchangeable. */
  void Arrange(DMatrix* p_fmat);

  std::vector<std::uint32_t> codes_;   // of each row
  std::vector<std::uint32_t> counts_;  // rows of each person
  std::vector<std::uint32_t> rows_;    // of persons with several rows, person by person
  std::vector<std::size_t> begins_;    // of their rows
};
}  // namespace xgboost::dp
