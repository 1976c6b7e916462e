#include "plugin_cpp/row_bound.h"

#include <algorithm>  // for clamp, min
#include <cmath>      // for sqrt, ceil, nearbyint, isfinite, isnan
#include <cstdint>    // for int64_t

#include "plugin_cpp/noise/samplers.h"  // for IntegerSqrt
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
namespace {
/** @brief Nearest integer, clamped before the conversion: a cast out of range is undefined. */
std::int64_t Round(double value, std::int64_t lower, std::int64_t upper) {
  if (std::isnan(value)) {
    return 0;
  }
  return static_cast<std::int64_t>(std::clamp(
      std::nearbyint(value), static_cast<double>(lower), static_cast<double>(upper)));
}
}  // namespace

std::int64_t RowBound::MaxHessian() const {
  if (mode == Mode::kRowWeight) {
    return Unit();
  }
  double largest = std::ceil(std::sqrt(hessian_weight) * hessian_bound / gradient_bound *
                             static_cast<double>(Unit()));
  // The integers must stay exact as 32-bit floats. Written so that NaN fails too.
  CHECK(largest >= 0.0 && largest < 16777216.0)
      << "dp_plan: the Hessian bound exceeds the exact range of 32-bit floats.";
  return static_cast<std::int64_t>(largest);
}

std::int64_t RowBound::Sensitivity2() const {
  auto unit2 = Unit() * Unit();
  return mode == Mode::kRowWeight ? unit2 : unit2 + MaxHessian() * MaxHessian();
}

std::int64_t RowBound::RoundSensitivity2(std::int32_t n_groups) const {
  if (n_groups == 1) {
    return Sensitivity2();
  }
  // Every class is bounded by C on its own. With weights of at most w, the pairs of the classes
  // other than the row's own have norms of at most w p_k sqrt(1 + 4 r), the p_k sum to at most 1
  // (up to 32-bit rounding), and min(C, x)^2 <= C x. The rest covers the rounding to the grid.
  auto tree = Sensitivity2();
  auto most = n_groups * tree;
  double unit = static_cast<double>(Unit());
  double a = ((1.0 + 1e-5) * max_weight * std::sqrt(1.0 + 4.0 * hessian_weight) +
              1e-15 * n_groups * std::sqrt(hessian_weight)) /
             gradient_bound;
  if (max_weight == 0.0 || a >= n_groups) {
    return most;
  }
  return std::min(most, tree + n_groups + static_cast<std::int64_t>(std::ceil(
                                              a * (static_cast<double>(tree) + 1.5 * unit))));
}

double RowBound::GradientStep() const { return gradient_bound / static_cast<double>(Unit()); }

double RowBound::HessianStep() const {
  return gradient_bound / (std::sqrt(hessian_weight) * static_cast<double>(Unit()));
}

std::pair<std::int64_t, std::int64_t> RowBound::Quantise(double g, double h) const {
  // A row that is not a number must not count differently from one that is.
  if (!std::isfinite(g) || !std::isfinite(h)) {
    return {0, 0};
  }
  auto unit = Unit();
  double to_grid = static_cast<double>(unit) / gradient_bound;
  double root = std::sqrt(hessian_weight);
  double s = 1.0;
  auto h_max = MaxHessian();
  if (mode == Mode::kRowWeight) {
    double norm = std::sqrt(g * g + hessian_weight * h * h);
    s = norm > gradient_bound ? gradient_bound / norm : 1.0;
  } else {
    g = std::clamp(g, -gradient_bound, gradient_bound);
    h = std::clamp(h, 0.0, hessian_bound);
  }
  auto q_g = Round(g * s * to_grid, -unit, unit);
  auto q_h = Round(root * h * s * to_grid, 0, h_max);
  if (mode == Mode::kRowWeight && q_g * q_g + q_h * q_h > unit * unit) {
    q_h = static_cast<std::int64_t>(IntegerSqrt(unit * unit - q_g * q_g));
  }
  return {q_g, q_h};
}
}  // namespace xgboost::dp
