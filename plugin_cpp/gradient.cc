#include "plugin_cpp/gradient.h"

#include <algorithm>  // for clamp, min
#include <array>      // for array
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint8_t
#include <vector>     // for vector

#include "common/threading_utils.h"  // for ParallelFor
#include "xgboost/logging.h"         // for CHECK, CHECK_EQ

namespace xgboost::dp {
GradientSum QuantiseGradients(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                              linalg::MatrixView<GradientPair const> gpair,
                              std::vector<std::uint8_t> const& sample,
                              std::vector<PackedPair>* out) {
  auto n_rows = info.num_row_;
  CHECK(gpair.Shape(0) == n_rows);  // CHECK_EQ would print the number of rows
  CHECK_EQ(gpair.Shape(1), 1);
  CHECK(sample.empty() || sample.size() == n_rows);
  out->resize(n_rows);
  auto weights = info.weights_.ConstHostSpan();
  auto labels = info.labels.HostView();
  RowQuantiser quantise{bound};

  constexpr std::size_t kBlock = 512;
  auto n_blocks = (n_rows + kBlock - 1) / kBlock;
  std::vector<GradientSum> partial(n_blocks);
  common::ParallelFor(n_blocks, ctx->Threads(), [&](auto block) {
    auto begin = static_cast<std::size_t>(block) * kBlock;
    auto n = std::min(n_rows - begin, kBlock);
    std::array<double, kBlock> gradients, hessians;
    for (std::size_t k = 0; k < n; ++k) {
      auto i = begin + k;
      double g = gpair(i, 0).GetGrad();
      double h = gpair(i, 0).GetHess();
      if (bound.clamp_target) {
        // Squared loss: the gradient is w (F - y), so this is w (F - clamp(y)). Labels beyond their
        // declared domain are clamped, not refused: the row bound holds in any case.
        double y = labels(i, 0);
        g += h * (y - std::clamp(y, bound.target_lower, bound.target_upper));
      }
      // A matrix without weights has weights of one, which may exceed the bound as well.
      double weight = weights.empty() ? 1.0 : weights[i];
      if (bound.max_weight > 0 && weight > bound.max_weight) {
        double shrink = bound.max_weight / weight;
        g *= shrink;
        h *= shrink;
      }
      if (bound.unit_hessian) {
        h = bound.max_weight > 0 ? std::min(weight, bound.max_weight) : weight;
      }
      bool takes_part = sample.empty() || sample[i];
      gradients[k] = takes_part ? g / bound.scale : 0.0;
      hessians[k] = takes_part ? h : 0.0;
    }
    quantise(gradients.data(), hessians.data(), n);
    GradientSum sum;
    for (std::size_t k = 0; k < n; ++k) {
      GradientSum row{static_cast<std::int64_t>(gradients[k]),
                      static_cast<std::int64_t>(hessians[k])};
      (*out)[begin + k] = PackedPair{row.grad, row.hess};
      sum += row;
    }
    partial[block] = sum;
  });

  GradientSum total;
  for (auto const& s : partial) {
    total += s;
  }
  return total;
}
}  // namespace xgboost::dp
