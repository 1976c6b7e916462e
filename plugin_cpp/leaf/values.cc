#include "plugin_cpp/leaf/values.h"

#include <algorithm>  // for max, min, clamp, transform
#include <cmath>      // for sqrt, abs, copysign
#include <vector>     // for vector

#include "plugin_cpp/split/features.h"  // for OrderLeaves

namespace xgboost::dp {
namespace {
float Additive(RegTree* tree, bst_node_t nidx) {
  // Cover must be additive in 32-bit floats, or SHAP values would not sum to the margin.
  auto& stat = tree->Stat(nidx);
  auto const& node = (*tree)[nidx];
  if (!node.IsLeaf()) {
    stat.sum_hess = Additive(tree, node.LeftChild()) + Additive(tree, node.RightChild());
  }
  return stat.sum_hess;
}
}  // namespace

std::vector<NodeSum> FinishTree(Plan const& plan, std::vector<bst_node_t> const& leaves,
                                std::vector<ReleasedLeaf> const& released, bool oblivious,
                                LeafShrinkage* shrinkage, RegTree* tree) {
  auto leaf = plan.leaf;
  bool output = leaf.release == LeafRelease::kOutput;
  if (output) {
    // No sums were released: nothing is left to regularise, and every leaf has the same cover.
    leaf.lambda = leaf.alpha = 0.0;
    leaf.shrinkage = false;
  }
  auto clip = [&](double w) {
    return leaf.max_delta_step > 0 ? std::clamp(w, -leaf.max_delta_step, leaf.max_delta_step) : w;
  };
  auto soft = [&](double g) {
    return std::copysign(std::max(std::abs(g) - leaf.alpha, 0.0), g);
  };
  // As in XGBoost, the trees of one round on the same gradients share the learning rate.
  double eta = leaf.eta / plan.parallel_trees;
  double grad_step = plan.row_bound.GradientStep();
  double hess_step = plan.row_bound.HessianStep();
  std::vector<NodeSum> sums(tree->NumNodes()), of_leaves;
  bool noisy = true;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    auto& s = sums[leaves[i]];
    if (output) {
      s = {-released[i].value * plan.row_bound.gradient_bound, 1.0, 0.0};
    } else {
      double deviation = std::sqrt(released[i].variance);
      double floor_h = std::max({deviation * hess_step, leaf.min_child_weight, 1e-6});
      s.grad = static_cast<double>(released[i].sum.grad) * grad_step;
      s.hess = std::max(static_cast<double>(released[i].sum.hess) * hess_step, floor_h);
      s.noise2 = deviation * grad_step * (deviation * grad_step);
    }
    noisy = noisy && s.noise2 > 0;
    of_leaves.push_back(s);
  }

  std::vector<double> weight(sums.size());
  bool complete = plan.depth <= kMaxStrataDepth && leaves.size() == std::size_t{1} << plan.depth;
  if (leaf.shrinkage && leaf.strata && noisy && complete) {
    for (auto& s : of_leaves) {
      s.grad = soft(s.grad);
    }
    auto& prior = oblivious ? shrinkage->oblivious : shrinkage->per_node;
    auto fitted = prior.Fit(of_leaves, leaf.lambda, StrataOf(plan, oblivious));
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      weight[leaves[i]] = clip(fitted[i]);
    }
  } else {
    double prior = leaf.shrinkage ? shrinkage->leaves.Update(of_leaves, leaf.prior_max) : 0.0;
    for (auto nidx : leaves) {
      auto const& s = sums[nidx];
      double shrink = leaf.shrinkage ? s.noise2 / (prior * s.hess) : 0.0;
      weight[nidx] = clip(-soft(s.grad) / (s.hess + leaf.lambda + shrink));
    }
  }
  // Children have larger ids than their parent.
  auto gain = [&](NodeSum const& s) {
    double g = soft(s.grad);
    return g * g / (s.hess + leaf.lambda);
  };
  for (bst_node_t nidx = tree->NumNodes() - 1; nidx >= 0; --nidx) {
    auto const& node = (*tree)[nidx];
    if (node.IsLeaf()) {
      continue;
    }
    auto const& l = sums[node.LeftChild()];
    auto const& r = sums[node.RightChild()];
    auto& s = sums[nidx];
    s = {l.grad + r.grad, l.hess + r.hess, l.noise2 + r.noise2};
    weight[nidx] = clip(-soft(s.grad) / (s.hess + leaf.lambda));
    tree->Stat(nidx).loss_chg = static_cast<float>(std::max(0.0, gain(l) + gain(r) - gain(s)));
  }
  std::vector<double> hess(sums.size());
  std::transform(sums.cbegin(), sums.cend(), hess.begin(), [](auto const& s) { return s.hess; });
  OrderLeaves(plan, *tree, hess, &weight);
  for (bst_node_t nidx = 0; nidx < tree->NumNodes(); ++nidx) {
    auto& stat = tree->Stat(nidx);
    stat.base_weight = static_cast<float>(weight[nidx] * plan.row_bound.scale);
    if ((*tree)[nidx].IsLeaf()) {
      (*tree)[nidx].SetLeaf(static_cast<float>(eta * weight[nidx] * plan.row_bound.scale));
      stat.sum_hess = static_cast<float>(hess[nidx]);
      stat.loss_chg = 0.0f;
    }
  }
  Additive(tree, RegTree::kRoot);
  return sums;
}
}  // namespace xgboost::dp
