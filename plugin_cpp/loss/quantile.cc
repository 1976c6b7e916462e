#include "plugin_cpp/loss/quantile.h"

#include <algorithm>  // for max
#include <cmath>      // for pow, sqrt
#include <vector>     // for vector

#include "xgboost/json.h"     // for Json, Array
#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
namespace {
class QuantileLoss : public Loss {
 public:
  explicit QuantileLoss(JsonReader const& in)
      : first_{in.Real("first_width", 1e-30, 1e38)},
        last_{in.Real("last_width", 1e-30, first_)},
        decay_{in.Real("width_decay", 1e-3, 1.0)} {
    for (auto const& level : in.Reals("levels", 0.0, 1.0)) {
      CHECK(level > 0.0 && level < 1.0) << "dp_plan: no level of a quantile." << JsonReader::kMend;
      levels_.push_back(level);
    }
    CHECK(!levels_.empty()) << "dp_plan: no levels of quantiles." << JsonReader::kMend;
  }

  [[nodiscard]] std::size_t NumOutputs() const override { return levels_.size(); }
  [[nodiscard]] double Unit(std::int32_t round) const override {
    return std::max(first_ * std::pow(decay_, round), last_);
  }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    auto width = this->Unit(rows.round);
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      auto first = k * rows.n;
      for (std::size_t i = 0; i < rows.n; ++i) {
        auto u = (rows.margins[first + i] - rows.labels[i]) / width;
        u = u > -1.0 || u != u ? u : -1.0;  // keeps not-a-number
        u = u < 1.0 || u != u ? u : 1.0;
        g[first + i] = 0.5 + 0.25 * u * (3.0 - u * u) - levels_[k];
        h[first + i] = 0.75 * (1.0 - u * u);
      }
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    // Labels at one end of the range make all gradients alike. Only where quantiles cross can some
    // of them lie on the far side of the others.
    double above = 0, below = 0, crossed = 0;
    for (auto level : levels_) {
      // Of one output, with the Hessian of the middle of the kernel.
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
  double first_, last_, decay_;
  std::vector<double> levels_;
};
}  // namespace

std::shared_ptr<Loss const> ReadQuantileLoss(JsonReader const& in, LabelRange) {
  return std::make_shared<QuantileLoss>(in);
}
}  // namespace xgboost::dp
