#include "plugin_cpp/loss/logistic.h"

#include <algorithm>  // for max
#include <cmath>      // for exp, sqrt

namespace xgboost::dp {
namespace {
double Share(double margin) { return 1.0 / (1.0 + std::exp(-margin)); }

class LogisticLoss : public Loss {
 public:
  explicit LogisticLoss(LabelRange range) : range_{range} {}

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto p = Share(rows.margins[i]);
      g[i] = p - rows.labels[i];
      h[i] = p * (1.0 - p);
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      auto p = Share(rows.margins[i]);
      auto h = p * (1.0 - p);
      auto off = std::max(p - range_.lower, range_.upper - p);
      norms[i] = std::sqrt(off * off + r * h * h);
    }
  }

  // A share varies less than the label of a single case, whose variance is its Hessian; the row
  // bound leaves about half of that.
  [[nodiscard]] double RowVariance() const override { return 0.25; }

 private:
  LabelRange range_;
};
}  // namespace

std::shared_ptr<Loss const> ReadLogisticLoss(JsonReader const&, LabelRange range) {
  return std::make_shared<LogisticLoss>(range);
}
}  // namespace xgboost::dp
