/**
 * Copyright 2026, XGBoost-DP Contributors
 *
 * \file bounded_range.h
 * \brief Hockey-stick curve of an adaptive composition of bounded-range mechanisms.
 *
 * A selection by the exponential mechanism has a privacy loss that lies in one interval of length
 * eps0 (its *range*). What an adaptive sequence of such selections can leak at most is given by a
 * backward recursion, which is evaluated here as a rigorous upper bound on a grid, every rounding
 * included.
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <cstdint>  // for int64_t, int32_t
#include <vector>   // for vector

namespace xgboost::dp {
/** \brief `count` consecutive mechanisms of the same range. */
struct BoundedRangeStep {
  double eps0;         // range of the privacy loss, > 0
  std::int64_t count;  // how often it was run, >= 0
};

/** \brief Points (i - n_below) * step for i in [0, n_below + n_above]; 0 is one of them. */
struct LossGrid {
  double step;
  std::int64_t n_below;
  std::int64_t n_above;

  [[nodiscard]] std::int64_t Size() const { return n_below + n_above + 1; }
};

/**
 * \brief Upper bounds of the hockey-stick curve sup_S P(S) - e^x Q(S) at the points of the grid.
 *
 * Non-increasing, in [0, 1], valid for both orders of the two neighbours.
 *
 * \param steps     The mechanisms in the order in which they were released.
 * \param grid      step in (0, 0.5]; n_below, n_above >= 0. Any choice is valid, a poor one is
 *                  merely loose.
 * \param n_threads At most this many threads; the result does not depend on it.
 */
[[nodiscard]] std::vector<double> BoundedRangeCurve(std::vector<BoundedRangeStep> const& steps,
                                                    LossGrid const& grid, std::int32_t n_threads);
}  // namespace xgboost::dp
