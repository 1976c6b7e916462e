#include "plugin_cpp/plan/class_bound.h"

#include <algorithm>  // for clamp, max, min
#include <cmath>      // for isfinite, nearbyint, sqrt, trunc

namespace xgboost::dp {
ClassQuantiser::ClassQuantiser(RowBound const& bound, std::size_t n_class)
    : n_class_{n_class},
      c_{bound.gradient_bound},
      r_{bound.hessian_weight},
      root_{std::sqrt(bound.hessian_weight)},
      to_grid_{static_cast<double>(bound.Unit()) / bound.gradient_bound},
      unit_{static_cast<double>(bound.Unit())},
      most_g_{static_cast<double>(bound.OutputGradient())},
      most_h_{static_cast<double>(bound.OutputHessian())},
      // Weights keep their ratios up to their public bound, or up to one where there is none.
      least_weight_{bound.max_weight > 0 ? bound.max_weight : 1.0} {}

double ClassQuantiser::LargestNorm(double label, double weight, double const* g, double const* h,
                                   std::size_t stride) const {
  double squares = 0, least = 1, hessians = 0;
  for (std::size_t k = 0; k < n_class_; ++k) {
    // The gradient is w (p - [k is the label]), in 32 bits.
    double p = g[k * stride] / weight + (label == static_cast<double>(k) ? 1.0 : 0.0);
    p = p > 0.0 ? p : 0.0;  // in an order in which not-a-number falls to 0
    p = p < 1.0 ? p : 1.0;
    squares += p * p;
    least = std::min(least, p);
    double h_k = h[k * stride] / weight;
    hessians += h_k * h_k;
  }
  // The label that is least expected is the furthest from the prediction.
  return std::sqrt(squares + 1.0 - 2.0 * least + r_ * hessians);
}

double ClassQuantiser::operator()(double label, double weight, double* g, double* h,
                                  std::size_t stride) const {
  auto norm = weight > 0.0 ? this->LargestNorm(label, weight, g, h, stride) : 0.0;
  return this->Bound(norm, weight, g, h, stride);
}

double ClassQuantiser::Bound(double norm, double weight, double* g, double* h,
                             std::size_t stride) const {
  // 1, or the factor that takes the largest norm of all labels to C.
  double s = weight > 0.0 ? c_ / std::max(std::max(weight, least_weight_) * norm, c_) : 1.0;
  bool is_number = std::isfinite(s);
  for (std::size_t k = 0; k < n_class_; ++k) {
    // Times the root too: an infinite product and a factor of 0 have no product.
    is_number = is_number && std::isfinite(g[k * stride]) && std::isfinite(root_ * h[k * stride]);
  }
  double sum2 = 0;
  for (std::size_t k = 0; k < n_class_; ++k) {
    auto &g_k = g[k * stride], &h_k = h[k * stride];
    // A row that is not a number must not count differently from one that is.
    g_k = is_number ? std::clamp(std::nearbyint(g_k * s * to_grid_), -most_g_, most_g_) : 0.0;
    h_k = is_number ? std::clamp(std::nearbyint(root_ * h_k * s * to_grid_), 0.0, most_h_) : 0.0;
    sum2 += g_k * g_k + h_k * h_k;  // integers: exact below 2^53, which is far beyond the bound
  }
  if (sum2 > unit_ * unit_) {
    // A little below 1, for the rounding of this and of large sums.
    double shrink = 0.999999999 * (unit_ / std::sqrt(sum2));
    for (std::size_t k = 0; k < n_class_; ++k) {
      g[k * stride] = std::trunc(g[k * stride] * shrink);
      h[k * stride] = std::trunc(h[k * stride] * shrink);
    }
  }
  return is_number ? weight * norm * s / c_ : 0.0;
}
}  // namespace xgboost::dp
