/**
 * Sums over the units of privacy: rows, or the means of the rows of persons.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t
#include <utility>  // for exchange
#include <vector>   // for vector

#include "common/threading_utils.h"   // for ParallelFor
#include "plugin_cpp/release/sums.h"  // for LocalInt
#include "plugin_cpp/rows/persons.h"  // for Persons
#include "xgboost/context.h"          // for Context
#include "xgboost/logging.h"          // for CHECK

namespace xgboost::dp {
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
            touched.push_back(k);
          });
        }
        for (auto k : touched) {
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
