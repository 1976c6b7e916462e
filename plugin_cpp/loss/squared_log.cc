/**
 * Squared error of log(1 + prediction), in half widths of the declared range. Residuals are clipped
 * on the scale of the logarithm.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for clamp, max, min
#include <cmath>      // for abs, log1p, sqrt

#include "plugin_cpp/loss/loss.h"  // for Loss, AddLoss

namespace xgboost::dp {
namespace {
class SquaredLogLoss : public Loss {
 public:
  SquaredLogLoss(JsonReader const& in, LabelRange range)
      : clip_{in.Real("clip", 1e-9, 1e3)}, range_{range}, half_{(range.upper - range.lower) / 2} {
    Require(range.lower > -1.0 && half_ > 0.0, "the range of labels has no logarithm.");
  }

  [[nodiscard]] double Unit(std::int32_t, std::size_t) const override { return half_; }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto slope = this->Slope(rows.margins[i]);
      auto off = std::log1p(this->Within(rows.margins[i])) - std::log1p(rows.labels[i]);
      g[i] = slope * std::clamp(off, -clip_, clip_);
      // The Hessian without the part of the residual, which may be negative.
      h[i] = slope * slope;
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto slope = this->Slope(rows.margins[i]);
      auto at = std::log1p(this->Within(rows.margins[i]));
      auto off = std::max(at - std::log1p(range_.lower), std::log1p(range_.upper) - at);
      off = std::min(std::abs(off), clip_);
      norms[i] = slope * std::sqrt(off * off + r * slope * slope);
    }
  }

 private:
  /** @brief Predictions beyond the range count as its ends; keeps not-a-number. */
  [[nodiscard]] double Within(double margin) const {
    return margin != margin ? margin : std::clamp(margin, range_.lower, range_.upper);
  }
  /** @brief Derivative of the logarithm by the margin in half widths. */
  [[nodiscard]] double Slope(double margin) const { return half_ / (1.0 + this->Within(margin)); }

  double clip_;
  LabelRange range_;
  double half_;
};

AddLoss const kAdded{"squared_log", {"reg:squaredlogerror"}, MakeLoss<SquaredLogLoss>};
}  // namespace
}  // namespace xgboost::dp
