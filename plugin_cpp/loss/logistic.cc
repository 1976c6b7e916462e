/**
 * Logistic loss of a label that is a share, anywhere in [0, 1], and of several labels of 0 and 1.
 *
 * All labels of a row have one bound together, by a factor of the row's predictions alone.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for max
#include <cmath>      // for exp, sqrt

#include "plugin_cpp/loss/loss.h"  // for Loss, AddLoss

namespace xgboost::dp {
namespace {
double Share(double margin) { return 1.0 / (1.0 + std::exp(-margin)); }

class LogisticLoss : public Loss {
 public:
  LogisticLoss(LabelRange range, std::size_t n_labels, double row_variance)
      : range_{range}, n_labels_{n_labels}, row_variance_{row_variance} {}

  [[nodiscard]] std::size_t NumOutputs() const override { return n_labels_; }
  [[nodiscard]] std::size_t NumLabels() const override { return n_labels_; }
  [[nodiscard]] LabelRange RangeOf(std::size_t, LabelRange) const override { return range_; }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    for (std::size_t at = 0; at < n_labels_ * rows.n; ++at) {
      auto p = Share(rows.margins[at]);
      g[at] = p - rows.labels[at];
      h[at] = p * (1.0 - p);
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      double squares = 0;
      for (std::size_t k = 0; k < n_labels_; ++k) {
        auto p = Share(rows.margins[k * rows.n + i]);
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

// A share varies less than the label of a single case, whose variance is its Hessian; the row bound
// leaves about half of that.
AddLoss const kShares{
    "logistic", {"reg:logistic"}, [](JsonReader const&, LabelRange range) {
      return std::shared_ptr<Loss const>{std::make_shared<LogisticLoss>(range, 1, 0.25)};
    }};
// The variance of a label is its Hessian, of which the row bound leaves about half.
AddLoss const kLabels{
    "labels", {"binary:logistic", "binary:logitraw"}, [](JsonReader const& in, LabelRange) {
      return std::shared_ptr<Loss const>{
          std::make_shared<LogisticLoss>(LabelRange{0.0, 1.0}, in.Int("count", 2, 1 << 16), 0.5)};
    }};
}  // namespace
}  // namespace xgboost::dp
