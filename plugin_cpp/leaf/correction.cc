#include "plugin_cpp/leaf/correction.h"

#include <algorithm>  // for clamp, max, min
#include <cmath>      // for isfinite, nearbyint, sqrt
#include <cstddef>    // for size_t

#include "common/threading_utils.h"       // for ParallelFor
#include "plugin_cpp/plan/sensitivity.h"  // for kResidualUnit, kInsideUnit
#include "tree/tree_view.h"               // for ScalarTreeView
#include "xgboost/logging.h"              // for CHECK

namespace xgboost::dp {
namespace {
// A residual lies in [-2, 2], in half widths of the range.
constexpr double kLargest = 2.0;
// By how many deviations of its noise the number of rows must be above 0.
constexpr double kLeastDeviations = 16.0;
// Deviation of what is left over after a correction, beside its noise, in half widths.
constexpr double kLeft = 0.001;

/** @brief Sum of what each of the numbers below `n` stands for. */
template <typename SumOf>
LocalSum SumBlocks(Context const* ctx, std::size_t n, SumOf&& sum_of) {
  constexpr std::size_t kBlock = 512;
  auto n_blocks = (n + kBlock - 1) / kBlock;
  std::vector<LocalSum> partial(n_blocks);
  common::ParallelFor(n_blocks, ctx->Threads(), [&](auto block) {
    auto begin = static_cast<std::size_t>(block) * kBlock;
    for (std::size_t i = begin; i < std::min(begin + kBlock, n); ++i) {
      partial[block] += sum_of(i);
    }
  });
  LocalSum total;
  for (auto const& s : partial) {
    total += s;
  }
  return total;
}
}  // namespace

LocalSum SumResiduals(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                      Persons const* persons, linalg::MatrixView<GradientPair const> gpair,
                      std::vector<bst_node_t> const& position, RegTree const& tree) {
  CHECK(position.size() == info.num_row_);  // CHECK_EQ would print the number of rows
  auto labels = info.labels.HostView();
  auto view = tree.HostScView();
  double heaviest = bound.hessian_bound > 0 ? bound.hessian_bound : 1.0;
  auto of_row = [&](std::size_t i) {
    LocalSum sum;
    double g = gpair(i, 0).GetGrad(), weight = gpair(i, 0).GetHess(), y = labels(i, 0);
    // Squared loss: the gradient is w (F - y), without the new tree.
    double prediction = y + g / weight + static_cast<double>(view.LeafValue(position[i]));
    if (!std::isfinite(prediction)) {
      return sum;
    }
    double within = std::clamp(prediction, bound.target_lower, bound.target_upper);
    double residual = std::clamp(y, bound.target_lower, bound.target_upper) - within;
    double share = std::clamp(weight / heaviest, 0.0, 1.0);
    auto scaled = std::clamp(share * residual / (kLargest * bound.scale), -1.0, 1.0);
    sum.grad =
        static_cast<std::int64_t>(std::nearbyint(scaled * static_cast<double>(kResidualUnit)));
    if (within == prediction) {
      sum.hess =
          static_cast<std::int64_t>(std::nearbyint(share * static_cast<double>(kInsideUnit)));
    }
    return sum;
  };
  auto total = SumBlocks(ctx, info.num_row_, [&](std::size_t i) {
    return persons && persons->RowsOf(i) > 1 ? LocalSum{} : of_row(i);
  });
  if (persons) {
    auto const& several = persons->RowsOfSeveral();
    total += SumBlocks(ctx, persons->Groups().size(), [&](std::size_t i) {
      auto const& group = persons->Groups()[i];
      auto n = static_cast<std::int64_t>(group.rows);
      LocalSum of_group;
      for (auto person = group.begin; person < group.begin + group.persons; ++person) {
        LocalSum sum;
        for (std::size_t j = 0; j < group.rows; ++j) {
          sum += of_row(several[person + j * group.persons]);
        }
        // Towards zero, so that a person adds no more than one row may.
        of_group += LocalSum{sum.grad / n, sum.hess / n};
      }
      return of_group;
    });
  }
  return total;
}

void MeanCorrection::Shift(Released<NoisySum> const& released, RegTree* tree) {
  auto const& noisy = released.values.front();
  double deviation = std::sqrt(released.variance);
  double unit = kLargest / static_cast<double>(kResidualUnit);
  // Rows that a shift moves: a prediction beyond the range stays at its end.
  double rows = static_cast<double>(noisy.hess.Value());
  if (rows < kLeastDeviations * deviation || rows < 1.0) {
    return;  // a quotient by what may be noise alone can be anything
  }
  double inside = rows / static_cast<double>(kInsideUnit);
  double lacks =
      std::clamp(static_cast<double>(noisy.grad.Value()) * unit / inside, -kLargest, kLargest);
  double variance = (deviation * unit / inside) * (deviation * unit / inside);
  // A shift that stands out of the noise, by two deviations, is larger than was to be expected.
  double expected = std::max(variance_, lacks * lacks - 4.0 * variance);
  double kept = expected / (expected + variance);
  double shift = kept * lacks * scale_;
  variance_ = std::max(kept * variance, kLeft * kLeft);
  for (bst_node_t nidx = 0; nidx < tree->NumNodes(); ++nidx) {
    auto& weight = tree->Stat(nidx).base_weight;
    weight = static_cast<float>(weight + shift / eta_);
    if ((*tree)[nidx].IsLeaf()) {
      (*tree)[nidx].SetLeaf(
          static_cast<float>(static_cast<double>((*tree)[nidx].LeafValue()) + shift));
    }
  }
}
}  // namespace xgboost::dp
