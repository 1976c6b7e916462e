#include "plugin_cpp/split/score.h"

#include <cmath>    // for sqrt, ceil
#include <cstdint>  // for uint64_t

namespace xgboost::dp {
namespace {
// Utilities are floored to integers and computed in double with values of at most 2^53: the error is
// below 16 units, four times of which the range must absorb.
constexpr double kSlack = 64.0;

// One unit of utility is C / B, so that all scores of C = 1 have comparable scales.
double Unit(Plan const& plan) { return static_cast<double>(plan.row_bound.Unit()); }
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
  auto const& bound = plan.row_bound;
  double unit = Unit(plan);
  switch (plan.score) {
    case Score::kNewton: {
      // sup - inf of -(2 w g + h w^2) over |w| <= tau and all (g, h) inside the row bound.
      double tau = plan.tau;
      double r = bound.hessian_weight;
      double below = bound.mode == RowBound::Mode::kRowWeight
                         ? std::sqrt(4.0 * tau * tau + tau * tau * tau * tau / r)
                         : 2.0 * tau + tau * tau * static_cast<double>(bound.MaxHessian()) /
                                           (std::sqrt(r) * unit);
      return static_cast<std::uint64_t>(
          std::ceil((2.0 * tau + below) * unit * (1.0 + 1e-9) + kSlack));
    }
    case Score::kGain:
      // The change lies in (-3, 1] for every lambda.
      return static_cast<std::uint64_t>(std::ceil(4.0 * unit + kSlack));
    default:
      return 2 * static_cast<std::uint64_t>(bound.Unit());
  }
}
}  // namespace xgboost::dp
