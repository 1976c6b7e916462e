#include "plugin_cpp/rows/gradient.h"

#include <algorithm>  // for clamp, min
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
      for (std::size_t k = 0; k < n; ++k) {
        // A matrix without weights has weights of one, which may exceed the bound as well.
        double weight = weights.empty() ? 1.0 : weights[begin + k];
        if (bound.max_weight > 0 && weight > bound.max_weight) {
          double shrink = bound.max_weight / weight;
          gradients[k] *= shrink;
          hessians[k] *= shrink;
          weight = bound.max_weight;
        }
        if (bound.unit_hessian) {
          hessians[k] = weight;
        }
        row_weights[k] = weight;
      }
    }
    if (by_prediction) {
      std::array<double, kBlock> row_labels;
      for (std::size_t k = 0; k < n; ++k) {
        row_labels[k] = labels(begin + k, 0);
      }
      ScaleByPrediction(bound, row_labels.data(), row_weights.data(), gradients.data(),
                        hessians.data(), n);
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
    quantise(gradients.data(), hessians.data(), n);
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
