#include "plugin_cpp/split/score.h"

#include <algorithm>  // for max
#include <cmath>      // for sqrt, ceil
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint64_t
#include <vector>     // for vector

#include "plugin_cpp/random/exponential.h"  // for SelectExponential, SelectArgmax
#include "xgboost/logging.h"               // for CHECK
#include "xgboost/span.h"                  // for Span

namespace xgboost::dp {
namespace {
// Utilities are floored to integers and computed in double with values of at most 2^53: the error is
// below 16 units, four times of which the range must absorb.
constexpr double kSlack = 64.0;

// One unit of utility is C / B, so that all scores of C = 1 have comparable scales.
double Unit(Plan const& plan) { return static_cast<double>(plan.row_bound.Unit()); }

/** @brief sup over rows of max - min over |w| <= tau of -(2 w g + h w^2), where C = 1. */
double NewtonRange(Plan const& plan) {
  auto const& bound = plan.row_bound;
  double tau = plan.tau;
  double r = bound.hessian_weight;
  if (bound.mode != RowBound::Mode::kRowWeight) {
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
      to_count_{1.0 / static_cast<double>(RowQuantiser{plan.row_bound}(0.0, 1.0).second)},
      lambda_{plan.leaf.lambda},
      unit_{Unit(plan)} {}

std::uint64_t ScoreRange(Plan const& plan) {
  double unit = Unit(plan);
  double range = 2.0 * unit;
  if (plan.score == Score::kNewton) {
    range = std::ceil(NewtonRange(plan) * unit * (1.0 + 1e-12)) + kSlack;
  } else if (plan.score == Score::kGain) {
    // The change lies in (-3, 1] for every lambda.
    range = 4.0 * unit + kSlack;
  }
  // Checked as a double, before any conversion; written so that NaN fails too.
  CHECK(range >= 1.0 && range < static_cast<double>(kMaxScoreRange))
      << "dp_plan: the range of the split score does not fit. Lower the weight clip of the score.";
  return static_cast<std::uint64_t>(range);
}

double UtilityOfOneNat(Plan const& plan) {
  if (plan.eps_num == 0) {
    return 0.0;
  }
  return static_cast<double>(ScoreRange(plan)) * 1099511627776.0 /  // 2^kEpsBits
         static_cast<double>(plan.eps_num);
}

std::size_t SelectCandidate(Plan const& plan, RandomSource* rng,
                            std::vector<std::int64_t> const& utilities) {
  common::Span<std::int64_t const> span{utilities.data(), utilities.size()};
  return plan.noise_free
             ? SelectArgmax(span)
             : SelectExponential(rng, span, plan.eps_num, ScoreRange(plan) << Plan::kEpsBits);
}
}  // namespace xgboost::dp
