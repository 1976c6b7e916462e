/**
 * The loops of the recursion over selections (`xgb_dp/accounting/bounded_range.py`). The proof
 * shows that they compute an upper bound. Variables are named as in the proof.
 *
 * Proof: docs/proofs/accounting.md
 */
#include <algorithm>  // for copy_n, fill, fill_n, min
#include <cstdint>    // for int64_t
#include <vector>     // for vector

#include "c_api/c_api_error.h"  // for API_BEGIN, API_END
#include "plugin_cpp/simd.h"    // for XGB_DP_WIDE_SIMD
#include "xgboost/c_api.h"      // for XGB_DLL
#include "xgboost/logging.h"    // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::int64_t kBlock = 1024;  // points, so that the curves of a block fit the L1 cache

/**
 * @brief Raise out[i] to the bound of q_t V(x_i - t) + (1 - q_t) V(x_i - t + eps0) over all real t
 *        between t_j and t_{j+1}, at n points.
 *
 * v0[i] is V(x_i - t_j), and w0[i] is V(x_i - t_j + eps0). Without FMA, every machine computes the
 * same bound, so a calibration does not depend on the host.
 */
XGB_DP_WIDE_SIMD void RaiseToSegment(double const* __restrict v0, double const* __restrict w0,
                                     double* __restrict out, std::int64_t n, double q0, double p0,
                                     double q1, double p1, double dq, double kappa) {
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
}  // namespace

/**
 * @brief Equal steps of the recursion over composed selections. Each replaces V(x) by a bound of
 *        max_t q_t V(x - t) + (1 - q_t) V(x - t + eps0) over all real t in [0, eps0].
 * @param count         Number of steps.
 * @param n             Number of points.
 * @param m             Number of grid steps in the range of a selection.
 * @param distributions Arrays q, p = 1 - q, dq (q_j - q_{j+1}) and kappa (an upper bound on the
 *                      distance between q and its chord), with m + 1 numbers each.
 * @param growth        How much larger the curve may be at the m points below the first.
 * @param curve         The curve at n points, replaced by the last curve.
 */
XGB_DLL int XGDPBoundedRangeSteps(std::int64_t count, std::int64_t n, std::int64_t m,
                                  double const* distributions, double const* growth,
                                  double* curve) {
  API_BEGIN();
  CHECK(distributions && growth && curve && n > 0 && m > 0);
  auto const *q = distributions, *p = q + m + 1, *dq = p + m + 1, *kappa = dq + m + 1;
  std::vector<double> padded(n + 2 * m);
  for (; count > 0; --count) {
    for (std::int64_t i = 0; i < m; ++i) {
      padded[i] = std::min(curve[0] + growth[i], 1.0);
    }
    std::fill(std::copy_n(curve, n, padded.begin() + m), padded.end(), curve[n - 1]);
    auto end = n;  // the first steps leave the curve 0 beyond the largest possible loss
    while (end > 0 && curve[end - 1] == 0.0) {
      --end;
    }
    end = std::min(n, end + m);
    std::fill_n(curve, end, 0.0);
    for (std::int64_t begin = 0; begin < end; begin += kBlock) {
      for (std::int64_t j = 0; j < m; ++j) {
        auto const* near = padded.data() + m + begin - j;
        RaiseToSegment(near, near + m, curve + begin, std::min(kBlock, end - begin), q[j], p[j],
                       q[j + 1], p[j + 1], dq[j], kappa[j]);
      }
    }
  }
  API_END();
}
}  // namespace xgboost::dp
