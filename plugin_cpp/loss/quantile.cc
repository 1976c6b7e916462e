/**
 * The check (pinball) loss of one or several quantiles, smoothed by Epanechnikov's kernel.
 *
 * Its gradient is a probability minus a level and its Hessian is a density, so leaves can use
 * Newton steps. The kernel has a public width, which is the unit of margins and decreases over the
 * rounds.
 *
 * In the first rounds, all outputs may fit the median instead of their own levels, with the same
 * trees. The median has the smallest row bound, and its effects move all quantiles.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for clamp, fill_n, max
#include <cmath>      // for pow, sqrt
#include <limits>     // for numeric_limits
#include <memory>     // for make_shared
#include <vector>     // for vector

#include "plugin_cpp/loss/loss.h"  // for Loss

namespace xgboost::dp {
namespace {
/** @brief Largest squared norm, over all labels, of a row in a round that fits the median. */
double LargestMedianNorm(double r) {
  // With t = u^2 it is t (3 - t)^2 / 16 + r (9/16) (1 - t)^2, with at most one inner maximum.
  auto square = [&](double t) {
    return t * (3.0 - t) * (3.0 - t) / 16.0 + 0.5625 * r * (1.0 - t) * (1.0 - t);
  };
  return std::max({square(0.0), square(1.0), square(std::clamp(3.0 - 6.0 * r, 0.0, 1.0))});
}

class QuantileLoss : public Loss {
 public:
  QuantileLoss(JsonReader const& in, LabelRange)
      : centre_rounds_{static_cast<std::int32_t>(
            in.Int("centre_rounds", 0, std::numeric_limits<std::int32_t>::max()))},
        centre_scale_{in.Real("centre_scale", 1.0, 1e3)},
        centre_width_{in.Real("centre_width", 1e-30, 1e38)},
        first_{in.Real("first_width", 1e-30, 1e38)},
        last_{in.Real("last_width", 1e-30, first_)},
        decay_{in.Real("width_decay", 1e-3, 1.0)} {
    for (auto const& level : in.Reals("levels", 0.0, 1.0)) {
      Require(level > 0.0 && level < 1.0, "a quantile level is not between 0 and 1.");
      levels_.push_back(level);
    }
    Require(!levels_.empty(), "there are no quantile levels.");
  }

  [[nodiscard]] std::size_t NumOutputs() const override { return levels_.size(); }
  [[nodiscard]] double Unit(std::int32_t round, std::size_t) const override {
    return this->IsCentre(round)
               ? centre_width_
               : std::max(first_ * std::pow(decay_, round - centre_rounds_), last_);
  }
  [[nodiscard]] bool SharesLeaves(std::int32_t round) const override {
    return levels_.size() > 1 && this->IsCentre(round);
  }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    if (this->IsCentre(rows.round)) {
      std::fill_n(g, rows.n * levels_.size(), 0.0);
      std::fill_n(h, rows.n * levels_.size(), 0.0);
      this->OutputPairs(rows, 0, 0.5, centre_scale_, g, h);
      return;
    }
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      this->OutputPairs(rows, k, levels_[k], 1.0, g, h);
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    if (this->IsCentre(rows.round)) {
      std::fill_n(norms, rows.n, centre_scale_ * std::sqrt(LargestMedianNorm(r)));
      return;
    }
    // Labels at one end of the range have the largest gradients, unless quantiles cross.
    double above = 0, below = 0, crossed = 0;
    for (auto level : levels_) {
      // A label in the middle of the kernel.
      auto middle = (level - 0.5) * (level - 0.5) + r * 0.5625;
      above += std::max(level * level, middle);
      below += std::max((1.0 - level) * (1.0 - level), middle);
      crossed += std::max({level * level, (1.0 - level) * (1.0 - level), middle});
    }
    auto ordered = std::sqrt(std::max(above, below));
    for (std::size_t i = 0; i < rows.n; ++i) {
      bool crosses = false;
      for (std::size_t k = 1; k < levels_.size(); ++k) {
        auto last = rows.margins[(k - 1) * rows.n + i], next = rows.margins[k * rows.n + i];
        crosses = crosses || (levels_[k - 1] < levels_[k] ? last > next : last < next);
      }
      norms[i] = crosses ? std::sqrt(crossed) : ordered;
    }
  }

 private:
  [[nodiscard]] bool IsCentre(std::int32_t round) const { return round < centre_rounds_; }

  /** @brief Pairs of one output, times a public factor that cancels in Newton steps. */
  void OutputPairs(LossRows const& rows, std::size_t output, double level, double factor, double* g,
                   double* h) const {
    auto width = this->Unit(rows.round, output);
    auto first = output * rows.n;
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto u = (rows.margins[first + i] - rows.labels[i]) / width;
      u = u > -1.0 || u != u ? u : -1.0;  // keeps not-a-number
      u = u < 1.0 || u != u ? u : 1.0;
      g[first + i] = factor * (0.5 + 0.25 * u * (3.0 - u * u) - level);
      h[first + i] = factor * (0.75 * (1.0 - u * u));
    }
  }

  std::int32_t centre_rounds_;
  double centre_scale_, centre_width_, first_, last_, decay_;
  std::vector<double> levels_;
};
}  // namespace

std::shared_ptr<Loss const> MakeQuantileLoss(JsonReader const& in, LabelRange range) {
  return std::make_shared<QuantileLoss>(in, range);
}
}  // namespace xgboost::dp
