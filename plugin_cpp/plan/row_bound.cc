#include "plugin_cpp/plan/row_bound.h"

#include <algorithm>  // for clamp, max, min

#include "plugin_cpp/loss/logistic.h"  // for Logistic
#include "plugin_cpp/simd.h"           // for XGB_DP_SIMD, XGB_DP_WIDE_SIMD
#include "xgboost/logging.h"           // for CHECK

namespace xgboost::dp {
namespace {
/** @brief Whether both are finite. A row with other numbers must contribute nothing. */
inline bool IsNumber(double g, double h) {
  int is_g = std::isfinite(g), is_h = std::isfinite(h);  // without a branch
  return (is_g & is_h) != 0;
}

struct ToGrid {
  double root, to_grid, unit, h_max;

  /**
   * @brief Multiply a finite pair by a factor and quantise it. The result is in the ball for any
   *        input.
   */
  void operator()(double g, double h, double factor, double* out_g, double* out_h) const {
    auto q_g = RoundWithin(g * factor * to_grid, -unit, unit);
    auto q_h = RoundWithin(root * h * factor * to_grid, 0.0, h_max);
    // Integers below 2^40: the floor of the floating-point root is exact.
    *out_g = q_g;
    *out_h = std::min(q_h, std::floor(std::sqrt(unit * unit - q_g * q_g)));
  }
};

/**
 * @brief Scale pairs by their own norms so that they meet the bound.
 *
 * Has no branches, so that vector instructions apply: roots and quotients take nearly all of the
 * time.
 */
XGB_DP_SIMD void ScaleRows(double c, double r, ToGrid quantise, double* g, double* h,
                           std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    bool is_number = IsNumber(g[i], h[i]);
    auto g_i = is_number ? g[i] : 0.0;
    auto h_i = is_number ? h[i] : 0.0;
    auto s = c / std::max(std::sqrt(g_i * g_i + r * h_i * h_i), c);  // exactly 1 within the bound
    quantise(g_i, h_i, s, g + i, h + i);
  }
}

struct LargestNorm {
  double c, r;
  double positive;      // weight of positive rows
  double least_weight;  // smallest weight in the norm of a row
  double unit_hessian;  // 1 for unit Hessians, else 0
};

/**
 * @brief Compute pairs of logistic loss, and scale them by the larger of the norms for both labels,
 *        without branches.
 *
 * @param g Margins; receives the gradients.
 */
XGB_DP_WIDE_SIMD void ScaleByPrediction(LargestNorm norm, ToGrid quantise, double const* y,
                                        double const* w, double* g, double* h, double* norms,
                                        std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    auto p = Logistic(g[i]);
    auto unit_h = std::max(p * (1.0 - p), norm.unit_hessian);
    auto rh2 = norm.r * unit_h * unit_h;
    auto negative2 = p * p + rh2;
    auto positive2 = norm.positive * norm.positive * ((1.0 - p) * (1.0 - p) + rh2);
    auto largest = std::sqrt(std::max(negative2, positive2));
    auto s = norm.c / std::max(std::max(w[i], norm.least_weight) * largest, norm.c);
    auto weight = y[i] == 1.0 ? norm.positive * w[i] : w[i];
    auto g_i = weight * (p - y[i]);
    auto h_i = (norm.unit_hessian > 0.0 ? w[i] : weight) * unit_h;
    bool is_number = IsNumber(g_i * s, h_i * s);
    norms[i] = is_number ? w[i] * largest * s / norm.c : 0.0;
    quantise(is_number ? g_i : 0.0, is_number ? h_i : 0.0, is_number ? s : 0.0, g + i, h + i);
  }
}
}  // namespace

std::int64_t RowBound::MaxHessian() const {
  if (this->IsBall()) {
    return Unit();
  }
  double largest = std::ceil(std::sqrt(hessian_weight) * hessian_bound / gradient_bound *
                             static_cast<double>(Unit()));
  // Blocks of rows must fit half a word (PackedPair). NaN fails too.
  CHECK(largest >= 0.0 && largest < 16777216.0)
      << "The plan (`dp_plan`) is not valid: the Hessian bound exceeds 2^24 grid steps. "
         "Lower `dp_max_weight` or `dp_hessian_weight`, or raise `dp_gradient_bound`.";
  return static_cast<std::int64_t>(largest);
}

RowQuantiser::RowQuantiser(RowBound const& bound)
    : scale_row_{bound.IsBall()},
      by_prediction_{bound.mode == RowBound::Mode::kPrediction},
      unit_hessian_{bound.unit_hessian},
      filter_{bound.mode == RowBound::Mode::kFilter},
      c_{bound.gradient_bound},
      r_{bound.hessian_weight},
      root_{std::sqrt(bound.hessian_weight)},
      h_bound_{bound.hessian_bound},
      to_grid_{static_cast<double>(bound.Unit()) / bound.gradient_bound},
      unit_{static_cast<double>(bound.Unit())},
      h_max_{static_cast<double>(bound.MaxHessian())},
      positive_{bound.positive_weight},
      // Weights keep their ratios up to their public bound, or up to 1 without one.
      least_weight_{bound.max_weight > 0 ? bound.max_weight : 1.0} {}

void RowQuantiser::operator()(double const* y, double const* w, double* g, double* h, double* norms,
                              std::size_t n) const {
  CHECK(by_prediction_);
  ScaleByPrediction({c_, r_, positive_, least_weight_, unit_hessian_ ? 1.0 : 0.0},
                    {root_, to_grid_, unit_, h_max_}, y, w, g, h, norms, n);
}

void RowQuantiser::operator()(double* g, double* h, std::size_t n) const {
  if (scale_row_) {
    ScaleRows(c_, r_, {root_, to_grid_, unit_, h_max_}, g, h, n);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(g[i]) || !std::isfinite(h[i]) || (filter_ && std::abs(g[i]) > c_)) {
      g[i] = h[i] = 0.0;
      continue;
    }
    g[i] = RoundWithin(std::clamp(g[i], -c_, c_) * to_grid_, -unit_, unit_);
    h[i] = RoundWithin(root_ * std::clamp(h[i], 0.0, h_bound_) * to_grid_, 0.0, h_max_);
  }
}

ClassQuantiser::ClassQuantiser(RowBound const& bound, std::size_t n_class)
    : n_class_{n_class},
      c_{bound.gradient_bound},
      r_{bound.hessian_weight},
      root_{std::sqrt(bound.hessian_weight)},
      to_grid_{static_cast<double>(bound.Unit()) / bound.gradient_bound},
      unit_{static_cast<double>(bound.Unit())},
      most_g_{static_cast<double>(bound.OutputGradient())},
      most_h_{static_cast<double>(bound.OutputHessian())},
      // Weights keep their ratios up to their public bound, or up to 1 without one.
      least_weight_{bound.max_weight > 0 ? bound.max_weight : 1.0} {}

double ClassQuantiser::LargestNorm(double label, double weight, double const* g, double const* h,
                                   std::size_t stride) const {
  double squares = 0, least = 1, hessians = 0;
  for (std::size_t k = 0; k < n_class_; ++k) {
    // The gradient is w (p - [k is the label]), in 32 bits.
    double p = g[k * stride] / weight + (label == static_cast<double>(k) ? 1.0 : 0.0);
    p = p > 0.0 ? p : 0.0;  // NaN becomes 0
    p = p < 1.0 ? p : 1.0;
    squares += p * p;
    least = std::min(least, p);
    double h_k = h[k * stride] / weight;
    hessians += h_k * h_k;
  }
  // The least likely label is the furthest from the prediction.
  return std::sqrt(squares + 1.0 - 2.0 * least + r_ * hessians);
}

double ClassQuantiser::operator()(double label, double weight, double* g, double* h,
                                  std::size_t stride) const {
  auto norm = weight > 0.0 ? this->LargestNorm(label, weight, g, h, stride) : 0.0;
  return this->Bound(norm, weight, g, h, stride);
}

double ClassQuantiser::Bound(double norm, double weight, double* g, double* h,
                             std::size_t stride) const {
  // At most 1; scales the largest norm of all labels to C.
  double s = weight > 0.0 ? c_ / std::max(std::max(weight, least_weight_) * norm, c_) : 1.0;
  bool is_number = std::isfinite(s);
  for (std::size_t k = 0; k < n_class_; ++k) {
    // Times the root too: infinity times a factor of 0 is NaN.
    is_number = is_number && std::isfinite(g[k * stride]) && std::isfinite(root_ * h[k * stride]);
  }
  double sum2 = 0;
  for (std::size_t k = 0; k < n_class_; ++k) {
    auto &g_k = g[k * stride], &h_k = h[k * stride];
    g_k = is_number ? RoundWithin(g_k * s * to_grid_, -most_g_, most_g_) : 0.0;
    h_k = is_number ? RoundWithin(root_ * h_k * s * to_grid_, 0.0, most_h_) : 0.0;
    sum2 += g_k * g_k + h_k * h_k;  // integers: exact below 2^53, far beyond the bound
  }
  if (sum2 > unit_ * unit_) {
    // Slightly less, for rounding errors.
    double shrink = 0.999999999 * (unit_ / std::sqrt(sum2));
    for (std::size_t k = 0; k < n_class_; ++k) {
      g[k * stride] = std::trunc(g[k * stride] * shrink);
      h[k * stride] = std::trunc(h[k * stride] * shrink);
    }
  }
  return is_number ? weight * norm * s / c_ : 0.0;
}
}  // namespace xgboost::dp
