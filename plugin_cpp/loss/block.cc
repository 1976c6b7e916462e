#include "plugin_cpp/loss/block.h"

#include <algorithm>  // for clamp, copy_n
#include <cmath>      // for sqrt
#include <vector>     // for vector

namespace xgboost::dp {
void LossBlock::operator()(std::size_t begin, std::size_t n, double const* weights, double* g,
                           double* h, double* norms) const {
  auto const& loss = *own_.loss;
  auto n_out = loss.NumOutputs();
  std::vector<double> margins(n * n_out), labels(n);
  auto given = info_.labels.HostView();
  for (std::size_t i = 0; i < n; ++i) {
    labels[i] = std::clamp(static_cast<double>(given(begin + i, 0)), bound_.target_lower,
                           bound_.target_upper);
    for (std::size_t k = 0; k < n_out; ++k) {
      margins[k * n + i] = own_.margins[(begin + i) * n_out + k];
    }
  }
  LossRows rows{n, margins.data(), labels.data(), weights, own_.round};
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
    loss.LargestNorms(rows, bound_.hessian_weight, norms);
    for (std::size_t i = 0; bound_.unit_hessian && i < n; ++i) {
      norms[i] =
          std::sqrt(norms[i] * norms[i] + bound_.hessian_weight * static_cast<double>(n_out));
    }
  }
}
}  // namespace xgboost::dp
