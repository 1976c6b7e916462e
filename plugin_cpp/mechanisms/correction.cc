#include "plugin_cpp/mechanisms/correction.h"

#include <algorithm>  // for clamp, max, min
#include <cmath>      // for exp, isfinite, log1p, nearbyint, sqrt
#include <cstddef>    // for size_t

#include "tree/tree_view.h"   // for ScalarTreeView
#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
namespace {
// Largest contribution of a row to the two sums. The second needs less precision.
constexpr std::int64_t kResidualUnit = std::int64_t{1} << 18;
constexpr std::int64_t kInsideUnit = std::int64_t{1} << 16;
// A residual lies in [-2, 2], in half widths of the range.
constexpr double kLargest = 2.0;
// Lower bound on the number of rows used in quotients, in standard deviations of its noise.
constexpr double kMinDeviations = 16.0;
// Standard deviation of the error that a correction leaves, apart from its noise, in half widths.
constexpr double kRest = 0.001;
// Prior standard deviations of a shift in half widths, and of a factor; and of both for a skewed
// target, with its prior odds.
constexpr double kShift = 0.01;
constexpr double kFactor = 0.05;
constexpr double kSkewed = 0.2;
constexpr double kSkewedOdds = 1.0 / 9.0;
// The largest factor of one correction.
constexpr double kMaxFactor = 20.0;

double HalfWidth(RowBound const& bound) { return (bound.target_upper - bound.target_lower) / 2; }

/** @brief Convert a number in [-1, 1] to integer units; NaN becomes zero. */
std::int64_t Units(double value, std::int64_t unit) {
  value = std::isfinite(value) ? std::clamp(value, -1.0, 1.0) : 0.0;
  return static_cast<std::int64_t>(std::nearbyint(value * static_cast<double>(unit)));
}
}  // namespace

std::vector<LocalInt> SumResiduals(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                                   Persons const* persons, RoundLoss const& own,
                                   linalg::MatrixView<GradientPair const> gpair,
                                   std::vector<bst_node_t> const& position, RegTree const& tree) {
  auto n_rows = info.num_row_;
  CHECK(position.size() == n_rows);  // CHECK_EQ would print the number of rows
  CHECK(!own.loss || own.margins.size() == n_rows);
  auto labels = info.labels.HostView();
  auto weights = info.weights_.ConstHostSpan();
  auto view = tree.HostScView();
  // A row with this weight contributes in full.
  double heaviest = (bound.max_weight > 0 ? bound.max_weight : 1.0) * bound.weight_unit;
  double half = own.loss ? HalfWidth(bound) : bound.scale;
  return SumUnits(ctx, n_rows, persons, 2, [&](std::size_t i, auto&& add) {
    double y = labels(i, 0), value = view.LeafValue(position[i]), weight, mean;
    if (own.loss) {
      // The first tree includes the start.
      weight = weights.empty() ? 1.0 : weights[i];
      mean = own.loss->PredictMean(static_cast<double>(own.margins[i]) + value);
    } else {
      // Squared loss: the gradient is w (F - y), without the new tree.
      weight = gpair(i, 0).GetHess();
      mean = y + gpair(i, 0).GetGrad() / weight + value;
    }
    if (!std::isfinite(mean) || !std::isfinite(y)) {
      return;
    }
    double within = std::clamp(mean, bound.target_lower, bound.target_upper);
    double residual = std::clamp(y, bound.target_lower, bound.target_upper) - within;
    double share = std::clamp(weight / heaviest, 0.0, 1.0);
    add(0, Units(share * residual / (kLargest * half), kResidualUnit));
    if (own.loss) {
      add(1, Units(std::max(share * within / own.loss->LargestMean(), 0.0), kInsideUnit));
    } else if (within == mean) {
      add(1, Units(share, kInsideUnit));
    }
  });
}

MeanCorrection::MeanCorrection(Plan const& plan)
    : scale_{plan.row_bound.scale},
      rows_{plan.correction.rows},
      largest_mean_{plan.loss ? plan.loss->LargestMean() / HalfWidth(plan.row_bound) : 0.0},
      eta_{plan.leaf.eta},
      variance_{plan.loss ? kFactor * kFactor : kShift * kShift} {}

double MeanCorrection::EstimateShift(Released<NoisyInt> const& released) {
  double deviation = std::sqrt(released.variance);
  double unit = kLargest / static_cast<double>(kResidualUnit);
  // The number of rows that a shift moves: predictions beyond the range stay at its end. A factor
  // changes the sum of the predictions instead.
  double rows = static_cast<double>(released.values[1].Value());
  if (rows < kMinDeviations * deviation || rows < 1.0) {
    // If the count is mostly noise, the quotient is arbitrary. Dividing by all rows makes the shift
    // too small instead.
    rows = rows_ * static_cast<double>(kInsideUnit);
  }
  if (rows < 1.0) {
    return 0.0;
  }
  bool is_factor = largest_mean_ > 0;
  double moved = rows / static_cast<double>(kInsideUnit) * (is_factor ? largest_mean_ : 1.0);
  double most = is_factor ? kMaxFactor - 1.0 : kLargest;
  double least = is_factor ? 1.0 / kMaxFactor - 1.0 : -kLargest;
  double lacks = static_cast<double>(released.values[0].Value()) * unit / moved;
  lacks = std::clamp(lacks, least, most);
  double variance = (deviation * unit / moved) * (deviation * unit / moved);
  double little = variance_ + variance, much = kSkewed * kSkewed + variance;
  double odds = kSkewedOdds * std::sqrt(little / much) *
                std::exp(std::min(lacks * lacks / 2.0 * (1.0 / little - 1.0 / much), 100.0));
  double kept = (variance_ / little + odds * kSkewed * kSkewed / much) / (1.0 + odds);
  variance_ = std::max(kept * variance, kRest * kRest);
  return is_factor ? std::log1p(kept * lacks) : kept * lacks * scale_;
}

void MeanCorrection::Shift(Released<NoisyInt> const& released, RegTree* tree) {
  double shift = this->EstimateShift(released);
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
