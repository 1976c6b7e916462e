/**
 * Releases before the first tree. The first release counts the rows (all rows, by class, or by cell
 * of the label range) or sums the labels. XGBoost itself would store the exact mean label as
 * `base_score`, which is not private.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t
#include <memory>   // for shared_ptr
#include <string>   // for string
#include <vector>   // for vector

#include "plugin_cpp/json_reader.h"      // for JsonReader
#include "plugin_cpp/release/release.h"  // for Release, NoiseEvent, LocalInt
#include "plugin_cpp/rows/persons.h"     // for Persons, SumUnits
#include "xgboost/context.h"             // for Context
#include "xgboost/data.h"                // for DMatrix, MetaInfo
#include "xgboost/json.h"                // for Json

namespace xgboost::dp {
/** @brief A request and the rows of this worker. Sums are in units of 2^-shift. */
struct Request {
  JsonReader const& in;  // further fields
  Context const* ctx;
  DMatrix* matrix;
  Persons const* persons;  // null if the unit is a row
  std::int32_t shift;
  NoiseEvent event;
  Release* release;

  [[nodiscard]] MetaInfo const& Info() const { return matrix->Info(); }
  /** @brief The integer that represents a contribution of one. */
  [[nodiscard]] std::int64_t One() const { return std::int64_t{1} << shift; }
  /** @brief See SumUnits. */
  template <typename AddRow>
  [[nodiscard]] std::vector<LocalInt> Sum(std::size_t n_sums, AddRow&& add_row) const {
    return SumUnits(ctx, this->Info().num_row_, persons, n_sums, add_row);
  }
  /** @brief Noisy sums over all workers. */
  [[nodiscard]] Json Noisy(std::vector<LocalInt> const& sums) const;
};

[[nodiscard]] Json ReleaseLabelRange(Request const& request);  // label_range.cc
[[nodiscard]] Json ReleaseColumnSums(Request const& request);  // column_sums.cc

/**
 * @brief Make a requested release.
 *
 * @param persons The persons of the rows; each adds the mean of their rows. Null if the unit is a
 *                row. The trees of the plan must use the same persons.
 * @param request JSON: unit, sigma2, shift, the kind, and its domain. The second release of a plan
 *                has `again`, and must use the same persons as the first.
 *
 * @return JSON: the released sums in units of 2^-shift, and the draw (absent without noise).
 */
[[nodiscard]] std::string ReleaseBeforeTrees(Context const* ctx,
                                             std::shared_ptr<DMatrix> const& p_fmat,
                                             std::shared_ptr<Persons const> const& persons,
                                             std::string const& request);
}  // namespace xgboost::dp
