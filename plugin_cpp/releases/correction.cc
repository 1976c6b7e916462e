#include "plugin_cpp/releases/correction.h"

#include <algorithm>  // for clamp, max, min
#include <cmath>      // for isfinite, log1p, nearbyint, sqrt
#include <cstddef>    // for size_t

#include "common/threading_utils.h"  // for ParallelFor
#include "tree/tree_view.h"          // for ScalarTreeView
#include "xgboost/logging.h"         // for CHECK

namespace xgboost::dp {
namespace {
// What a row adds at most to the two sums: to that of residuals, and to that of predictions inside
// the range. The second needs less precision.
constexpr std::int64_t kResidualUnit = std::int64_t{1} << 18;
constexpr std::int64_t kInsideUnit = std::int64_t{1} << 16;
// A residual lies in [-2, 2], in half widths of the range.
constexpr double kLargest = 2.0;
// By how many deviations of its noise the number of rows must be above 0.
constexpr double kLeastDeviations = 16.0;
// Deviation of what is left over after a correction, beside its noise, in half widths.
constexpr double kLeft = 0.001;
// Deviations of what is to be corrected: of a shift in half widths, and of a factor.
constexpr double kShift = 0.01;
constexpr double kFactor = 0.05;
// The largest factor of one correction.
constexpr double kMostFactor = 20.0;

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

/** @brief Of all rows by themselves, and of the mean of a person's rows. */
template <typename SumOf>
LocalSum SumUnits(Context const* ctx, std::size_t n_rows, Persons const* persons, SumOf&& of_row) {
  auto total = SumBlocks(ctx, n_rows, [&](std::size_t i) {
    return persons && persons->RowsOf(i) > 1 ? LocalSum{} : of_row(i);
  });
  if (persons) {
    auto const& several = persons->RowsOfSeveral();
    total += SumBlocks(ctx, persons->Groups().size(), [&](std::size_t i) {
      auto const& group = persons->Groups()[i];
      auto n = static_cast<std::int64_t>(group.rows);
      LocalSum of_group;
      for (std::size_t l = 0; l < group.persons; ++l) {
        LocalSum sum;
        for (std::size_t j = 0; j < group.rows; ++j) {
          sum += of_row(several[group.At(j, l)]);
        }
        // Towards zero, so that a person adds no more than one row may.
        of_group += LocalSum{sum.grad / n, sum.hess / n};
      }
      return of_group;
    });
  }
  return total;
}

/** @brief The weight of which a row counts in full. */
double LargestWeight(RowBound const& bound) {
  return bound.max_weight > 0 ? bound.max_weight : 1.0;
}

double HalfWidth(RowBound const& bound) { return (bound.target_upper - bound.target_lower) / 2; }

/** @brief Whole units of a number of absolute value at most 1; what is none is none of them. */
std::int64_t Units(double value, std::int64_t unit) {
  value = std::isfinite(value) ? std::clamp(value, -1.0, 1.0) : 0.0;
  return static_cast<std::int64_t>(std::nearbyint(value * static_cast<double>(unit)));
}
}  // namespace

LocalSum SumResiduals(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                      Persons const* persons, linalg::MatrixView<GradientPair const> gpair,
                      std::vector<bst_node_t> const& position, RegTree const& tree) {
  CHECK(position.size() == info.num_row_);  // CHECK_EQ would print the number of rows
  auto labels = info.labels.HostView();
  auto view = tree.HostScView();
  auto heaviest = LargestWeight(bound);
  return SumUnits(ctx, info.num_row_, persons, [&](std::size_t i) {
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
    sum.grad = Units(share * residual / (kLargest * bound.scale), kResidualUnit);
    if (within == prediction) {
      sum.hess = Units(share, kInsideUnit);
    }
    return sum;
  });
}

LocalSum SumResiduals(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                      Persons const* persons, RoundLoss const& own,
                      std::vector<bst_node_t> const& position, RegTree const& tree) {
  CHECK(position.size() == info.num_row_ && own.margins.size() == info.num_row_);
  auto labels = info.labels.HostView();
  auto weights = info.weights_.ConstHostSpan();
  auto view = tree.HostScView();
  auto heaviest = LargestWeight(bound);
  double half = HalfWidth(bound);
  // The first tree has the start in it already.
  return SumUnits(ctx, info.num_row_, persons, [&](std::size_t i) {
    LocalSum sum;
    double y = labels(i, 0), weight = weights.empty() ? 1.0 : weights[i];
    auto mean = own.loss->MeanOf(static_cast<double>(own.margins[i]) +
                                 static_cast<double>(view.LeafValue(position[i])));
    if (!std::isfinite(mean) || !std::isfinite(y)) {
      return sum;
    }
    double within = std::clamp(mean, bound.target_lower, bound.target_upper);
    double residual = std::clamp(y, bound.target_lower, bound.target_upper) - within;
    double share = std::clamp(weight / heaviest, 0.0, 1.0);
    sum.grad = Units(share * residual / (kLargest * half), kResidualUnit);
    sum.hess = Units(std::max(share * within / own.loss->LargestMean(), 0.0), kInsideUnit);
    return sum;
  });
}

MeanCorrection::MeanCorrection(Plan const& plan)
    : scale_{plan.row_bound.scale},
      largest_mean_{plan.loss ? plan.loss->LargestMean() / HalfWidth(plan.row_bound) : 0.0},
      eta_{plan.leaf.eta},
      variance_{plan.loss ? kFactor * kFactor : kShift * kShift} {}

double MeanCorrection::ShiftOf(Released<NoisySum> const& released) {
  auto const& noisy = released.values.front();
  double deviation = std::sqrt(released.variance);
  double unit = kLargest / static_cast<double>(kResidualUnit);
  // Rows that a shift moves: a prediction beyond the range stays at its end. A factor moves the sum
  // of the predictions.
  double rows = static_cast<double>(noisy.hess.Value());
  if (rows < kLeastDeviations * deviation || rows < 1.0) {
    return 0.0;  // a quotient by what may be noise alone can be anything
  }
  bool is_factor = largest_mean_ > 0;
  double moved = rows / static_cast<double>(kInsideUnit) * (is_factor ? largest_mean_ : 1.0);
  double most = is_factor ? kMostFactor - 1.0 : kLargest;
  double least = is_factor ? 1.0 / kMostFactor - 1.0 : -kLargest;
  double lacks = static_cast<double>(noisy.grad.Value()) * unit / moved;
  lacks = std::clamp(lacks, least, most);
  double variance = (deviation * unit / moved) * (deviation * unit / moved);
  // A shift that stands out of the noise, by two deviations, is larger than was to be expected.
  double expected = std::max(variance_, lacks * lacks - 4.0 * variance);
  double kept = expected / (expected + variance);
  variance_ = std::max(kept * variance, kLeft * kLeft);
  return is_factor ? std::log1p(kept * lacks) : kept * lacks * scale_;
}

void MeanCorrection::Shift(Released<NoisySum> const& released, RegTree* tree) {
  double shift = this->ShiftOf(released);
  if (shift == 0.0) {
    return;
  }
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
