#include "plugin_cpp/releases/leaves/additive_values.h"

#include <algorithm>  // for clamp, max
#include <cmath>      // for sqrt
#include <limits>     // for numeric_limits

#include "plugin_cpp/releases/leaves/newton.h"  // for Newton
#include "plugin_cpp/releases/leaves/values.h"  // for FinishTree

namespace xgboost::dp {
namespace {
constexpr double kLeastHessian = 1e-6;

/**
 * @brief Hessians of leaves from noisy ones, shrunk to their mean as far as they differ by no more
 * than the noise: most columns of a sparse table are rare, and their own sums say little.
 */
class LeafHessians {
 public:
  LeafHessians(Released<NoisySum> const& released, RowBound const& bound)
      : step_{bound.HessianStep()} {
    auto n = static_cast<double>(released.values.size() - 1);  // the last is that of all rows
    for (std::size_t i = 0; i + 1 < released.values.size(); ++i) {
      mean_ += this->Raw(released.values[i]) / n;
    }
    double spread = 0;
    for (std::size_t i = 0; i + 1 < released.values.size(); ++i) {
      double off = this->Raw(released.values[i]) - mean_;
      spread += off * off / n;
    }
    double noise2 = released.variance * step_ * step_;
    kept_ = spread > 0 ? std::max(spread - noise2, 0.0) / spread : 0.0;
  }
  [[nodiscard]] double operator()(NoisySum const& sum) const {
    return mean_ + kept_ * (this->Raw(sum) - mean_);
  }

 private:
  [[nodiscard]] double Raw(NoisySum const& sum) const {
    return static_cast<double>(sum.hess.Value()) * step_;
  }
  double step_, mean_{0}, kept_{0};
};
}  // namespace

void FinishColumns(Plan const& plan, TreeOfRound of, std::vector<ColumnLeaves> const& leaves,
                   Released<NoisySum> const& released, LeafShrinkage* shrinkage,
                   std::vector<RegTree*> const& trees) {
  Newton newton{plan.leaf};
  auto const& bound = plan.row_bound;
  auto sum_of = [&](NoisySum const& sum) {
    return NodeSum{sum, released.variance, bound, plan.leaf.min_child_weight};
  };
  auto total = sum_of(released.values.back());
  double intercept = newton.Weight(total);

  auto hessian_of = LeafHessians(released, bound);
  auto next = released.values.cbegin();
  std::vector<std::vector<NodeSum>> sums;
  double present = 0;
  for (auto const& tree : leaves) {
    auto& of_tree = sums.emplace_back(tree.ids.size());
    double hessian = 0;
    for (std::size_t l = 0; l < of_tree.size(); ++l) {
      if (l == tree.absent) {
        continue;
      }
      of_tree[l] = sum_of(*next);
      of_tree[l].hess = std::max({hessian_of(*next), plan.leaf.min_child_weight, kLeastHessian});
      of_tree[l].grad += of_tree[l].hess * intercept;
      hessian += of_tree[l].hess;
      ++next;
    }
    present += hessian;
    if (tree.absent < of_tree.size()) {
      of_tree[tree.absent].hess = std::max(total.hess - hessian, kLeastHessian);
      of_tree[tree.absent].noise2 = std::numeric_limits<double>::infinity();
    }
  }
  // A row with k columns weighs 1 / sqrt(k + 1): its variance falls with the square of that.
  double columns = std::clamp(present / total.hess, 0.0, static_cast<double>(trees.size()));
  double row_variance = RowVariance(plan) / std::sqrt(columns + 1.0);

  std::vector<std::vector<double>> weights;
  if (plan.leaf.shrinkage) {
    auto soft = sums;
    for (auto& of_tree : soft) {
      for (auto& s : of_tree) {
        s.grad = newton.Soft(s.grad);
        s.noise2 = std::max(s.noise2, 1e-12);
      }
    }
    weights = shrinkage->columns.Fit(soft, newton.Lambda(), row_variance);
  } else {
    for (auto const& of_tree : sums) {
      auto& of_leaves = weights.emplace_back();
      for (auto const& s : of_tree) {
        of_leaves.push_back(newton.Weight(s));
      }
    }
  }
  for (std::size_t f = 0; f < trees.size(); ++f) {
    double weight = 0, hessian = 0;
    for (std::size_t l = 0; l < sums[f].size(); ++l) {
      weights[f][l] = newton.Clip(weights[f][l]);
      weight += sums[f][l].hess * weights[f][l];
      hessian += sums[f][l].hess;
    }
    for (auto& w : weights[f]) {
      w += (f == 0 ? intercept : 0.0) - weight / hessian;
    }
    FinishTree(weights[f], plan, of, leaves[f].ids, sums[f], trees[f]);
  }
}
}  // namespace xgboost::dp
