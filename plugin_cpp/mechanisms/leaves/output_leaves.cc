/**
 * Output perturbation: Laplace noise on the values of leaves.
 *
 * The value of a leaf with n rows is V = -G / (max(n, N) + lambda). The floor N replaces the check
 * n >= N of published systems, which is not private. For |g| <= 1 and any n, the sensitivity of V
 * is (2 N + lambda) / ((N + lambda)(N + 1 + lambda)). A row is in one leaf.
 *
 * Proof: docs/proofs/leaves.md
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for clamp, max, min
#include <cmath>      // for floor, pow
#include <cstdint>    // for int32_t, int64_t
#include <variant>    // for get, get_if
#include <vector>     // for vector

#include "plugin_cpp/mechanisms/leaves/leaves.h"  // for ReleaseLeafValues
#include "plugin_cpp/plan/plan.h"                 // for LeafEvent
#include "plugin_cpp/plan/row_bound.h"            // for RowQuantiser

namespace xgboost::dp {
namespace {
/** @brief Number of integer units that equal the sensitivity of a leaf value. */
constexpr std::int64_t kOutputUnits = std::int64_t{1} << 20;

/** @brief The value of a leaf and its sensitivity, for C = 1. */
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
      // Trees are counted from the start of their ensemble. The clip stays positive.
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

}  // namespace

std::vector<NodeSum> ReleaseLeafValues(Plan const& plan, TreeIndex idx, LeafSums const& leaves,
                                       Release* release) {
  auto const* local = std::get_if<std::vector<LocalSum>>(&leaves);
  LeafValue value{plan, idx.round};
  std::vector<GlobalInt> exact;
  for (auto const& sum :
       local ? release->SumOverWorkers(*local) : std::get<std::vector<GlobalSum>>(leaves)) {
    exact.push_back(value.AsInteger(sum));
  }
  auto unit = value.Sensitivity() / static_cast<double>(kOutputUnits);
  std::vector<NodeSum> out;
  for (auto noisy : release->AddNoise(LeafEvent(plan), exact, idx.class_idx).values) {
    out.emplace_back(noisy, unit, plan.row_bound);
  }
  return out;
}
}  // namespace xgboost::dp
