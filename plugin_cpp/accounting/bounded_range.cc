/**
 * The inner loop of the recursion over selections (`xgb_dp/accounting/bounded_range.py`). The proof
 * shows that it computes an upper bound. Variables are named as in the proof.
 *
 * Proof: docs/proofs/accounting.md
 */
#include <algorithm>  // for min, fill_n
#include <cstdint>    // for int64_t

#include "c_api/c_api_error.h"  // for API_BEGIN, API_END
#include "plugin_cpp/simd.h"    // for XGB_DP_SIMD
#include "xgboost/c_api.h"      // for XGB_DLL
#include "xgboost/logging.h"    // for CHECK

#if defined(__GNUC__) && !defined(__clang__)
// GCC vectorises a maximum only if it may assume that comparisons do not trap. A function with this
// attribute cannot inline other functions.
#define XGB_DP_NO_TRAPS __attribute__((optimize("no-trapping-math")))
#else
#define XGB_DP_NO_TRAPS
#endif

namespace xgboost::dp {
namespace {
constexpr std::int64_t kBlock = 1024;  // points, so that the curves of a block fit the L1 cache

/** @brief Two-point distributions on {t_j, t_j - eps0} for t_j on a grid, j = 0 .. m. */
struct TwoPointDistributions {
  std::int64_t m;
  double const* q;      // P-probability of the loss t_j
  double const* p;      // 1 - q
  double const* dq;     // q_j - q_{j+1}
  double const* kappa;  // upper bound on the distance between q and its chord
};

/**
 * @brief Raise out[i] to the bound of q_t V(x_i - t) + (1 - q_t) V(x_i - t + eps0) over all real t
 *        between t_j and t_{j+1}, at n points.
 *
 * v0[i] is V(x_i - t_j), and w0[i] is V(x_i - t_j + eps0). The function calls no other function,
 * see XGB_DP_NO_TRAPS. Without FMA, every machine computes the same bound, so a calibration does
 * not depend on the host.
 */
XGB_DP_SIMD XGB_DP_NO_TRAPS void RaiseToSegment(double const* __restrict v0,
                                                double const* __restrict w0, double* __restrict out,
                                                std::int64_t n, double q0, double p0, double q1,
                                                double p1, double dq, double kappa) {
  double const* v1 = v0 - 1;
  double const* w1 = w0 - 1;
  for (std::int64_t i = 0; i < n; ++i) {
    double const left = q0 * v0[i] + p0 * w0[i];
    double const right = q1 * v1[i] + p1 * w1[i];
    double const gap_left = v0[i] - w0[i];
    double const gap_right = v1[i] - w1[i];
    // Between grid points, the value is at most a chord plus a parabola with this curvature.
    double const bend =
        dq * (gap_right - gap_left) + kappa * (gap_left < gap_right ? gap_right : gap_left);
    double const rise = left < right ? right - left : left - right;
    double const high = left < right ? right : left;
    double const bump = bend - rise;
    double const bound = high + 0.25 * (bump > 0.0 ? bump : 0.0);
    out[i] = out[i] < bound ? bound : out[i];
  }
}
/**
 * @brief out[i] bounds max_t q_t V(x_i - t) + (1 - q_t) V(x_i - t + eps0) over all real t in
 *        [0, eps0], at n points.
 *
 * v[i] is V(x_i), readable from -m to n + m.
 */
void BackwardStep(double const* v, std::int64_t n, TwoPointDistributions const& grid, double* out) {
  std::fill_n(out, n, 0.0);
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    for (std::int64_t j = 0; j < grid.m; ++j) {
      auto const* near = v + begin - j;
      RaiseToSegment(near, near + grid.m, out + begin, std::min(kBlock, n - begin), grid.q[j],
                     grid.p[j], grid.q[j + 1], grid.p[j + 1], grid.dq[j], grid.kappa[j]);
    }
  }
}
}  // namespace

/**
 * @brief One step of the recursion over composed selections.
 * @param curve         The curve at n points, with m more points on either side.
 * @param n             Number of points.
 * @param m             Number of grid steps in the range of a selection.
 * @param distributions Arrays q, p, dq and kappa, with m + 1 numbers each.
 * @param out           Receives the next curve at n points.
 */
XGB_DLL int XGDPBoundedRangeStep(double const* curve, std::int64_t n, std::int64_t m,
                                 double const* distributions, double* out) {
  API_BEGIN();
  CHECK(curve && distributions && out && n > 0 && m > 0);
  auto const row = m + 1;
  auto const* q = distributions;
  BackwardStep(curve + m, n, {m, q, q + row, q + 2 * row, q + 3 * row}, out);
  API_END();
}
}  // namespace xgboost::dp
