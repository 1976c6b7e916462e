/**
 * The inner loop of the recursion over selections (`xgb_dp/accounting/bounded_range.py`).
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <cstdint>  // for int64_t

namespace xgboost::dp {
/** \brief Two-point laws {t_j, t_j - eps0} on a grid, j = 0 .. m; names follow the proof. */
struct TwoPointDistributions {
  std::int64_t m;
  double const* q;      // P-probability of the loss t_j
  double const* p;      // 1 - q
  double const* dq;     // q_j - q_{j+1}
  double const* kappa;  // bound of q's departure from its chord
};

/**
 * \brief out[i] bounds max_t q_t V(x_i - t) + (1 - q_t) V(x_i - t + eps0) over all real t in
 *        [0, eps0], at n points.
 *
 * v[i] is V(x_i), readable from -m to n + m.
 */
void BackwardStep(double const* v, std::int64_t n, TwoPointDistributions const& laws, double* out);
}  // namespace xgboost::dp
