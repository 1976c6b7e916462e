// The proof that this is an upper bound is docs/proofs/accounting.md; names follow it.
#include "plugin_cpp/accounting/bounded_range.h"

#include <algorithm>  // for min, fill_n

#include "plugin_cpp/simd.h"  // for XGB_DP_SIMD

#if defined(__GNUC__) && !defined(__clang__)
// GCC vectorises a maximum only if it may assume that comparisons do not trap. A function with
// this attribute inlines nothing.
#define XGB_DP_NO_TRAPS __attribute__((optimize("no-trapping-math")))
#else
#define XGB_DP_NO_TRAPS
#endif

namespace xgboost::dp {
namespace {
constexpr std::int64_t kBlock = 1024;  // points of one block, its curves stay in the L1 cache

/**
 * \brief Raise out[i] to the bound of q_t V(x_i - t) + (1 - q_t) V(x_i - t + eps0) over all real t
 *        between t_j and t_{j+1}, at n points.
 *
 * v0[i] is V(x_i - t_j), w0[i] is V(x_i - t_j + eps0). It calls nothing: see XGB_DP_NO_TRAPS.
 * Without FMA every machine computes the same bound: a calibration does not depend on the host.
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
    // In between, the value is at most a chord plus a parabola of this bend.
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

void BackwardStep(double const* v, std::int64_t n, TwoPointDistributions const& laws, double* out) {
  std::fill_n(out, n, 0.0);
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    for (std::int64_t j = 0; j < laws.m; ++j) {
      auto const* near = v + begin - j;
      RaiseToSegment(near, near + laws.m, out + begin, std::min(kBlock, n - begin), laws.q[j],
                     laws.p[j], laws.q[j + 1], laws.p[j + 1], laws.dq[j], laws.kappa[j]);
    }
  }
}
}  // namespace xgboost::dp
