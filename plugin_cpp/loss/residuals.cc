/**
 * Losses of residuals: pseudo-Huber, squared error of logarithms, and squared error of several
 * targets.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for max, min, clamp
#include <cmath>      // for abs, sqrt, log1p
#include <memory>     // for make_shared
#include <vector>     // for vector

#include "plugin_cpp/loss/loss.h"  // for Loss

namespace xgboost::dp {
namespace {
/**
 * @brief Pseudo-Huber loss with a public slope, which is the unit of margins.
 */
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

/**
 * @brief Squared error of log(1 + prediction). Margins are in half widths of the declared range,
 *        and the residuals of logarithms are clipped.
 */
class SquaredLogLoss : public Loss {
 public:
  SquaredLogLoss(JsonReader const& in, LabelRange range)
      : clip_{in.Real("clip", 1e-9, 1e3)}, range_{range}, half_{(range.upper - range.lower) / 2} {
    Require(range.lower > -1.0 && half_ > 0.0,
            "the label range must be nonempty and above -1, where log(1 + label) is defined.");
  }

  [[nodiscard]] double Unit(std::int32_t, std::size_t) const override { return half_; }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto slope = this->Slope(rows.margins[i]);
      auto off = std::log1p(this->Within(rows.margins[i])) - std::log1p(rows.labels[i]);
      g[i] = slope * std::clamp(off, -clip_, clip_);
      // The Hessian, without the term that depends on the residual and may be negative.
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
  /** @brief Clamp predictions to the range; keeps NaN. */
  [[nodiscard]] double Within(double margin) const {
    return margin != margin ? margin : std::clamp(margin, range_.lower, range_.upper);
  }
  /** @brief Derivative of the logarithm with respect to the margin in half widths. */
  [[nodiscard]] double Slope(double margin) const { return half_ / (1.0 + this->Within(margin)); }

  double clip_;
  LabelRange range_;
  double half_;
};

/**
 * @brief Squared error of several targets, each with a label, a range and an output. Every residual
 *        is measured in half widths of its range and clipped, so a row has one joint bound.
 */
class TargetsLoss : public Loss {
 public:
  TargetsLoss(JsonReader const& in, LabelRange)
      : clip_{in.Real("clip", 1e-9, 1e3)}, ranges_{ReadRanges(in)} {}

  [[nodiscard]] std::size_t NumOutputs() const override { return ranges_.size(); }
  [[nodiscard]] std::size_t NumLabels() const override { return ranges_.size(); }
  [[nodiscard]] LabelRange TargetRange(std::size_t label, LabelRange) const override {
    return ranges_[label];
  }
  [[nodiscard]] double Unit(std::int32_t, std::size_t output) const override {
    return (ranges_[output].upper - ranges_[output].lower) / 2;
  }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    for (std::size_t k = 0; k < ranges_.size(); ++k) {
      auto half = this->Unit(rows.round, k);
      for (auto at = k * rows.n; at < (k + 1) * rows.n; ++at) {
        auto off = (rows.margins[at] - rows.labels[at]) / half;
        g[at] = off != off ? off : std::clamp(off, -clip_, clip_);  // keeps NaN
        h[at] = 1.0;
      }
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      double squares = 0;
      for (std::size_t k = 0; k < ranges_.size(); ++k) {
        // The worst label is at an end of the range.
        auto f = rows.margins[k * rows.n + i];
        auto off = std::max(std::abs(f - ranges_[k].lower), std::abs(ranges_[k].upper - f));
        off = std::min(off / this->Unit(rows.round, k), clip_);
        squares += off * off + r;
      }
      norms[i] = std::sqrt(squares);
    }
  }

 private:
  double clip_;
  std::vector<LabelRange> ranges_;
};
}  // namespace

std::shared_ptr<Loss const> MakePseudoHuberLoss(JsonReader const& in, LabelRange range) {
  return std::make_shared<PseudoHuberLoss>(in, range);
}

std::shared_ptr<Loss const> MakeSquaredLogLoss(JsonReader const& in, LabelRange range) {
  return std::make_shared<SquaredLogLoss>(in, range);
}

std::shared_ptr<Loss const> MakeTargetsLoss(JsonReader const& in, LabelRange range) {
  return std::make_shared<TargetsLoss>(in, range);
}
}  // namespace xgboost::dp
