/**
 * Bounded integers from the gradients of XGBoost, logistic loss or the plan's loss: every row is
 * clipped to the row bound and quantised, and the rows of a person are bounded together.
 *
 * All sums are sums of integers, so they do not depend on threads, pages or workers.
 *
 * Proof: docs/proofs/integer-grid.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

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
struct RoundLoss {
  Loss const* loss{nullptr};          // null if the plan has no loss of its own
  bool is_logistic{false};            // whether the row bound computes them from margins
  common::Span<float const> margins;  // row by row, all outputs of each
  std::int32_t round{0};
};

/**
 * @brief The integers of a row in one word, G 2^32 + H, so that one addition sums both.
 *
 * A sum or difference of such words, modulo 2^64, is correct if both results are at most kLimit.
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
  friend PackedPair operator-(PackedPair a, PackedPair b) {
    a.word_ -= b.word_;
    return a;
  }
  [[nodiscard]] std::int32_t Grad() const { return static_cast<std::int32_t>(word_ >> 32); }
  /** @brief Unpack both entries. H is never negative, so no borrow changes G. */
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
 * @brief Row-bounded integers of persons with several rows, for each class, in the order of
 *        Persons::GroupedRows: contiguous copies for loops over persons.
 */
using PersonRows = std::vector<std::vector<PackedPair>>;

/**
 * @brief Quantise the gradients of one round.
 *
 * @param persons Persons whose rows share a bound; null if each row has its own bound.
 * @param own     The loss of the plan, if it computes the gradients.
 * @param gpair   XGBoost's gradients, by row and class.
 * @param sample  Whether each row takes part; empty if all rows do.
 * @param several Receives the rows of persons with several rows, or null.
 * @param out     Receives the integers of each class.
 */
void QuantiseGradients(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                       Persons const* persons, RoundLoss const& own,
                       linalg::MatrixView<GradientPair const> gpair,
                       std::vector<std::uint8_t> const& sample, PersonRows* several,
                       std::vector<ClassGradients>* out);
}  // namespace xgboost::dp
