/**
 * Rows as a loss reads them, block by block: margins and labels of XGBoost, within their bounds.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t

#include "plugin_cpp/loss/loss.h"       // for Loss
#include "plugin_cpp/plan/row_bound.h"  // for RowBound
#include "xgboost/data.h"               // for MetaInfo
#include "xgboost/span.h"               // for Span

namespace xgboost::dp {
/** @brief The loss of a round, and what its rows predict before it. */
struct RoundLoss {
  Loss const* loss{nullptr};          // null where the gradients are XGBoost's
  common::Span<float const> margins;  // row by row, all outputs of each
  std::int32_t round{0};
};

/** @brief Makes the pairs of some rows. */
class LossBlock {
 public:
  LossBlock(RoundLoss const& own, RowBound const& bound, MetaInfo const& info)
      : own_{own}, bound_{bound}, info_{info} {}

  /**
   * @param weights Of the rows of the block, within their bound.
   * @param g,h     Output by output.
   * @param norms   With the worst label, for a weight of one; of the mode kPrediction only.
   */
  void operator()(std::size_t begin, std::size_t n, double const* weights, double* g, double* h,
                  double* norms) const;

 private:
  RoundLoss const& own_;
  RowBound const& bound_;
  MetaInfo const& info_;
};
}  // namespace xgboost::dp
