/**
 * What is released before the first tree. The intercept is the first of it: the number of rows, of
 * each class, or of labels in cells; or sums of labels, whose exact mean XGBoost would store as
 * `base_score`. The file of each other release adds the kind of its requests.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t, uint32_t
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
/** @brief A request, and the rows of this worker, whose sums are in units of 2^-shift. */
struct Request {
  JsonReader const& in;  // what a kind needs besides
  Context const* ctx;
  DMatrix* matrix;
  Persons const* persons;  // null where each row counts one
  std::int32_t shift;
  NoiseEvent event;
  Release* release;

  [[nodiscard]] MetaInfo const& Info() const { return matrix->Info(); }
  /** @brief What a row adds that counts one. */
  [[nodiscard]] std::int64_t One() const { return std::int64_t{1} << shift; }
  /** @brief See SumUnits. */
  template <typename AddRow>
  [[nodiscard]] std::vector<LocalInt> Sum(std::size_t n_sums, AddRow&& add_row) const {
    return SumUnits(ctx, this->Info().num_row_, persons, n_sums, add_row);
  }
  /** @brief Sums over all workers with noise. */
  [[nodiscard]] Json Noisy(std::vector<LocalInt> const& sums) const;
};

/** @brief How the requests of a kind are answered. */
struct RequestKind {
  Json (*release)(Request const& asked);  // it reads what it needs of the request first
  char const* name;                       // of its draw
  std::uint32_t stream;       // of a key: no two releases before the same trees share one
  bool may_be_masked{true};   // whether workers may hide their sums from each other
  bool reads_columns{false};  // for which the unit is a row, and nobody knows how many there are
};
struct AddKind {
  AddKind(char const* kind, RequestKind how);
};

/**
 * @brief Release what the request asks for.
 *
 * @param persons Whom the rows belong to, of which each adds the mean of its rows; null where each
 * row counts one. The trees of the plan that the request names are refused for others.
 * @param request JSON: unit, sigma2, shift, the kind, and its domain. The second release of a plan
 * says `again`, and is refused for other persons than the first.
 *
 * @return JSON: what was released, sums in units of 2^-shift; and the draw (absent without noise).
 */
[[nodiscard]] std::string ReleaseBeforeTrees(Context const* ctx,
                                             std::shared_ptr<DMatrix> const& p_fmat,
                                             std::shared_ptr<Persons const> const& persons,
                                             std::string const& request);
}  // namespace xgboost::dp
