#include "plugin_cpp/split/score.h"

#include <algorithm>  // for max
#include <cmath>      // for sqrt, ceil
#include <cstdint>    // for uint64_t

namespace xgboost::dp {
namespace {
// Utilities are floored to integers and computed in double with values of at most 2^53: the error is
// below 16 units, four times of which the range must absorb.
constexpr std::uint64_t kSlack = 64;

// One unit of utility is C / B, so that all scores of C = 1 have comparable scales.
double Unit(Plan const& plan) { return static_cast<double>(plan.row_bound.Unit()); }

/** @brief sup over rows of max - min over |w| <= tau of -(2 w g + h w^2), where C = 1. */
double NewtonRange(Plan const& plan) {
  auto const& bound = plan.row_bound;
  double tau = plan.tau;
  double r = bound.hessian_weight;
  if (bound.mode == RowBound::Mode::kGradient) {
    double e = static_cast<double>(bound.MaxHessian()) / (std::sqrt(r) * Unit(plan));
    return tau * e <= 1.0 ? 4.0 * tau : (1.0 + tau * e) * (1.0 + tau * e) / e;
  }
  if (tau * tau <= 8.0 * r) {
    return 4.0 * tau;
  }
  double s = 0.5 * (1.0 - std::sqrt(1.0 - 8.0 * r / (tau * tau)));
  double corner = (tau * (1.0 + s)) * (tau * (1.0 + s)) / std::sqrt(tau * tau * s * s + r);
  return std::max(4.0 * tau, corner);
}
}  // namespace

NewtonScore::NewtonScore(Plan const& plan)
    : to_grad_{1.0 / Unit(plan)},
      to_hess_{1.0 / (std::sqrt(plan.row_bound.hessian_weight) * Unit(plan))},
      lambda_{plan.leaf.lambda / plan.row_bound.gradient_bound},
      tau_{plan.tau},
      unit_{Unit(plan)} {}

GainScore::GainScore(Plan const& plan)
    : to_grad_{1.0 / Unit(plan)},
      to_count_{1.0 / static_cast<double>(plan.row_bound.Quantise(0.0, 1.0).second)},
      lambda_{plan.leaf.lambda},
      unit_{Unit(plan)} {}

std::uint64_t ScoreRange(Plan const& plan) {
  double unit = Unit(plan);
  switch (plan.score) {
    case Score::kNewton:
      return static_cast<std::uint64_t>(std::ceil(NewtonRange(plan) * unit * (1.0 + 1e-12))) +
             kSlack;
    case Score::kGain:
      // The change lies in (-3, 1] for every lambda.
      return 4 * static_cast<std::uint64_t>(plan.row_bound.Unit()) + kSlack;
    default:
      return 2 * static_cast<std::uint64_t>(plan.row_bound.Unit());
  }
}
}  // namespace xgboost::dp
