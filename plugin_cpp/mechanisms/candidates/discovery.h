/**
 * Rough quantiles of numeric columns for xgb_dp.discover, by the same quantile trees as in
 * training.
 *
 * A row weighs 2^shift, or less if its person has several rows: all rows of a person weigh at most
 * 2^shift together. On every level of a tree a row is in one node; a row with a missing value
 * counts only in the number of missing cells. One row (or person) therefore changes the counts of a
 * column by a vector of squared length at most levels * 4^shift.
 *
 * Proof: docs/proofs/discovery.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t
#include <string>   // for string

#include "xgboost/context.h"  // for Context
#include "xgboost/span.h"     // for Span

namespace xgboost::dp {
/**
 * @brief Release the counts of all columns, and derive cuts from them.
 * @param values    The values, column by column; each is finite, or NaN if it is missing.
 * @param weights   The weight of each row, from 0 to 2^shift.
 * @param n_columns Number of columns, at least one.
 * @param request   JSON: levels, max_bin, shift, sigma2, persons, private, noise_free, test_key.
 *
 * @return JSON: for each column `missing`, `leaves` as [low, high, count] and `cuts`; `events`.
 */
[[nodiscard]] std::string DiscoverNumbers(Context const* ctx, common::Span<float const> values,
                                          common::Span<std::int64_t const> weights,
                                          std::size_t n_columns, std::string const& request);
}  // namespace xgboost::dp
