#include "plugin_cpp/releases/leaves/leaves.h"

#include <variant>  // for visit

#include "plugin_cpp/plan/draws.h"  // for LeafEvent

namespace xgboost::dp {
namespace {
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

/** @brief Noise on the sums of leaves. */
class NoisyLeaves : public LeafRelease {
 public:
  explicit NoisyLeaves(LeafParts const& parts) : parts_{parts} {}

  [[nodiscard]] std::vector<NodeSum> operator()(TreeOfRound of, LeafSums const& leaves,
                                                TreeTilt* tilt) const override {
    auto const& plan = parts_.plan;
    auto const* local = std::get_if<std::vector<LocalSum>>(&leaves);
    auto const* global = std::get_if<std::vector<GlobalSum>>(&leaves);
    auto released = local    ? parts_.release->AddNoise(LeafEvent(plan), *local, of.class_idx)
                    : global ? parts_.release->AddNoise(LeafEvent(plan), *global, of.class_idx)
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

 private:
  LeafParts parts_;
};

LeafReleases::Add<NoisyLeaves> const kGaussian{LeafNoise::kGaussian}, kLaplace{LeafNoise::kLaplace};
}  // namespace
}  // namespace xgboost::dp
