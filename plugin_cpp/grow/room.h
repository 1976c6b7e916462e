/**
 * Whether the bins of a matrix on disk will have room. Called before anything is released.
 */
#pragma once

#include <cstdint>  // for uint64_t

#include "plugin_cpp/plan/plan.h"  // for Plan
#include "xgboost/data.h"          // for DMatrix, SparsePage

namespace xgboost::dp {
/** @brief The most bytes that a page takes, binned, but for quantile trees with very many cuts. */
[[nodiscard]] std::uint64_t BytesOfBins(Plan const& plan, SparsePage const& page);

/**
 * @brief Fail if the bins of a matrix on disk had no room beside it.
 *
 * @param n_bytes Of all pages, binned.
 */
void CheckRoom(DMatrix* p_fmat, std::uint64_t n_bytes);
}  // namespace xgboost::dp
