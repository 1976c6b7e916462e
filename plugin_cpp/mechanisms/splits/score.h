/**
 * Integer utilities of split candidates.
 *
 * Their range is sup(change) - inf(change) when one row is added, over all candidates and valid
 * rows. The exponential mechanism divides by it. Computing utilities with an error of at most e
 * increases the range by at most 4 e.
 *
 * Proof: docs/proofs/constraints.md
 * Proof: docs/proofs/exponential-mechanism.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <algorithm>  // for clamp, max
#include <cmath>      // for floor
#include <cstdint>    // for int64_t
#include <cstdlib>    // for abs

#include "plugin_cpp/plan/plan.h"        // for Plan
#include "plugin_cpp/random/samplers.h"  // for IntegerSqrt128, u128
#include "plugin_cpp/release/sums.h"     // for GlobalSum

namespace xgboost::dp {
/**
 * @brief Convert a real utility to an integer. Clamping to a public interval cannot enlarge
 *        changes, and keeps rounding errors within the slack of the range.
 */
[[nodiscard]] inline std::int64_t AsUtility(double u) {
  constexpr double kLargest = 1125899906842624.0;  // 2^50
  return static_cast<std::int64_t>(std::floor(std::clamp(u, -kLargest, kLargest)));
}

struct RealSum {
  double grad;
  double denominator;  // of the weight: Hessians or rows, and lambda
};

/** @brief A unit of utility is C / B, so all scores for C = 1 have comparable scales. */
[[nodiscard]] inline double UtilityUnit(Plan const& plan) {
  return static_cast<double>(plan.row_bound.Unit());
}

// Every score is a supremum over the weights of both children. `operator()` is the part of one
// child. `Ordered` is the supremum over pairs in which the first weight is at most the second, for
// monotone constraints. A supremum over fewer weights has no larger range.

/** @brief |G_L| + |G_R|, exact on grid integers. */
class L1Score {
 public:
  explicit L1Score(Plan const&) {}
  [[nodiscard]] std::int64_t operator()(GlobalSum const& s) const { return std::abs(s.grad); }
  [[nodiscard]] std::int64_t Ordered(GlobalSum const& below, GlobalSum const& above) const {
    return std::max(std::abs(below.grad + above.grad), below.grad - above.grad);
  }
};

/** @brief max over |w| <= tau of -(2 w G + (H + lambda) w^2), the gain of a clipped Newton leaf. */
class NewtonScore {
 public:
  explicit NewtonScore(Plan const& plan)
      : to_grad_{1.0 / UtilityUnit(plan)},
        to_hess_{1.0 / (std::sqrt(plan.row_bound.hessian_weight) * UtilityUnit(plan))},
        lambda_{plan.leaf.lambda / plan.row_bound.gradient_bound},
        tau_{plan.score_clip},
        unit_{UtilityUnit(plan)} {}
  [[nodiscard]] std::int64_t operator()(GlobalSum const& s) const {
    auto [g, d] = this->Real(s);
    return AsUtility(this->Value(g, d, this->Weight(g, d)) * unit_);
  }
  [[nodiscard]] std::int64_t Ordered(GlobalSum const& below, GlobalSum const& above) const {
    auto [g_b, d_b] = this->Real(below);
    auto [g_a, d_a] = this->Real(above);
    double w_b = this->Weight(g_b, d_b), w_a = this->Weight(g_a, d_a);
    // Children with equal weights are scored as one leaf, because their two values could be large
    // and cancel.
    double value = w_b <= w_a
                       ? this->Value(g_b, d_b, w_b) + this->Value(g_a, d_a, w_a)
                       : this->Value(g_b + g_a, d_b + d_a, this->Weight(g_b + g_a, d_b + d_a));
    return AsUtility(value * unit_);
  }

 private:
  [[nodiscard]] RealSum Real(GlobalSum const& s) const {
    return {static_cast<double>(s.grad) * to_grad_,
            static_cast<double>(s.hess) * to_hess_ + lambda_};
  }
  [[nodiscard]] double Weight(double g, double d) const {
    return d > 0 ? std::clamp(-g / d, -tau_, tau_) : (g > 0 ? -tau_ : tau_);
  }
  [[nodiscard]] static double Value(double g, double d, double w) {
    return -(2.0 * w * g + d * w * w);
  }

  double to_grad_, to_hess_, lambda_, tau_, unit_;
};

/** @brief S^2 / (n + lambda), the published gain, for constant Hessians. */
class GainScore {
 public:
  explicit GainScore(Plan const& plan)
      : to_grad_{1.0 / UtilityUnit(plan)},
        to_count_{1.0 / static_cast<double>(RowQuantiser{plan.row_bound}(0.0, 1.0).second)},
        lambda_{plan.leaf.lambda},
        unit_{UtilityUnit(plan)} {}
  [[nodiscard]] std::int64_t operator()(GlobalSum const& s) const {
    auto [g, d] = this->Real(s);
    return AsUtility(Value(g, d) * unit_);
  }
  [[nodiscard]] std::int64_t Ordered(GlobalSum const& below, GlobalSum const& above) const {
    auto [g_b, d_b] = this->Real(below);
    auto [g_a, d_a] = this->Real(above);
    // The weights are -g / d, in order; otherwise both children share one.
    bool ordered = g_b * d_a >= g_a * d_b;
    return AsUtility((ordered ? Value(g_b, d_b) + Value(g_a, d_a) : Value(g_b + g_a, d_b + d_a)) *
                     unit_);
  }

 private:
  [[nodiscard]] RealSum Real(GlobalSum const& s) const {
    return {static_cast<double>(s.grad) * to_grad_,
            static_cast<double>(s.hess) * to_count_ + lambda_};
  }
  [[nodiscard]] static double Value(double g, double d) { return d > 0 ? g * g / d : 0.0; }

  double to_grad_, to_count_, lambda_, unit_;
};

/**
 * @brief For shared splits: the L2 norm of the sums of gradients of all classes, rounded down
 *        exactly.
 */
class ClassNorm {
 public:
  void Add(std::int64_t grad) {
    auto size = static_cast<std::uint64_t>(std::abs(grad));
    squares_ += static_cast<u128>(size) * size;
  }
  [[nodiscard]] std::int64_t Floor() const {
    return static_cast<std::int64_t>(IntegerSqrt128(squares_));
  }

 private:
  u128 squares_{0};
};

template <typename Fn>
void DispatchScore(Plan const& plan, Fn&& fn) {
  switch (plan.score) {
    case Score::kL1:
      return fn(L1Score{plan});
    case Score::kNewton:
      return fn(NewtonScore{plan});
    case Score::kGain:
      return fn(GainScore{plan});
  }
}
}  // namespace xgboost::dp
