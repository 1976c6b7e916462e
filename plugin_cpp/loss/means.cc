/**
 * Losses of means on a transformed scale: shares and labels on the logit scale, counts and amounts
 * on the log scale.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for max, min
#include <cmath>      // for exp, sqrt, log, abs
#include <memory>     // for make_shared

#include "plugin_cpp/loss/logistic.h"  // for Logistic
#include "plugin_cpp/loss/loss.h"      // for Loss

namespace xgboost::dp {
namespace {
/**
 * @brief Logistic loss, for a label that is a share in [0, 1], or for several 0/1 labels with a
 *        joint bound.
 */
class LogisticLoss : public Loss {
 public:
  LogisticLoss(LabelRange range, std::size_t n_labels, double row_variance)
      : range_{range}, n_labels_{n_labels}, row_variance_{row_variance} {}

  [[nodiscard]] std::size_t NumOutputs() const override { return n_labels_; }
  [[nodiscard]] std::size_t NumLabels() const override { return n_labels_; }
  [[nodiscard]] LabelRange TargetRange(std::size_t, LabelRange) const override { return range_; }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    for (std::size_t at = 0; at < n_labels_ * rows.n; ++at) {
      auto p = Logistic(rows.margins[at]);
      g[at] = p - rows.labels[at];
      h[at] = p * (1.0 - p);
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      double squares = 0;
      for (std::size_t k = 0; k < n_labels_; ++k) {
        auto p = Logistic(rows.margins[k * rows.n + i]);
        auto h = p * (1.0 - p);
        auto off = std::max(p - range_.lower, range_.upper - p);
        squares += off * off + r * h * h;
      }
      norms[i] = std::sqrt(squares);
    }
  }

  [[nodiscard]] double RowVariance() const override { return row_variance_; }

 private:
  LabelRange range_;
  std::size_t n_labels_;
  double row_variance_;
};

/**
 * @brief Deviances whose variance is a power p of the mean: Poisson (1), Tweedie (between) and
 *        gamma (2).
 *
 * Predictions mu are in units of the released mean of labels, m. Labels are capped, and are in
 * units of their mean after capping, c. The trees therefore fit the ratio of a prediction to the
 * mean, even if a few labels are large, and the overall mean stays m. The Hessian is the expected
 * one, which does not depend on the label. With a = mu / m: g = (a - min(y, cap) / c) a^(1 - p) and
 * h = a^(2 - p), both in units of cap / c, the largest label.
 */
class PowerLoss : public Loss {
 public:
  PowerLoss(JsonReader const& in, LabelRange range)
      : power_{in.Real("power", 1.0, 2.0)},
        mean_{in.Real("mean", 1e-30, 1e30)},
        log_mean_{std::log(mean_)},
        start_{in.Real("start", -100.0, 100.0)},
        cap_{in.Real("cap", range.lower, range.upper)},
        capped_mean_{in.Real("capped_mean", 1e-30, 1e30)},
        unit_{capped_mean_ / cap_},
        lower_{range.lower / capped_mean_},
        upper_{cap_ / capped_mean_} {}

  [[nodiscard]] double Start() const override { return start_; }
  [[nodiscard]] double PredictMean(double margin) const override { return std::exp(margin); }
  [[nodiscard]] double LargestMean() const override { return kMaxMeans * mean_; }
  // The variance of a count is its mean. The variance of amounts has an unknown factor.
  [[nodiscard]] double RowVariance() const override { return power_ == 1.0 ? 1.0 / cap_ : 0.0; }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto at = this->At(rows.margins[i]);
      g[i] = (at.mean - std::min(rows.labels[i], cap_) / capped_mean_) * at.factor;
      h[i] = at.mean * at.factor;
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    // The gradient is linear in the label: it is largest at an end of the range.
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto at = this->At(rows.margins[i]);
      auto g = at.factor * std::max(std::abs(at.mean - lower_), std::abs(at.mean - upper_));
      auto h = at.factor * at.mean;
      norms[i] = std::sqrt(g * g + r * h * h);
    }
  }

 private:
  static constexpr double kMaxMeans = 16.0;  // predictions rarely exceed it

  struct Point {
    double mean, factor;  // a = mu / m, and its power of 1 - p in the unit
  };
  [[nodiscard]] Point At(double margin) const {
    auto above = margin - log_mean_;
    return {std::exp(above), unit_ * std::exp((1.0 - power_) * above)};
  }

  double power_, mean_, log_mean_, start_, cap_, capped_mean_, unit_, lower_, upper_;
};
}  // namespace

std::shared_ptr<Loss const> MakeShareLoss(JsonReader const&, LabelRange range) {
  // A share varies less than a single 0/1 label, whose variance is its Hessian. The row bound
  // leaves about half of this variance.
  return std::make_shared<LogisticLoss>(range, 1, 0.25);
}

std::shared_ptr<Loss const> MakeMultiLabelLoss(JsonReader const& in, LabelRange) {
  // The variance of a label is its Hessian; the row bound leaves about half of this variance.
  return std::make_shared<LogisticLoss>(LabelRange{0.0, 1.0}, in.Int("count", 2, 1 << 16), 0.5);
}

std::shared_ptr<Loss const> MakePowerLoss(JsonReader const& in, LabelRange range) {
  return std::make_shared<PowerLoss>(in, range);
}
}  // namespace xgboost::dp
