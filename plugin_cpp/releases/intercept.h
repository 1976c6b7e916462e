/**
 * Sums of the labels, and the number of rows, which are released before the first tree.
 *
 * A person adds the mean of what its rows add.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>   // for size_t
#include <cstdint>   // for int32_t, int64_t
#include <optional>  // for optional
#include <vector>    // for vector

#include "plugin_cpp/loss/loss.h"     // for LabelRange
#include "plugin_cpp/release/sums.h"  // for LocalInt
#include "plugin_cpp/rows/persons.h"  // for Persons
#include "xgboost/context.h"          // for Context
#include "xgboost/data.h"             // for DMatrix

namespace xgboost::dp {
/** @brief Rows of this worker, whose sums are in units of 2^-shift. */
struct UnitRows {
  Context const* ctx;
  DMatrix* matrix;
  Persons const* persons;  // null where each row counts one
  std::int32_t shift;

  /** @brief What a row adds that counts one. */
  [[nodiscard]] std::int64_t One() const { return std::int64_t{1} << shift; }
};

/** @brief The number of rows: each adds one. */
[[nodiscard]] std::vector<LocalInt> CountRows(UnitRows const& rows);

/** @brief The number of rows of each class: a row adds one to one of them. */
[[nodiscard]] std::vector<LocalInt> CountClasses(UnitRows const& rows, std::size_t n_class);

/**
 * @brief The number of labels in equal cells of their range, those beyond it at its ends: a row
 *        adds one to one of them.
 */
[[nodiscard]] std::vector<LocalInt> CountCells(UnitRows const& rows, LabelRange range,
                                               std::size_t n_cells);

/** @brief Cells of one number of every row. */
struct RowCells {
  enum class Of { kLabel, kTime, kWeight } of;  // kTime: the first of an interval
  std::vector<double> edges;                    // between them, rising
};
/** @brief The same for cells of other numbers: a row adds one to one of the cells of each. */
[[nodiscard]] std::vector<LocalInt> CountBetween(UnitRows const& rows,
                                                 std::vector<RowCells> const& lists);

struct LabelSums {
  std::vector<LabelRange> ranges{{0, 1}};  // of the label, or of each of several targets
  bool times{false};                       // labels are logarithms of the first times of intervals
  bool of_rows{true};                      // whether the number of rows follows
  std::optional<LabelRange> exposures{};   // the sum of exp(base_margin) is the last
};
/** @brief The sums of labels on [-1, 1], and what else is asked: a row adds at most one to each. */
[[nodiscard]] std::vector<LocalInt> SumLabels(UnitRows const& rows, LabelSums const& asked);
}  // namespace xgboost::dp
