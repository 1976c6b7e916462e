/**
 * The pseudo-Huber loss of a public slope, which is the unit of margins: squared near the label and
 * absolute far from it.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for max, min
#include <cmath>      // for abs, sqrt

#include "plugin_cpp/loss/loss.h"  // for Loss, AddLoss

namespace xgboost::dp {
namespace {
class PseudoHuberLoss : public Loss {
 public:
  PseudoHuberLoss(JsonReader const& in, LabelRange range)
      : slope_{in.Real("slope", 1e-30, 1e38)}, range_{range} {}

  [[nodiscard]] double Unit(std::int32_t, std::size_t) const override { return slope_; }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto u = (rows.margins[i] - rows.labels[i]) / slope_;
      auto root = std::sqrt(1.0 + u * u);
      g[i] = u / root;
      h[i] = 1.0 / (root * root * root);
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto below = std::abs(rows.margins[i] - range_.lower) / slope_;
      auto above = std::abs(rows.margins[i] - range_.upper) / slope_;
      bool inside = rows.margins[i] >= range_.lower && rows.margins[i] <= range_.upper;
      // The square of the norm is 1 - s + r s^3 with s = 1 / (1 + u^2), convex in s.
      auto square = [&](double u) {
        auto s = 1.0 / (1.0 + u * u);
        return 1.0 - s + r * s * s * s;
      };
      auto nearest = inside ? 0.0 : std::min(below, above);
      norms[i] = std::sqrt(std::max(square(std::max(below, above)), square(nearest)));
    }
  }

 private:
  double slope_;
  LabelRange range_;
};

AddLoss const kAdded{"pseudo_huber", {"reg:pseudohubererror"}, MakeLoss<PseudoHuberLoss>};
}  // namespace
}  // namespace xgboost::dp
