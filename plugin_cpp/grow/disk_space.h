/**
 * Disk space for the bins of a matrix on disk, checked before anything is released.
 */
#pragma once

#include <cstdint>  // for uint64_t

#include "plugin_cpp/plan/plan.h"  // for Plan
#include "xgboost/data.h"          // for DMatrix, SparsePage

namespace xgboost::dp {
/** @brief Largest size of a binned page in bytes, except for quantile trees with very many cuts. */
[[nodiscard]] std::uint64_t BinnedSize(Plan const& plan, SparsePage const& page);

/** @brief Fail if `n_bytes` of binned pages do not fit beside a matrix on disk. */
void CheckDiskSpace(DMatrix* p_fmat, std::uint64_t n_bytes);
}  // namespace xgboost::dp
