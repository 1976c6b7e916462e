/**
 * Utilities of split candidates, as integers, and their ranges.
 *
 * The range is sup(change) - inf(change) of a utility when one row is added, over all candidates
 * and valid rows; the exponential mechanism divides by it. A utility that is computed with error at
 * most e has its range enlarged by 4 e.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <algorithm>  // for clamp
#include <cmath>      // for floor
#include <cstdint>    // for int64_t, uint64_t
#include <cstdlib>    // for abs

#include "plugin_cpp/gradient.h"   // for GradientSum
#include "plugin_cpp/row_bound.h"  // for RowBound
#include "plugin_cpp/plan.h"       // for Plan

namespace xgboost::dp {
/**
 * @brief A real utility as an integer. Clamping to a public interval shortens changes, if anything,
 *        and keeps the floor and the arithmetic before it within the slack of the range.
 */
[[nodiscard]] inline std::int64_t AsUtility(double u) {
  constexpr double kLargest = 1125899906842624.0;  // 2^50
  return static_cast<std::int64_t>(std::floor(std::clamp(u, -kLargest, kLargest)));
}

/** @brief |G_L| + |G_R|, exact on grid integers. */
class L1Score {
 public:
  explicit L1Score(Plan const&) {}
  [[nodiscard]] std::int64_t operator()(GradientSum const& s) const { return std::abs(s.grad); }
};

/** @brief max over |w| <= tau of -(2 w G + (H + lambda) w^2), the gain of a clipped Newton leaf. */
class NewtonScore {
 public:
  explicit NewtonScore(Plan const& plan);
  [[nodiscard]] std::int64_t operator()(GradientSum const& s) const {
    double g = static_cast<double>(s.grad) * to_grad_;
    double d = static_cast<double>(s.hess) * to_hess_ + lambda_;
    double w = d > 0 ? std::clamp(-g / d, -tau_, tau_) : (g > 0 ? -tau_ : tau_);
    return AsUtility(-(2.0 * w * g + d * w * w) * unit_);
  }

 private:
  double to_grad_, to_hess_, lambda_, tau_, unit_;
};

/** @brief S^2 / (n + lambda), the published gain, for constant Hessians. */
class GainScore {
 public:
  explicit GainScore(Plan const& plan);
  [[nodiscard]] std::int64_t operator()(GradientSum const& s) const {
    double g = static_cast<double>(s.grad) * to_grad_;
    double d = static_cast<double>(s.hess) * to_count_ + lambda_;
    return d > 0 ? AsUtility(g * g / d * unit_) : 0;
  }

 private:
  double to_grad_, to_count_, lambda_, unit_;
};

/**
 * @brief Largest range, exclusive: with the bits of eps0 it must fit the denominator of the
 *        exponential mechanism. A denominator that wraps around would void the guarantee.
 */
inline constexpr std::uint64_t kMaxScoreRange = std::uint64_t{1} << (63 - Plan::kEpsBits);

/** @brief Range of the utility of `plan.score` under add/remove, in utility units. */
[[nodiscard]] std::uint64_t ScoreRange(Plan const& plan);

/** @brief Call `fn` with the score that the plan names. */
template <typename Fn>
auto DispatchScore(Plan const& plan, Fn&& fn) {
  switch (plan.score) {
    case Score::kNewton:
      return fn(NewtonScore{plan});
    case Score::kGain:
      return fn(GainScore{plan});
    default:
      return fn(L1Score{plan});
  }
}
}  // namespace xgboost::dp
