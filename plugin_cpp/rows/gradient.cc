#include "plugin_cpp/rows/gradient.h"

#include <algorithm>  // for clamp, copy_n, min
#include <array>      // for array
#include <cstddef>    // for size_t

#include "common/threading_utils.h"  // for ParallelFor
#include "xgboost/logging.h"         // for CHECK, CHECK_EQ

namespace xgboost::dp {
LocalSum QuantiseGradients(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                           linalg::MatrixView<GradientPair const> gpair,
                           std::vector<std::uint8_t> const& sample, std::vector<PackedPair>* out) {
  auto n_rows = info.num_row_;
  CHECK(gpair.Shape(0) == n_rows);  // CHECK_EQ would print the number of rows
  CHECK_EQ(gpair.Shape(1), 1);
  CHECK(sample.empty() || sample.size() == n_rows);
  out->resize(n_rows);
  auto weights = info.weights_.ConstHostSpan();
  auto labels = info.labels.HostView();
  RowQuantiser quantise{bound};
  bool by_prediction = bound.mode == RowBound::Mode::kPrediction;
  auto const* first = n_rows == 0 ? nullptr : &gpair(0, 0);
  auto stride = gpair.Stride(0);
  auto const* first_label = by_prediction && n_rows != 0 ? &labels(0, 0) : nullptr;
  auto label_stride = labels.Stride(0);

  constexpr std::size_t kBlock = 512;
  auto n_blocks = (n_rows + kBlock - 1) / kBlock;
  std::vector<LocalSum> partial(n_blocks);
  common::ParallelFor(n_blocks, ctx->Threads(), [&](auto block) {
    auto begin = static_cast<std::size_t>(block) * kBlock;
    auto n = std::min(n_rows - begin, kBlock);
    std::array<double, kBlock> gradients, hessians;
    auto const* pairs = first + begin * stride;
    for (std::size_t k = 0; k < n; ++k) {
      gradients[k] = pairs[k * stride].GetGrad();
      hessians[k] = pairs[k * stride].GetHess();
    }
    if (bound.clamp_target) {
      // Squared loss: the gradient is w (F - y), so this is w (F - clamp(y)). Labels beyond their
      // declared domain are clamped, not refused: the row bound holds in any case.
      for (std::size_t k = 0; k < n; ++k) {
        double y = labels(begin + k, 0);
        gradients[k] += hessians[k] * (y - std::clamp(y, bound.target_lower, bound.target_upper));
      }
    }
    std::array<double, kBlock> row_weights;
    if (by_prediction || bound.max_weight > 0 || bound.unit_hessian) {
      if (weights.empty()) {
        row_weights.fill(1.0);  // which may exceed the bound as well
      } else {
        std::copy_n(weights.data() + begin, n, row_weights.data());
      }
    }
    if (bound.max_weight > 0) {
      for (std::size_t k = 0; k < n; ++k) {
        if (row_weights[k] > bound.max_weight) {
          double shrink = bound.max_weight / row_weights[k];
          gradients[k] *= shrink;
          hessians[k] *= shrink;
          row_weights[k] = bound.max_weight;
        }
      }
    }
    if (bound.unit_hessian) {
      std::copy_n(row_weights.data(), n, hessians.data());
    }
    if (bound.scale != 1.0) {
      for (std::size_t k = 0; k < n; ++k) {
        gradients[k] /= bound.scale;
      }
    }
    if (!sample.empty()) {
      for (std::size_t k = 0; k < n; ++k) {
        if (!sample[begin + k]) {
          gradients[k] = hessians[k] = 0.0;
        }
      }
    }
    if (by_prediction) {
      std::array<double, kBlock> row_labels;
      auto const* of_block = first_label + begin * label_stride;
      for (std::size_t k = 0; k < n; ++k) {
        row_labels[k] = of_block[k * label_stride];
      }
      quantise(row_labels.data(), row_weights.data(), gradients.data(), hessians.data(), n);
    } else {
      quantise(gradients.data(), hessians.data(), n);
    }
    LocalSum sum;
    auto* words = out->data() + begin;
    for (std::size_t k = 0; k < n; ++k) {
      // Both are of at most 2^24.
      auto g = static_cast<std::int32_t>(gradients[k]), h = static_cast<std::int32_t>(hessians[k]);
      words[k] = PackedPair{g, h};
      sum.grad += g;
      sum.hess += h;
    }
    partial[block] = sum;
  });

  LocalSum total;
  for (auto const& s : partial) {
    total += s;
  }
  return total;
}
}  // namespace xgboost::dp
