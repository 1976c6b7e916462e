#include "plugin_cpp/releases/leaves/leaves.h"

#include <algorithm>  // for clamp, max, min
#include <cmath>      // for floor, pow

#include "plugin_cpp/plan/draws.h"      // for LeafEvent
#include "plugin_cpp/plan/row_bound.h"  // for RowQuantiser

namespace xgboost::dp {
namespace {
/** @brief A leaf value is released as an integer of which this many are its sensitivity. */
constexpr std::int64_t kOutputUnits = std::int64_t{1} << 20;

/** @brief Output perturbation: the value of a leaf and its sensitivity, where C = 1. */
class LeafValue {
 public:
  LeafValue(Plan const& plan, std::int32_t round)
      : to_grad_{1.0 / static_cast<double>(plan.row_bound.Unit())},
        row_{RowQuantiser{plan.row_bound}(0.0, 1.0).second},
        floor_{std::max(plan.leaf.min_child_weight, 1.0)},
        lambda_{plan.leaf.lambda} {
    double d = floor_ + lambda_;
    sensitivity_ = (2.0 * floor_ + lambda_) / (d * (d + 1.0));
    if (plan.leaf.geometric_clip) {
      // Trees of one ensemble count from its start. Never so small that it would vanish.
      auto age = plan.ensemble == 1 ? round : round % plan.ensemble;
      clip_ = std::max(std::pow(1.0 - plan.leaf.eta, static_cast<double>(age)), 1e-12);
      sensitivity_ = std::min(sensitivity_, 2.0 * clip_);
    }
  }

  [[nodiscard]] double Sensitivity() const { return sensitivity_; }
  [[nodiscard]] GlobalInt AsInteger(GlobalSum const& s) const {
    double n = static_cast<double>(s.hess / row_);  // all rows have the same integer
    double v = -static_cast<double>(s.grad) * to_grad_ / (std::max(n, floor_) + lambda_);
    v = std::clamp(v, -clip_, clip_);
    return GlobalInt{static_cast<std::int64_t>(std::floor(v / sensitivity_ * kOutputUnits))};
  }

 private:
  double to_grad_;
  std::int64_t row_;
  double floor_, lambda_, sensitivity_;
  double clip_{1.0};  // |V| < 1 in any case
};

/** @brief Output perturbation: noise on the values of leaves. */
std::vector<NodeSum> ReleaseValues(Plan const& plan, std::int32_t round, std::size_t class_idx,
                                   std::vector<GlobalSum> const& sums, Release* release) {
  LeafValue value{plan, round};
  std::vector<GlobalInt> exact;
  for (auto const& sum : sums) {
    exact.push_back(value.AsInteger(sum));
  }
  auto unit = value.Sensitivity() / static_cast<double>(kOutputUnits);
  std::vector<NodeSum> out;
  for (auto noisy : release->AddNoise(LeafEvent(plan), exact, class_idx).values) {
    out.emplace_back(noisy, unit, plan.row_bound);
  }
  return out;
}

/**
 * @brief Shift leaves, in which persons count more the further they spread, towards the mean of all
 *        rows, which stands behind the leaves: by what this and earlier trees say of the tilt.
 */
void Centre(TreeTilt* tilt, std::vector<NodeSum>* leaves) {
  auto root = leaves->back();
  leaves->pop_back();
  NodeSum sum;
  for (auto const& leaf : *leaves) {
    sum = sum + leaf;
  }
  double lacks = root.grad / root.hess - sum.grad / sum.hess;
  double noise2 = root.noise2 / (root.hess * root.hess) + sum.noise2 / (sum.hess * sum.hess);
  double shift = tilt->Update(lacks, noise2);
  for (auto& leaf : *leaves) {
    leaf.grad += leaf.hess * shift;
  }
}
}  // namespace

std::vector<NodeSum> ReleaseLeaves(Plan const& plan, std::int32_t round, std::size_t class_idx,
                                   LeafSums const& leaves, TreeTilt* tilt, Release* release) {
  auto const* local = std::get_if<std::vector<LocalSum>>(&leaves);
  auto const* global = std::get_if<std::vector<GlobalSum>>(&leaves);
  if (plan.leaf.noise == LeafNoise::kOutput) {
    return ReleaseValues(
        plan, round, class_idx,
        local ? release->SumOverWorkers(*local) : std::get<std::vector<GlobalSum>>(leaves),
        release);
  }
  auto released = local    ? release->AddNoise(LeafEvent(plan), *local, class_idx)
                  : global ? release->AddNoise(LeafEvent(plan), *global, class_idx)
                           : std::get<Released<NoisySum>>(leaves);
  std::vector<NodeSum> out;
  for (auto const& sum : released.values) {
    out.emplace_back(sum, released.variance, plan.row_bound, plan.leaf.min_child_weight);
  }
  if (plan.leaf.spread) {
    Centre(tilt, &out);
  }
  return out;
}
}  // namespace xgboost::dp
