#include "plugin_cpp/releases/leaves/leaf_values.h"

#include <algorithm>  // for clamp, max, all_of
#include <cmath>      // for abs, copysign
#include <cstddef>    // for size_t
#include <limits>     // for numeric_limits

#include "plugin_cpp/plan/plan.h"                  // for LeafPlan
#include "plugin_cpp/releases/leaves/covers.h"     // for EstimateCovers, ExplainedGains
#include "plugin_cpp/releases/leaves/shrinkage.h"  // for NodeSum
#include "tree/tree_view.h"                        // for ScalarTreeView

namespace xgboost::dp {
namespace {
/** @brief Regularised Newton steps of released sums. */
class Newton {
 public:
  explicit Newton(LeafPlan const& leaf) : clip_{leaf.max_delta_step} {
    // With output perturbation no sums were released: nothing is left to regularise.
    if (leaf.noise != LeafNoise::kOutput) {
      lambda_ = leaf.lambda;
      alpha_ = leaf.alpha;
    }
  }
  [[nodiscard]] double Lambda() const { return lambda_; }
  /** @brief The gradient after the L1 penalty. */
  [[nodiscard]] double Soft(double grad) const {
    return std::copysign(std::max(std::abs(grad) - alpha_, 0.0), grad);
  }
  [[nodiscard]] double Clip(double weight) const {
    return clip_ > 0 ? std::clamp(weight, -clip_, clip_) : weight;
  }
  [[nodiscard]] double Weight(NodeSum const& s, double shrink = 0.0) const {
    return this->Clip(-this->Soft(s.grad) / (s.hess + lambda_ + shrink));
  }

 private:
  double clip_, lambda_{0}, alpha_{0};
};

/** @brief Fill in sums and weights of the inner nodes, from those of the leaves. */
void SumUp(Newton const& newton, RegTree const& tree, std::vector<NodeSum>* p_sums,
           std::vector<double>* weights) {
  auto& sums = *p_sums;
  auto view = tree.HostScView();
  // Children have larger ids than their parent.
  for (bst_node_t nidx = tree.NumNodes() - 1; nidx >= 0; --nidx) {
    if (!view.IsLeaf(nidx)) {
      sums[nidx] = sums[view.LeftChild(nidx)] + sums[view.RightChild(nidx)];
      (*weights)[nidx] = newton.Weight(sums[nidx]);
    }
  }
}

/** @brief Make the leaf weights follow the monotone constraints of the plan. */
void OrderLeaves(Plan const& plan, RegTree const& tree, std::vector<NodeSum> const& sums,
                 std::vector<double>* p_weight) {
  if (std::all_of(plan.monotone.cbegin(), plan.monotone.cend(), [](auto c) { return c == 0; })) {
    return;
  }
  auto& weight = *p_weight;
  auto view = tree.HostScView();
  auto n_nodes = tree.NumNodes();
  auto mean = [&](bst_node_t l, bst_node_t r) {
    return (sums[l].hess * weight[l] + sums[r].hess * weight[r]) / (sums[l].hess + sums[r].hess);
  };
  // Children have larger ids than their parent.
  for (bst_node_t nidx = n_nodes - 1; nidx >= 0; --nidx) {
    if (!view.IsLeaf(nidx)) {
      weight[nidx] = mean(view.LeftChild(nidx), view.RightChild(nidx));
    }
  }
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<double> lower(weight.size(), -kInf), upper(weight.size(), kInf);
  for (bst_node_t nidx = 0; nidx < n_nodes; ++nidx) {
    weight[nidx] = std::clamp(weight[nidx], lower[nidx], upper[nidx]);
    if (view.IsLeaf(nidx)) {
      continue;
    }
    auto l = view.LeftChild(nidx), r = view.RightChild(nidx);
    lower[l] = lower[r] = lower[nidx];
    upper[l] = upper[r] = upper[nidx];
    auto direction = plan.monotone[view.SplitIndex(nidx)];
    if (direction == 0) {
      continue;
    }
    auto below = direction > 0 ? l : r;
    auto above = direction > 0 ? r : l;
    // Where the released weights are in order any value between them parts them; where they are
    // not, both sides meet in their mean.
    auto middle =
        weight[below] <= weight[above] ? 0.5 * (weight[below] + weight[above]) : mean(l, r);
    middle = std::clamp(middle, lower[nidx], upper[nidx]);
    upper[below] = middle;
    lower[above] = middle;
  }
}

/** @brief Cover must be additive in 32-bit floats, or SHAP values would not sum to the margin. */
float AddCover(RegTree* tree, bst_node_t nidx) {
  auto& stat = tree->Stat(nidx);
  auto const& node = (*tree)[nidx];
  if (!node.IsLeaf()) {
    stat.sum_hess = AddCover(tree, node.LeftChild()) + AddCover(tree, node.RightChild());
  }
  return stat.sum_hess;
}

void Write(Plan const& plan, TreeOfRound of, std::vector<NodeSum> const& sums,
           std::vector<double> const& weights, RegTree* tree) {
  double eta = plan.Step(of.round), unit = plan.MarginUnit(of);
  double start = plan.loss && of.round == 0 ? plan.loss->Start() / plan.parallel_trees : 0.0;
  auto covers = EstimateCovers(*tree, sums);
  for (bst_node_t nidx = 0; nidx < tree->NumNodes(); ++nidx) {
    auto& stat = tree->Stat(nidx);
    stat.base_weight = static_cast<float>(weights[nidx] * unit + start / eta);
    if ((*tree)[nidx].IsLeaf()) {
      (*tree)[nidx].SetLeaf(static_cast<float>(eta * weights[nidx] * unit + start));
      stat.sum_hess = static_cast<float>(covers[nidx]);
    }
  }
  AddCover(tree, RegTree::kRoot);
  auto gains = ExplainedGains(*tree, weights);
  for (bst_node_t nidx = 0; nidx < tree->NumNodes(); ++nidx) {
    tree->Stat(nidx).loss_chg = static_cast<float>(gains[nidx]);
  }
}
}  // namespace

std::vector<double> LeafWeights(Plan const& plan, bool oblivious,
                                std::vector<NodeSum> const& leaves, LeafShrinkage* shrinkage) {
  // Shrunk by strata of effects, each to a shared prior, or not.
  auto const& leaf = plan.leaf;
  Newton newton{leaf};
  bool shrink = leaf.shrinkage && leaf.noise != LeafNoise::kOutput;
  double row_variance = RowVariance(plan);
  bool noisy = row_variance > 0 ||
               std::all_of(leaves.cbegin(), leaves.cend(), [](auto& s) { return s.noise2 > 0; });
  bool complete = plan.depth <= kMaxStrataDepth && leaves.size() == std::size_t{1} << plan.depth;
  std::vector<double> weights;
  if (shrink && leaf.strata && noisy && complete) {
    auto soft = leaves;
    for (auto& s : soft) {
      s.grad = newton.Soft(s.grad);
    }
    auto& prior = oblivious ? shrinkage->oblivious : shrinkage->per_node;
    weights = prior.Fit(soft, newton.Lambda(), row_variance, StrataOf(plan, oblivious));
    for (auto& weight : weights) {
      weight = newton.Clip(weight);
    }
    return weights;
  }
  double prior = shrink ? shrinkage->leaves.Update(leaves, leaf.prior_max) : 0.0;
  for (auto const& s : leaves) {
    double noise2 = s.noise2 + row_variance * s.hess;
    weights.push_back(newton.Weight(s, shrink ? noise2 / (prior * s.hess) : 0.0));
  }
  return weights;
}

std::vector<NodeSum> FinishTree(std::vector<double> const& of_leaves, Plan const& plan,
                                TreeOfRound of, std::vector<bst_node_t> const& leaves,
                                std::vector<NodeSum> const& released, RegTree* tree) {
  Newton newton{plan.leaf};
  std::vector<NodeSum> sums(tree->NumNodes());
  std::vector<double> weights(tree->NumNodes());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    sums[leaves[i]] = released[i];
    weights[leaves[i]] = of_leaves[i];
  }
  SumUp(newton, *tree, &sums, &weights);
  OrderLeaves(plan, *tree, sums, &weights);
  Write(plan, of, sums, weights, tree);
  return sums;
}
}  // namespace xgboost::dp
