#include "plugin_cpp/rows/loss_block.h"

#include <algorithm>  // for clamp, max
#include <cmath>      // for isinf, sqrt
#include <vector>     // for vector

namespace xgboost::dp {
void LossBlock::operator()(std::size_t begin, std::size_t n, double const* weights, double* g,
                           double* h, double* norms) const {
  auto const& loss = *own_.loss;
  auto n_out = loss.NumOutputs(), n_labels = loss.NumLabels();
  std::vector<double> margins(n * n_out), labels(n * n_labels), upper(loss.IsInterval() ? n : 0);
  auto given = info_.labels.HostView();
  auto firsts = info_.labels_lower_bound_.ConstHostSpan();
  auto lasts = info_.labels_upper_bound_.ConstHostSpan();
  auto start = own_.round == 0 ? loss.Start() : 0.0;
  for (std::size_t l = 0; l < n_labels; ++l) {
    auto range = loss.RangeOf(l, {bound_.target_lower, bound_.target_upper});
    auto within = [&](double label) { return std::clamp(label, range.lower, range.upper); };
    for (std::size_t i = 0; i < n; ++i) {
      if (loss.IsInterval()) {
        labels[i] = within(firsts[begin + i]);
        double last = lasts[begin + i];
        upper[i] = std::isinf(last) ? last : std::max(within(last), labels[i]);
      } else {
        labels[l * n + i] = within(given(begin + i, l));
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n_out; ++k) {
      margins[k * n + i] = own_.margins[(begin + i) * n_out + k] + start;
    }
  }
  LossRows rows{n, margins.data(), labels.data(), upper.data(), weights, own_.round};
  loss.Pairs(rows, g, h);
  for (std::size_t k = 0; k < n_out; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      auto at = k * n + i;
      if (!loss.IsWeighted()) {
        g[at] *= weights[i];
        h[at] *= weights[i];
      }
      if (bound_.unit_hessian) {
        h[at] = weights[i];
      }
    }
  }
  if (bound_.mode == RowBound::Mode::kPrediction) {
    // Unit Hessians are no function of the label: the loss is asked for its gradients alone.
    auto r = bound_.hessian_weight;
    loss.LargestNorms(rows, bound_.unit_hessian ? 0.0 : r, norms);
    for (std::size_t i = 0; bound_.unit_hessian && i < n; ++i) {
      norms[i] = std::sqrt(norms[i] * norms[i] + r * static_cast<double>(n_out));
    }
  }
}
}  // namespace xgboost::dp
