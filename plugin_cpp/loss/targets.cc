/**
 * The squared error of several targets of a row, each with a label, a range and an output.
 *
 * Every residual is in half widths of the range of its target and clipped at a public number, so
 * that all targets of a row have one bound together, which no label changes.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for clamp, max, min
#include <cmath>      // for abs, sqrt
#include <vector>     // for vector

#include "plugin_cpp/loss/loss.h"  // for Loss, AddLoss

namespace xgboost::dp {
namespace {
class TargetsLoss : public Loss {
 public:
  TargetsLoss(JsonReader const& in, LabelRange)
      : clip_{in.Real("clip", 1e-9, 1e3)}, ranges_{ReadRanges(in)} {}

  [[nodiscard]] std::size_t NumOutputs() const override { return ranges_.size(); }
  [[nodiscard]] std::size_t NumLabels() const override { return ranges_.size(); }
  [[nodiscard]] LabelRange RangeOf(std::size_t label, LabelRange) const override {
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
        g[at] = off != off ? off : std::clamp(off, -clip_, clip_);  // keeps not-a-number
        h[at] = 1.0;
      }
    }
  }

  void LargestNorms(LossRows const& rows, double r, double* norms) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      double squares = 0;
      for (std::size_t k = 0; k < ranges_.size(); ++k) {
        // The label that is furthest from the prediction is at an end of the range.
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

AddLoss const kAdded{"targets", {"reg:squarederror"}, MakeLoss<TargetsLoss>};
}  // namespace
}  // namespace xgboost::dp
