/**
 * What is released before the first tree: the number of rows, sums of their labels, and what each
 * column says of the label. XGBoost would store the exact mean of the labels as `base_score`.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t
#include <memory>   // for shared_ptr
#include <string>   // for string
#include <vector>   // for vector

#include "plugin_cpp/release/release.h"  // for Release, NoiseEvent, LocalInt
#include "plugin_cpp/rows/persons.h"     // for Persons, SumUnits
#include "xgboost/context.h"             // for Context
#include "xgboost/data.h"                // for DMatrix, MetaInfo
#include "xgboost/json.h"                // for Json

namespace xgboost::dp {
/** @brief Rows of this worker, whose sums are in units of 2^-shift. */
struct UnitRows {
  Context const* ctx;
  DMatrix* matrix;
  Persons const* persons;  // null where each row counts one
  std::int32_t shift;

  [[nodiscard]] MetaInfo const& Info() const { return matrix->Info(); }
  /** @brief What a row adds that counts one. */
  [[nodiscard]] std::int64_t One() const { return std::int64_t{1} << shift; }
  /** @brief See SumUnits. */
  template <typename AddRow>
  [[nodiscard]] std::vector<LocalInt> Sum(std::size_t n_sums, AddRow&& add_row) const {
    return SumUnits(ctx, this->Info().num_row_, persons, n_sums, add_row);
  }
};

/** @brief Sums over all workers with noise. */
[[nodiscard]] Json NoisySums(NoiseEvent const& event, std::vector<LocalInt> const& sums,
                             Release* release);
/** @brief What was released, and its draw (absent without noise), as the answer to a request. */
[[nodiscard]] std::string Answer(Json released, Release const& release);

/**
 * @brief Release the sums that the request asks for.
 *
 * @param persons Whom the rows belong to, of which each adds the mean of its rows; null where each
 * row counts one. The trees of the plan that the request names are refused for others.
 * @param request JSON: unit, sigma2, shift and the kind of the sums: "rows" (CountRows), "binary",
 * "regression" or "targets" (SumLabels), "multiclass" (CountClasses), "cells" (CountCells), "range"
 * (CountBetween) or "columns" (CellsByColumn), each with its domain. Where another kind names the
 * number of `columns`, which needs the unit "row", PresentCells follows. The second release of a
 * plan says `again`, and is refused for other persons than the first.
 *
 * @return JSON: the noisy sums, in units of 2^-shift, and the draw (absent without noise).
 */
[[nodiscard]] std::string ReleaseBeforeTrees(Context const* ctx,
                                             std::shared_ptr<DMatrix> const& p_fmat,
                                             std::shared_ptr<Persons const> const& persons,
                                             std::string const& request);
}  // namespace xgboost::dp
