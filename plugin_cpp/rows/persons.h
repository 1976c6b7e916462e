/**
 * The persons of the rows of a matrix, if the privacy unit is a person, and sums over privacy
 * units.
 *
 * They are stored next to the matrix and never in a model: no id, code or number of persons is
 * saved. XGBoost's `qid` is not suitable: it must be sorted, has 32 bits, and couples rows in
 * objectives.
 *
 * The order of the rows of a person depends only on these rows, not on other rows or their order in
 * the matrix. Numbers that are rounded row by row are therefore a function of the person.
 *
 * Proof: docs/proofs/persons.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for uint32_t, int64_t
#include <memory>   // for shared_ptr
#include <string>   // for string
#include <utility>  // for exchange
#include <vector>   // for vector

#include "common/threading_utils.h"   // for ParallelFor
#include "plugin_cpp/release/sums.h"  // for LocalInt
#include "xgboost/context.h"          // for Context
#include "xgboost/data.h"             // for DMatrix
#include "xgboost/logging.h"          // for CHECK
#include "xgboost/span.h"             // for Span

namespace xgboost::dp {
/** @brief Persons with the same number of rows, interleaved in Persons::GroupedRows. */
struct PersonGroup {
  std::size_t begin;
  std::uint32_t rows;     // per person, at least 2
  std::uint32_t persons;  // up to kMaxPersons; 1 with more than kMaxRows rows

  static constexpr std::uint32_t kMaxPersons = 16;
  static constexpr std::uint32_t kMaxRows = 16;

  [[nodiscard]] std::size_t Size() const { return std::size_t{rows} * persons; }
  /** @brief Position of row j of person l in Persons::GroupedRows. */
  [[nodiscard]] std::size_t At(std::size_t j, std::size_t l) const {
    return begin + j * persons + l;
  }
  /**
   * @brief Call a function with each j and l, and the position of the row in the group.
   *
   * @tparam kLanes At least the number of persons; if equal, the loop has a constant length.
   */
  template <std::size_t kLanes, typename Each>
  void ForEach(Each&& each) const {
    for (std::size_t j = 0; j < rows; ++j) {
      if (persons == kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) {
          each(j, l, j * kLanes + l);
        }
      } else {
        for (std::size_t l = 0; l < persons; ++l) {
          each(j, l, j * persons + l);
        }
      }
    }
  }
};

class Persons {
 public:
  /**
   * @param codes     The person of each row, below `n_persons`.
   * @param n_persons Number of persons of this worker, which has all of their rows.
   */
  Persons(common::Span<std::uint32_t const> codes, std::size_t n_persons);

  /** @brief Set the persons of a matrix, or null for none, and sort their rows. */
  static void Set(std::shared_ptr<DMatrix> const& p_fmat, std::shared_ptr<Persons> persons);
  [[nodiscard]] static std::shared_ptr<Persons const> Of(DMatrix const& fmat);
  /**
   * @brief Record that a release before the trees of a plan has used these persons. The record
   *        lasts until the next first release; Set does not change it.
   *
   * @param again Whether this is the second release of a plan. Fails if the first used other
   *              persons.
   */
  static void Keep(std::shared_ptr<DMatrix> const& p_fmat, std::string const& plan_id,
                   std::shared_ptr<Persons const> const& persons, bool again);
  /** @brief Fail if the last release of this plan used other persons. */
  static void CheckKept(DMatrix const& fmat, std::string const& plan_id,
                        std::shared_ptr<Persons const> const& persons);

  [[nodiscard]] std::size_t NumRows() const { return codes_.size(); }
  [[nodiscard]] std::size_t NumPersons() const { return counts_.size(); }
  [[nodiscard]] std::vector<std::uint32_t> const& Codes() const { return codes_; }
  [[nodiscard]] std::uint32_t NumRowsOfPerson(std::size_t row) const {
    return counts_[codes_[row]];
  }

  /** @brief Persons with several rows; the rows of each are sorted by their contents. */
  [[nodiscard]] std::vector<PersonGroup> const& Groups() const { return groups_; }
  /** @brief Their rows, group by group. */
  [[nodiscard]] std::vector<std::uint32_t> const& GroupedRows() const { return rows_; }
  /** @brief Rows of persons with one row, in order. */
  [[nodiscard]] std::vector<std::uint32_t> const& SingleRows() const { return singles_; }

 private:
  /** @brief Sort the rows of each person by their contents. */
  void SortRows(DMatrix* p_fmat);

  std::vector<std::uint32_t> codes_;   // of each row
  std::vector<std::uint32_t> counts_;  // rows of each person
  std::vector<PersonGroup> groups_;    // persons with several rows
  std::vector<std::uint32_t> rows_;    // their rows
  std::vector<std::uint32_t> singles_;
};

/**
 * @brief Exact sums over the rows of this worker. A person adds the mean of their rows, with each
 *        entry rounded towards zero, and therefore at most as much as one row.
 *
 * @param persons The persons of the rows; null if the unit is a row.
 * @param add_row Function add_row(row, add), which calls add(k, value) to contribute to the k-th
 *                sum.
 */
template <typename AddRow>
[[nodiscard]] std::vector<LocalInt> SumUnits(Context const* ctx, std::size_t n_rows,
                                             Persons const* persons, std::size_t n_sums,
                                             AddRow&& add_row) {
  CHECK(!persons || persons->NumRows() == n_rows);
  auto n_groups = persons ? persons->Groups().size() : 0;
  auto n_parts = static_cast<std::size_t>(ctx->Threads());
  std::vector<std::vector<std::int64_t>> parts(n_parts);
  common::ParallelFor(n_parts, ctx->Threads(), [&](auto part) {
    std::vector<std::int64_t> sums(n_sums), own(n_sums);
    std::vector<std::size_t> touched;
    for (auto i = n_rows * part / n_parts; i < n_rows * (part + 1) / n_parts; ++i) {
      if (!persons || persons->NumRowsOfPerson(i) == 1) {
        add_row(i, [&](std::size_t k, std::int64_t value) { sums[k] += value; });
      }
    }
    for (auto g = n_groups * part / n_parts; g < n_groups * (part + 1) / n_parts; ++g) {
      auto const& group = persons->Groups()[g];
      for (std::size_t l = 0; l < group.persons; ++l) {
        for (std::size_t j = 0; j < group.rows; ++j) {
          add_row(persons->GroupedRows()[group.At(j, l)], [&](std::size_t k, std::int64_t value) {
            own[k] += value;
            if (touched.size() < n_sums) {  // bounds the memory
              touched.push_back(k);
            }
          });
        }
        for (std::size_t t = 0; t < touched.size(); ++t) {
          auto k = touched.size() < n_sums ? touched[t] : t;  // a full list may be incomplete
          sums[k] += std::exchange(own[k], 0) / static_cast<std::int64_t>(group.rows);
        }
        touched.clear();
      }
    }
    parts[part] = std::move(sums);
  });
  std::vector<LocalInt> total(n_sums);
  for (auto const& sums : parts) {
    for (std::size_t k = 0; k < n_sums; ++k) {
      total[k].value += sums[k];
    }
  }
  return total;
}
}  // namespace xgboost::dp
