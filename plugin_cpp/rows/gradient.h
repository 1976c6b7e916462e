/**
 * From XGBoost's gradients, or those of a loss of the plan, to bounded integers: clip every row to
 * the row bound and quantise, and bound the rows of a person together.
 *
 * All sums are sums of integers, hence independent of threads, pages and workers.
 *
 * Proof: docs/proofs/integer-grid.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t, uint64_t, uint8_t
#include <vector>   // for vector

#include "plugin_cpp/loss/loss.h"       // for Loss
#include "plugin_cpp/plan/row_bound.h"  // for RowBound
#include "plugin_cpp/release/sums.h"    // for LocalSum
#include "plugin_cpp/rows/persons.h"    // for Persons
#include "xgboost/base.h"               // for GradientPair
#include "xgboost/context.h"            // for Context
#include "xgboost/data.h"               // for MetaInfo
#include "xgboost/linalg.h"             // for MatrixView
#include "xgboost/span.h"               // for Span

namespace xgboost::dp {
/** @brief The loss of a round, and what its rows predict before it. */
struct RoundLoss {
  Loss const* loss{nullptr};          // null where the gradients are XGBoost's
  common::Span<float const> margins;  // row by row, all outputs of each
  std::int32_t round{0};
};

/**
 * @brief The integers of a row in one word, which sums both by one addition: G 2^32 + H.
 *
 * A sum of such words is right while the entries of all its rows together stay below kLimit.
 */
class PackedPair {
 public:
  static constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - 1;

  PackedPair() = default;
  PackedPair(std::int64_t grad, std::int64_t hess)
      : word_{(static_cast<std::uint64_t>(grad) << 32) + static_cast<std::uint64_t>(hess)} {}

  PackedPair& operator+=(PackedPair that) {
    word_ += that.word_;
    return *this;
  }
  /** @brief Both entries; H is at least 0, so that nothing is borrowed from G. */
  [[nodiscard]] LocalSum Sum() const {
    return LocalSum{static_cast<std::int64_t>(word_) >> 32,
                    static_cast<std::int64_t>(word_ & 0xffffffffULL)};
  }

 private:
  std::uint64_t word_{0};
};

struct ClassGradients {
  std::vector<PackedPair> pairs;  // of the rows of this worker
  LocalSum total;                 // their exact sum
};

/**
 * @brief The integers within the bound of a row, of each class, of persons with several rows, in
 *        the order of Persons::RowsOfSeveral.
 *
 * They lie anywhere in the matrix. What is done person by person reads them one after the other.
 */
using RowsOfPersons = std::vector<std::vector<PackedPair>>;

/**
 * @brief Quantise the gradients of one round.
 *
 * @param persons Whose rows have a bound together, null where each row has its own.
 * @param own     The loss of the plan, which then makes the gradients; else none.
 * @param gpair   Gradients by row and class, as XGBoost makes them.
 * @param sample  Which rows take part; empty for all. The others count nothing.
 * @param several Rows of persons with several rows, if there are any; null if nobody asks.
 * @param out     One entry for each class.
 */
void QuantiseGradients(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                       Persons const* persons, RoundLoss const& own,
                       linalg::MatrixView<GradientPair const> gpair,
                       std::vector<std::uint8_t> const& sample, RowsOfPersons* several,
                       std::vector<ClassGradients>* out);
}  // namespace xgboost::dp
