/**
 * From XGBoost's gradients to bounded integers: clip every row to the row bound and quantise.
 *
 * The integers are stored as 32-bit floats (|q| < 2^24) so that XGBoost's histograms sum them.
 * All sums are exact in double up to 2^53, hence independent of threads, pages and workers.
 *
 * Proof: docs/proofs/integer-grid.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstdint>  // for int64_t, uint8_t
#include <vector>   // for vector

#include "plugin_cpp/row_bound.h"  // for RowBound
#include "xgboost/base.h"          // for GradientPair
#include "xgboost/context.h"       // for Context
#include "xgboost/data.h"          // for MetaInfo
#include "xgboost/linalg.h"        // for MatrixView

namespace xgboost::dp {
/** @brief Exact sums of the integers of a set of rows. */
struct GradientSum {
  std::int64_t grad{0};
  std::int64_t hess{0};

  GradientSum& operator+=(GradientSum const& that) {
    grad += that.grad;
    hess += that.hess;
    return *this;
  }
  friend GradientSum operator-(GradientSum a, GradientSum const& b) {
    a.grad -= b.grad;
    a.hess -= b.hess;
    return a;
  }
  friend GradientSum operator+(GradientSum a, GradientSum const& b) { return a += b; }
};

/**
 * @brief Quantise the gradients of one tree.
 *
 * @param gpair  Gradients of one class or target, one per row.
 * @param sample Which rows take part; empty for all. The others count nothing.
 * @param out    Integers, as floats.
 *
 * @return The exact sum over the rows of this worker.
 */
GradientSum QuantiseGradients(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                              linalg::MatrixView<GradientPair const> gpair,
                              std::vector<std::uint8_t> const& sample,
                              std::vector<GradientPair>* out);
}  // namespace xgboost::dp
