#include "plugin_cpp/leaf/release.h"

#include <algorithm>  // for max, min, clamp
#include <cmath>      // for floor, pow
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint64_t
#include <vector>     // for vector

#include "plugin_cpp/release/workers.h"  // for FromRankZero
#include "plugin_cpp/plan/row_bound.h"    // for RowQuantiser

namespace xgboost::dp {
namespace {
// A leaf value is released as an integer of which this many are its sensitivity. Two more absorb the
// floor and the rounding of the arithmetic before it: values are at most N + 1 sensitivities.
constexpr std::int64_t kOutputUnits = std::int64_t{1} << 20;
constexpr std::int64_t kOutputSlack = 2;

/** @brief Output perturbation: the value of a leaf and its sensitivity, where C = 1. */
class LeafValue {
 public:
  LeafValue(Plan const& plan, std::int64_t round)
      : to_grad_{1.0 / static_cast<double>(plan.row_bound.Unit())},
        row_{RowQuantiser{plan.row_bound}(0.0, 1.0).second},
        floor_{std::max(plan.leaf.min_child_weight, 1.0)},
        lambda_{plan.leaf.lambda} {
    double d = floor_ + lambda_;
    sensitivity_ = (2.0 * floor_ + lambda_) / (d * (d + 1.0));
    if (plan.leaf.geometric_clip) {
      // Trees of one ensemble count from its start. Never so small that it would vanish.
      auto age = plan.parts == 1 ? round : round % plan.parts;
      clip_ = std::max(std::pow(1.0 - plan.leaf.eta, static_cast<double>(age)), 1e-12);
      sensitivity_ = std::min(sensitivity_, 2.0 * clip_);
    }
  }

  [[nodiscard]] double Sensitivity() const { return sensitivity_; }
  [[nodiscard]] std::int64_t AsInteger(GradientSum const& s) const {
    double n = static_cast<double>(s.hess / row_);  // all rows have the same integer
    double v = -static_cast<double>(s.grad) * to_grad_ / (std::max(n, floor_) + lambda_);
    v = std::clamp(v, -clip_, clip_);
    return static_cast<std::int64_t>(std::floor(v / sensitivity_ * kOutputUnits));
  }

 private:
  double to_grad_;
  std::int64_t row_;
  double floor_, lambda_, sensitivity_;
  double clip_{1.0};  // |V| < 1 in any case
};

double NoiseVariance(Plan const& plan) {
  if (plan.leaf.release == LeafRelease::kGaussian) {
    return plan.masking.DrawnVariance(plan.leaf.sigma2);
  }
  double scale = static_cast<double>(plan.leaf.scale);
  return 2.0 * scale * scale;
}
}  // namespace

LedgerEvent LeafEvent(Plan const& plan) {
  auto const& bound = plan.row_bound;
  auto n_groups = static_cast<std::uint64_t>(plan.n_groups);
  auto trees = static_cast<std::uint64_t>(plan.parallel_trees);
  if (plan.HasNoisySums()) {
    // In each level a row is in one cell of each feature.
    auto cells = static_cast<std::uint64_t>(plan.features_per_tree);
    auto event = GaussianEvent("histograms", cells * bound.RoundSensitivity2(plan.n_groups),
                               plan.histogram_sigma2, cells * 2 * n_groups);
    event.count = trees * plan.depth;
    return event;
  }
  LedgerEvent event;
  if (plan.leaf.release == LeafRelease::kGaussian) {
    event = GaussianEvent("leaves", bound.RoundSensitivity2(plan.n_groups), plan.leaf.sigma2,
                          2 * n_groups);
  } else if (plan.leaf.release == LeafRelease::kLaplace) {
    event = LaplaceEvent("leaves", n_groups * bound.SensitivityL1(), plan.leaf.scale);
  } else {
    event = LaplaceEvent("leaves", n_groups * (kOutputUnits + kOutputSlack), plan.leaf.scale);
  }
  event.count = trees;
  return event;
}

std::vector<ReleasedLeaf> ReleaseLeaves(Context const* ctx, Plan const& plan, std::int64_t round,
                                        std::vector<GradientSum> const& exact, RandomSource* rng,
                                        MaskedSums* masked) {
  bool output = plan.leaf.release == LeafRelease::kOutput;
  auto noisy = [&](std::int64_t value) {
    if (plan.noise_free) {
      return value;
    }
    return value + (plan.leaf.release == LeafRelease::kGaussian
                        ? DiscreteGaussian(rng, plan.leaf.sigma2)
                        : DiscreteLaplace(rng, plan.leaf.scale));
  };
  auto with_noise = [&] {
    std::vector<std::int64_t> out;
    if (output) {
      LeafValue value{plan, round};
      for (auto const& sum : exact) {
        out.push_back(noisy(value.AsInteger(sum)));
      }
      return out;
    }
    for (auto v : Flat(exact)) {
      out.push_back(noisy(v));
    }
    return out;
  };
  auto flat = masked ? masked->Release(Flat(exact), plan.leaf.sigma2)
                     : FromRankZero(ctx, with_noise);
  std::vector<ReleasedLeaf> released(exact.size());
  double unit = 1.0;
  if (output) {
    unit = LeafValue{plan, round}.Sensitivity() / static_cast<double>(kOutputUnits);
  }
  for (std::size_t i = 0; i < released.size(); ++i) {
    if (output) {
      released[i].value = static_cast<double>(flat[i]) * unit;
    } else {
      released[i].sum = {flat[2 * i], flat[2 * i + 1]};
    }
    released[i].variance = NoiseVariance(plan) * unit * unit;
  }
  return released;
}
}  // namespace xgboost::dp
