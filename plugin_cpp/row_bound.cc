#include "plugin_cpp/row_bound.h"

#include <algorithm>  // for min
#include <cmath>      // for sqrt, ceil
#include <cstdint>    // for int64_t

#include "plugin_cpp/noise/samplers.h"  // for IntegerSqrt
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
std::int64_t RowBound::MaxHessian() const {
  if (mode == Mode::kRowWeight) {
    return Unit();
  }
  double largest = std::ceil(std::sqrt(hessian_weight) * hessian_bound / gradient_bound *
                             static_cast<double>(Unit()));
  // Blocks of some rows must fit half a word (PackedPair). Written so that NaN fails too.
  CHECK(largest >= 0.0 && largest < 16777216.0)
      << "dp_plan: the Hessian bound exceeds 2^24 steps of the grid.";
  return static_cast<std::int64_t>(largest);
}

std::int64_t RowBound::Sensitivity2() const {
  auto unit2 = Unit() * Unit();
  return mode == Mode::kRowWeight ? unit2 : unit2 + MaxHessian() * MaxHessian();
}

std::int64_t RowBound::SensitivityL1() const {
  if (mode == Mode::kRowWeight) {
    // |q_g| + |q_h| is an integer of at most sqrt(2 (q_g^2 + q_h^2)).
    return static_cast<std::int64_t>(IntegerSqrt(2 * Unit() * Unit()));
  }
  return Unit() + MaxHessian();
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
  // That needs Hessians which vanish with p_k. Unit Hessians fill every class up to C.
  if (unit_hessian || max_weight == 0.0 || a >= n_groups) {
    return most;
  }
  return std::min(most, tree + n_groups + static_cast<std::int64_t>(std::ceil(
                                              a * (static_cast<double>(tree) + 1.5 * unit))));
}

double RowBound::GradientStep() const { return gradient_bound / static_cast<double>(Unit()); }

double RowBound::HessianStep() const {
  return gradient_bound / (std::sqrt(hessian_weight) * static_cast<double>(Unit()));
}

RowQuantiser::RowQuantiser(RowBound const& bound)
    : scale_row_{bound.mode == RowBound::Mode::kRowWeight},
      filter_{bound.mode == RowBound::Mode::kFilter},
      c_{bound.gradient_bound},
      r_{bound.hessian_weight},
      root_{std::sqrt(bound.hessian_weight)},
      h_bound_{bound.hessian_bound},
      to_grid_{static_cast<double>(bound.Unit()) / bound.gradient_bound},
      unit_{static_cast<double>(bound.Unit())},
      h_max_{static_cast<double>(bound.MaxHessian())} {}
}  // namespace xgboost::dp
