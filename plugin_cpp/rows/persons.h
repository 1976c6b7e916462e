/**
 * Who the rows of a matrix belong to, where the unit of privacy is a person, and sums over units.
 *
 * The table lives beside the matrix, never in a model: no id, code or number of persons is saved.
 * XGBoost's own `qid` would have to be sorted, has 32 bits, and couples rows in objectives.
 *
 * The rows of a person have an order that is theirs alone, whatever other rows there are and
 * however all of them came to lie: what is rounded row by row is a function of the person.
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
/** @brief Persons with as many rows each, side by side in Persons::RowsOfSeveral. */
struct PersonGroup {
  std::size_t begin;
  std::uint32_t rows;     // of each, several
  std::uint32_t persons;  // kMost, or as many as are left; those with more than kShort rows: 1

  static constexpr std::uint32_t kMost = 16;
  static constexpr std::uint32_t kShort = 16;

  [[nodiscard]] std::size_t Size() const { return std::size_t{rows} * persons; }
  /** @brief Where row j of person l is in Persons::RowsOfSeveral. */
  [[nodiscard]] std::size_t At(std::size_t j, std::size_t l) const {
    return begin + j * persons + l;
  }
  /**
   * @brief Calls a function with each j and l, and the place of that row among those of the group.
   *
   * @param kLanes At least as many as persons: a loop of a fixed length where they are equal.
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
   * @param codes     Of the person of each row, below `n_persons`.
   * @param n_persons Of this worker, on which all rows of each of them are.
   */
  Persons(common::Span<std::uint32_t const> codes, std::size_t n_persons);

  /** @brief The persons of a matrix from here on, whose rows get their order; null for none. */
  static void Set(std::shared_ptr<DMatrix> const& p_fmat, std::shared_ptr<Persons> persons);
  [[nodiscard]] static std::shared_ptr<Persons const> Of(DMatrix const& fmat);
  /**
   * @brief Remember that a release before the trees of a plan has read these persons, until
   *        another first release. Setting others, or none, does not change that.
   *
   * @param again For the second release of a plan; fails if the first one has read others.
   */
  static void Keep(std::shared_ptr<DMatrix> const& p_fmat, std::string const& plan_id,
                   std::shared_ptr<Persons const> const& persons, bool again);
  /** @brief Fails if the last release of this plan has read others. */
  static void CheckKept(DMatrix const& fmat, std::string const& plan_id,
                        std::shared_ptr<Persons const> const& persons);

  [[nodiscard]] std::size_t NumRows() const { return codes_.size(); }
  [[nodiscard]] std::size_t NumPersons() const { return counts_.size(); }
  [[nodiscard]] std::vector<std::uint32_t> const& Codes() const { return codes_; }
  [[nodiscard]] std::uint32_t RowsOf(std::size_t row) const { return counts_[codes_[row]]; }

  /** @brief Those with several rows; the rows of each are ordered by what they hold. */
  [[nodiscard]] std::vector<PersonGroup> const& Groups() const { return groups_; }
  /** @brief The rows of all of them, group by group. */
  [[nodiscard]] std::vector<std::uint32_t> const& RowsOfSeveral() const { return rows_; }
  /** @brief The others, in order. */
  [[nodiscard]] std::vector<std::uint32_t> const& RowsOfOne() const { return singles_; }

 private:
  /** @brief Order the rows of each person by what they hold; rows alike are interchangeable. */
  void Arrange(DMatrix* p_fmat);

  std::vector<std::uint32_t> codes_;   // of each row
  std::vector<std::uint32_t> counts_;  // rows of each person
  std::vector<PersonGroup> groups_;    // of persons with several rows
  std::vector<std::uint32_t> rows_;    // theirs
  std::vector<std::uint32_t> singles_;
};

/**
 * @brief Exact sums over the rows of this worker. A person adds the mean of what its rows add, each
 *        entry rounded towards zero: no more than one row may.
 *
 * @param persons Whom the rows belong to; null where each row counts one.
 * @param add_row add_row(row, add): calls add(k, value) for what the row adds to the k-th sum.
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
      if (!persons || persons->RowsOf(i) == 1) {
        add_row(i, [&](std::size_t k, std::int64_t value) { sums[k] += value; });
      }
    }
    for (auto g = n_groups * part / n_parts; g < n_groups * (part + 1) / n_parts; ++g) {
      auto const& group = persons->Groups()[g];
      for (std::size_t l = 0; l < group.persons; ++l) {
        for (std::size_t j = 0; j < group.rows; ++j) {
          add_row(persons->RowsOfSeveral()[group.At(j, l)], [&](std::size_t k, std::int64_t value) {
            own[k] += value;
            if (touched.size() < n_sums) {  // memory does not grow with the rows of a person
              touched.push_back(k);
            }
          });
        }
        for (std::size_t t = 0; t < touched.size(); ++t) {
          auto k = touched.size() < n_sums ? touched[t] : t;  // a full list may lack some
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
