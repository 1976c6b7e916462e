/**
 * The likelihood of accelerated failure times: the logarithm of a time is the margin plus a scaled
 * error with a normal, logistic or extreme value distribution. A label is an interval of times.
 *
 * Pairs() differentiates with respect to the margin in units of the scale, with z = (log t - F) /
 * scale.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for clamp, max
#include <cmath>      // for erfc, exp, expm1, isinf, log, sqrt
#include <cstddef>    // for size_t
#include <limits>     // for numeric_limits
#include <memory>     // for make_shared

#include "plugin_cpp/loss/loss.h"  // for Loss

namespace xgboost::dp {
namespace {
// Beyond it, the tails of a normal distribution underflow.
constexpr double kFarthest = 30.0;
// Closer ends are treated as one time: the difference of their probabilities would be a rounding
// error.
constexpr double kOneTime = 1e-5;

struct Pair {
  double g, h;
};

/** @brief Pair of a normal error between `l` and `u`; only `u` may be infinite. */
Pair Normal(double l, double u) {
  if (u - l < kOneTime) {
    return {-(l + u) / 2, 1.0};
  }
  // Use the side on which both tails are small, to keep the digits of their difference.
  bool mirrored = l > 0;
  if (mirrored) {
    auto swap = -l;
    l = -u;
    u = swap;
  }
  constexpr double kRoot2 = 1.4142135623730951, kDensity = 0.3989422804014327;
  auto below = [&](double z) { return 0.5 * std::erfc(-z / kRoot2); };
  auto density = [&](double z) { return std::isinf(z) ? 0.0 : kDensity * std::exp(-z * z / 2); };
  auto slope = [&](double z) { return std::isinf(z) ? 0.0 : z * density(z); };
  auto mass = below(u) - below(l);
  auto g = (density(u) - density(l)) / mass;
  auto h = g * g + (slope(u) - slope(l)) / mass;
  return {mirrored ? -g : g, std::max(h, 0.0)};
}

Pair Logistic(double l, double u) {
  auto below = [](double z) { return 1.0 / (1.0 + std::exp(-z)); };
  auto first = below(l), last = below(u);
  return {1.0 - first - last, first * (1.0 - first) + last * (1.0 - last)};
}

/** @brief Pair of an extreme value error, whose tail probability is exp(-exp(z)). */
Pair Extreme(double l, double u) {
  auto first = std::exp(l), width = std::exp(u) - first;
  if (width < kOneTime * kOneTime) {
    return {1.0 - first, first};
  }
  auto rest = std::expm1(width);
  if (std::isinf(rest)) {
    return {-first, first};
  }
  auto inside = width / rest;
  // w / (e^w - 1) falls from 1 to 0; this form of its slope avoids cancellation.
  auto slope = inside * (width + inside - 1.0);
  return {inside - first, first + std::max(slope, 0.0)};
}

constexpr char const* kDistributions[] = {"normal", "logistic", "extreme"};
using PairFn = Pair (*)(double lower, double upper);
constexpr PairFn kPairs[] = {Normal, Logistic, Extreme};

class SurvivalLoss : public Loss {
 public:
  SurvivalLoss(JsonReader const& in, LabelRange range)
      : scale_{in.Real("scale", 1e-6, 1e6)},
        pair_{kPairs[in.Enum<std::size_t>("distribution", kDistributions)]},
        first_{std::log(range.lower)},
        last_{std::log(range.upper)} {}

  [[nodiscard]] bool IsInterval() const override { return true; }
  [[nodiscard]] double Unit(std::int32_t, std::size_t) const override { return scale_; }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto upper = rows.upper_labels[i];
      auto pair = pair_(this->Error(std::log(rows.labels[i]), rows.margins[i]),
                        std::isinf(upper) ? upper : this->Error(std::log(upper), rows.margins[i]));
      g[i] = pair.g;
      h[i] = pair.h;
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    // The gradient falls with the ends of the interval. So its extremes are at the ends of the
    // range: at the first time, and at the last time, observed or censored.
    constexpr auto kNever = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto l = this->Error(first_, rows.margins[i]), u = this->Error(last_, rows.margins[i]);
      auto largest2 = 0.0;
      for (auto pair : {pair_(l, l), pair_(u, u), pair_(u, kNever)}) {
        largest2 = std::max(largest2, pair.g * pair.g + r * pair.h * pair.h);
      }
      norms[i] = std::sqrt(largest2);
    }
  }

 private:
  [[nodiscard]] double Error(double log_time, double margin) const {
    return std::clamp((log_time - margin) / scale_, -kFarthest, kFarthest);
  }

  double scale_;
  PairFn pair_;
  double first_, last_;
};

}  // namespace

std::shared_ptr<Loss const> MakeSurvivalLoss(JsonReader const& in, LabelRange range) {
  return std::make_shared<SurvivalLoss>(in, range);
}
}  // namespace xgboost::dp
