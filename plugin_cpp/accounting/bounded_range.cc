/**
 * Copyright 2026, XGBoost-DP Contributors
 *
 * The proof that this is an upper bound is docs/proofs/accounting.md; names follow it.
 */
#include "plugin_cpp/accounting/bounded_range.h"

#include <dmlc/logging.h>  // for CHECK

#include <algorithm>  // for max, min, copy_n, fill_n
#include <cmath>      // for exp, expm1, ceil, isfinite, abs
#include <cstddef>    // for size_t
#include <utility>    // for swap

#include "plugin_cpp/wide.h"  // for XGB_DP_WIDE

#if defined(__GNUC__) && !defined(__clang__)
// GCC vectorises a maximum only if it may assume that comparisons do not trap. A function with
// this attribute inlines nothing.
#define XGB_DP_NO_TRAPS __attribute__((optimize("no-trapping-math")))
#else
#define XGB_DP_NO_TRAPS
#endif

namespace xgboost::dp {
namespace {
constexpr std::int64_t kBlock = 1024;   // points of one task, its curves stay in the L1 cache
constexpr std::int64_t kMinHalo = 192;  // steps are tiled until the halo of a task is this wide
constexpr double kUnitRoundoff = 1.1102230246251565e-16;  // 2^-53

/** \brief Coefficients of the two-point laws {t_j, t_j - eps0}, t_j = j * h, eps0 = m * h. */
struct TwoPoint {
  std::int64_t m;
  std::vector<double> q;      // P-probability of the loss t_j
  std::vector<double> p;      // 1 - q, without cancellation
  std::vector<double> dq;     // q_j - q_{j+1}
  std::vector<double> kappa;  // bound of q's departure from its chord: see the proof

  TwoPoint(double eps0, double h) {
    // m * h >= eps0 also in exact arithmetic: a larger range dominates a smaller one.
    m = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(eps0 / h)));
    while (static_cast<double>(m) * h < eps0 * (1.0 + 4.0 * kUnitRoundoff)) {
      ++m;
    }
    auto const e = static_cast<double>(m) * h;
    auto const denominator = -std::expm1(-e);
    auto const growth = std::expm1(h);
    for (std::int64_t j = 0; j <= m; ++j) {
      auto const left = static_cast<double>(m - j) * h;  // eps0 - t_j
      auto const scaled = std::exp(-left) / denominator;
      q.push_back(-std::expm1(-left) / denominator);
      p.push_back(-std::expm1(-static_cast<double>(j) * h) * scaled);
      dq.push_back(scaled * growth);
      kappa.push_back(scaled * growth * growth);
    }
  }
};

/**
 * \brief Raise out[i] to the bound of q_t V(x_i - t) + (1 - q_t) V(x_i - t + eps0) over all real t
 *        between t_j and t_{j+1}, at n points.
 *
 * v0[i] is V(x_i - t_j), w0[i] is V(x_i - t_j + eps0). It calls nothing: see XGB_DP_NO_TRAPS.
 * Without FMA every machine computes the same bound: a calibration does not depend on the host.
 */
XGB_DP_WIDE XGB_DP_NO_TRAPS void RaiseToSegment(double const* __restrict v0,
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

/**
 * \brief One step of the recursion: out[i] bounds
 *        max_t q_t V(x_i - t) + (1 - q_t) V(x_i - t + eps0) over all real t in [0, eps0].
 *
 * v[i] is V(x_i), readable from -m to n + m.
 */
void BackwardStep(double const* v, double* out, std::int64_t n, TwoPoint const& law) {
  std::fill_n(out, n, 0.0);
  for (std::int64_t j = 0; j < law.m; ++j) {
    RaiseToSegment(v - j, v - j + law.m, out, n, law.q[j], law.p[j], law.q[j + 1], law.p[j + 1],
                   law.dq[j], law.kappa[j]);
  }
}

/** \brief `n_steps` steps of one law on the points [begin, end), all from the same old curve. */
void AdvanceBlock(std::vector<double> const& curve, LossGrid const& grid, TwoPoint const& law,
                  std::vector<double> const& below, std::int64_t n_steps, std::int64_t begin,
                  std::int64_t end, double* out) {
  auto const m = law.m;
  auto const halo = m * n_steps;
  auto const lo = std::max<std::int64_t>(begin - halo, 0);
  auto const hi = std::min<std::int64_t>(end + halo, grid.Size());
  auto const size = hi - lo;
  // One margin of m points at either side.
  std::vector<double> now(static_cast<std::size_t>(size + 2 * m), 0.0);
  std::vector<double> next(now.size(), 0.0);
  std::copy_n(curve.data() + lo, size, now.data() + m);
  bool const at_bottom = lo == 0;
  bool const at_top = hi == grid.Size();

  std::int64_t first = 0, last = size;
  for (std::int64_t s = 0; s < n_steps; ++s) {
    if (at_bottom) {
      // The curve falls by at most the growth of e^x: below the grid it is bounded by this.
      for (std::int64_t d = 1; d <= m; ++d) {
        now[m - d] = std::min(now[m] + below[d], 1.0);
      }
    } else {
      first += m;
    }
    if (at_top) {
      std::fill_n(now.data() + m + size, m, now[m + size - 1]);
    } else {
      last -= m;
    }
    BackwardStep(now.data() + m + first, next.data() + m + first, last - first, law);
    std::swap(now, next);
  }
  std::copy_n(now.data() + m + (begin - lo), end - begin, out);
}
}  // namespace

std::vector<double> BoundedRangeCurve(std::vector<BoundedRangeStep> const& steps,
                                      LossGrid const& grid, std::int32_t n_threads) {
  auto const h = grid.step;
  CHECK(h > 0.0 && h <= 0.5) << "The grid step must lie in (0, 0.5].";
  CHECK(grid.n_below >= 0 && grid.n_above >= 0 && grid.Size() <= (std::int64_t{1} << 28));
  CHECK_GE(n_threads, 1);

  // Nothing released: (1 - e^x)_+.
  auto const n = grid.Size();
  std::vector<double> curve(n, 0.0), updated(n, 0.0);
  for (std::int64_t i = 0; i < grid.n_below; ++i) {
    curve[i] = -std::expm1(-static_cast<double>(grid.n_below - i) * h);
  }

  double rounding = 64.0;  // relative error in units of 2^-53; every step is a sum of positives
  auto const x_min = -static_cast<double>(grid.n_below) * h;
  for (auto it = steps.crbegin(); it != steps.crend(); ++it) {
    CHECK(std::isfinite(it->eps0) && it->eps0 > 0.0) << "A range must be positive and finite.";
    CHECK_GE(it->count, 0);
    CHECK_LT(it->eps0 / h, 1e7) << "The grid is too fine for this range.";
    TwoPoint const law{it->eps0, h};
    std::vector<double> below(law.m + 1, 0.0);  // e^{x_min} - e^{x_min - d h}
    for (std::int64_t d = 1; d <= law.m; ++d) {
      below[d] = std::exp(x_min) * -std::expm1(-static_cast<double>(d) * h);
    }
    auto const tile = std::max<std::int64_t>(1, kMinHalo / law.m);
    auto const n_blocks = (n + kBlock - 1) / kBlock;
    for (std::int64_t done = 0; done < it->count; done += tile) {
      auto const n_steps = std::min(tile, it->count - done);
#pragma omp parallel for num_threads(n_threads) schedule(static)
      for (std::int64_t b = 0; b < n_blocks; ++b) {
        auto const begin = b * kBlock;
        AdvanceBlock(curve, grid, law, below, n_steps, begin, std::min(begin + kBlock, n),
                     updated.data() + begin);
      }
      std::swap(curve, updated);
    }
    rounding += static_cast<double>(it->count) * (64.0 + 8.0 * static_cast<double>(law.m) * h);
  }

  auto const slack = 1.0 + rounding * kUnitRoundoff;
  double smallest = 1.0;
  for (auto& value : curve) {
    // The true curve does not increase, so a smaller bound to the left bounds what follows too.
    smallest = std::min(smallest, value * slack + 1e-300);
    value = smallest;
  }
  return curve;
}
}  // namespace xgboost::dp
