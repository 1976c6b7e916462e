/**
 * What the columns of a sparse table hold, released before the first tree. The unit is a row.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "plugin_cpp/release/sums.h"        // for LocalInt
#include "plugin_cpp/releases/intercept.h"  // for UnitRows

namespace xgboost::dp {
/**
 * @brief For each of two classes, and each column in it, the sum over the rows whose cell of the
 *        column is above 0: 1 over the root of how many such cells a row has. So a row adds a
 *        vector of at most one.
 */
[[nodiscard]] std::vector<LocalInt> CellsByColumn(UnitRows const& rows, std::int64_t n_columns);

/** @brief The sum of the share of its columns that a row has: cells neither 0 nor missing. */
[[nodiscard]] LocalInt PresentCells(UnitRows const& rows, std::int64_t n_columns);
}  // namespace xgboost::dp
