#include "plugin_cpp/mechanisms/leaves/leaf_values.h"

#include <algorithm>  // for all_of, clamp, max, max_element
#include <array>      // for array
#include <cmath>      // for abs, copysign, exp, log, sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for uint32_t
#include <cstring>    // for memcpy
#include <limits>     // for numeric_limits
#include <map>        // for map

#include "tree/tree_view.h"  // for ScalarTreeView

namespace xgboost::dp {
namespace {
constexpr double kMinShare = 1e-4;
constexpr double kMinCover = 1e-6;
// Standard deviation of the log-odds of the share of a split between the nodes of a level.
constexpr double kSpread = 0.5;

double LogOdds(double share) { return std::log(share / (1.0 - share)); }

/** @brief Shares whose log-odds have equal distances. Most nodes of a tree use the same ones. */
struct ShareGrid {
  static constexpr std::size_t kPoints = 64;
  double first{0}, last{0};  // shares
  std::array<double, kPoints> odds, share;

  void Set(double from, double to) {
    if (from == first && to == last) {
      return;
    }
    first = from;
    last = to;
    auto begin = LogOdds(from), step = (LogOdds(to) - begin) / (kPoints - 1);
    for (std::size_t i = 0; i < kPoints; ++i) {
      odds[i] = begin + step * static_cast<double>(i);
      share[i] = 1.0 / (1.0 + std::exp(-odds[i]));
    }
  }
};

struct MeasuredShare {
  double value;
  double deviation;

  /** @brief Estimate the right child's share of a cover from the sums of both children. */
  MeasuredShare(double cover, NodeSum const& left, NodeSum const& right) {
    auto both = left.cover_noise2 + right.cover_noise2;
    auto right_weight = both > 0 ? left.cover_noise2 / both : 0.5;
    value = (right_weight * right.cover + (1.0 - right_weight) * (cover - left.cover)) / cover;
    deviation = std::sqrt(right_weight * right.cover_noise2) / cover;
  }

  /**
   * @brief The posterior mean under a normal prior on the log-odds.
   *
   * @param spread Standard deviation of the prior; infinity for a uniform prior.
   * @param grid   Shares of an earlier call.
   */
  [[nodiscard]] double Mean(double centre, double spread, ShareGrid* grid) const {
    if (!(deviation > 0)) {
      return std::clamp(value, 0.0, 1.0);
    }
    constexpr double kDeviations = 6.0;
    auto end = [&](double sign) {
      return std::clamp(value + sign * kDeviations * deviation, kMinShare, 1.0 - kMinShare);
    };
    grid->Set(end(-1.0), end(1.0));
    std::array<double, ShareGrid::kPoints> log_density;
    for (std::size_t i = 0; i < log_density.size(); ++i) {
      auto noise = (grid->share[i] - value) / deviation, prior = (grid->odds[i] - centre) / spread;
      log_density[i] = -0.5 * (noise * noise + prior * prior);
    }
    auto top = *std::max_element(log_density.cbegin(), log_density.cend());
    double sum = 0, total = 0;
    for (std::size_t i = 0; i < log_density.size(); ++i) {
      auto density = std::exp(log_density[i] - top);
      sum += density * grid->share[i];
      total += density;
    }
    return sum / total;
  }
};

using Key = std::vector<std::uint32_t>;

/** @brief Depth and split of a node, and the path to it by splits on the same feature. */
Key SplitKey(tree::ScalarTreeView const& view, bst_node_t nidx) {
  auto feature = view.SplitIndex(nidx);
  Key key{static_cast<std::uint32_t>(view.GetDepth(nidx)), feature};
  for (auto node = nidx, below = RegTree::kInvalidNodeId; node != RegTree::kInvalidNodeId;
       below = node, node = view.IsRoot(node) ? RegTree::kInvalidNodeId : view.Parent(node)) {
    if (view.SplitIndex(node) != feature) {
      continue;
    }
    key.push_back(view.DefaultLeft(node) ? 1 : 0);
    key.push_back(below == view.RightChild(node) ? 1 : 0);
    if (view.SplitType(node) == FeatureType::kCategorical) {
      auto categories = view.NodeCats(node);
      key.insert(key.end(), categories.cbegin(), categories.cend());
    } else {
      auto threshold = view.SplitCond(node);
      std::memcpy(&key.emplace_back(), &threshold, sizeof(threshold));
    }
  }
  return key;
}

/**
 * @brief Estimate the covers of all nodes. They are positive and, without noise, equal the sums of
 *        the leaves.
 *
 * The noise of a leaf does not depend on its number of rows. The right child's share of the cover
 * of a node is therefore estimated with a prior that allows nearly all of it to be on one side.
 * Nodes of a level with the same split share their information.
 *
 * @param sums Released sums of all nodes.
 */
std::vector<double> EstimateCovers(RegTree const& tree, std::vector<NodeSum> const& sums) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  auto view = tree.HostScView();
  std::map<Key, std::vector<bst_node_t>> groups;  // by depth, as keys begin with it
  for (bst_node_t nidx = 0; nidx < tree.NumNodes(); ++nidx) {
    if (!view.IsLeaf(nidx)) {
      groups[SplitKey(view, nidx)].push_back(nidx);
    }
  }
  std::vector<double> covers(tree.NumNodes());
  auto const& root = sums[RegTree::kRoot];
  covers[RegTree::kRoot] = std::max({root.cover, std::sqrt(root.cover_noise2), kMinCover});
  ShareGrid grid;
  for (auto const& [_, nodes] : groups) {
    double cover = 0;
    NodeSum left, right;
    for (auto nidx : nodes) {
      cover += covers[nidx];
      left = left + sums[view.LeftChild(nidx)];
      right = right + sums[view.RightChild(nidx)];
    }
    auto common_share = MeasuredShare{cover, left, right}.Mean(0.0, kInf, &grid);
    for (auto nidx : nodes) {
      auto l = view.LeftChild(nidx), r = view.RightChild(nidx);
      auto share = nodes.size() == 1 ? common_share
                                     : MeasuredShare{covers[nidx], sums[l], sums[r]}.Mean(
                                           LogOdds(common_share), kSpread, &grid);
      covers[l] = std::max(covers[nidx] * (1.0 - share), kMinCover);
      covers[r] = std::max(covers[nidx] * share, kMinCover);
    }
  }
  return covers;
}

/**
 * @brief Gain of each split: the variance of the leaf weights that it explains, weighted by the
 *        covers of the tree.
 *
 * @param weights Weights of the leaves; values of inner nodes are ignored.
 */
std::vector<double> ExplainedGains(RegTree const& tree, std::vector<double> weights) {
  auto view = tree.HostScView();
  std::vector<double> gains(tree.NumNodes(), 0.0);
  // Children have larger ids than their parent.
  for (bst_node_t nidx = tree.NumNodes() - 1; nidx >= 0; --nidx) {
    if (view.IsLeaf(nidx)) {
      continue;
    }
    auto l = view.LeftChild(nidx), r = view.RightChild(nidx);
    double left_cover = view.stats[l].sum_hess, right_cover = view.stats[r].sum_hess;
    auto difference = weights[r] - weights[l], share = right_cover / (left_cover + right_cover);
    weights[nidx] = weights[l] + share * difference;
    gains[nidx] = left_cover * share * difference * difference;
  }
  return gains;
}

/** @brief Regularised Newton steps of released sums. */
class Newton {
 public:
  explicit Newton(LeafPlan const& leaf) : clip_{leaf.max_delta_step} {
    // Output perturbation releases no sums to regularise.
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

/** @brief Apply the monotone constraints of the plan to leaf weights. */
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
    // If the weights are in order, their midpoint separates both sides; otherwise both sides get
    // their mean.
    auto middle =
        weight[below] <= weight[above] ? 0.5 * (weight[below] + weight[above]) : mean(l, r);
    middle = std::clamp(middle, lower[nidx], upper[nidx]);
    upper[below] = middle;
    lower[above] = middle;
  }
}

/** @brief Covers must be additive as 32-bit floats, or SHAP values do not sum to the margin. */
float AddCover(RegTree* tree, bst_node_t nidx) {
  auto& stat = tree->Stat(nidx);
  auto const& node = (*tree)[nidx];
  if (!node.IsLeaf()) {
    stat.sum_hess = AddCover(tree, node.LeftChild()) + AddCover(tree, node.RightChild());
  }
  return stat.sum_hess;
}

void Write(Plan const& plan, TreeIndex idx, std::vector<NodeSum> const& sums,
           std::vector<double> const& weights, RegTree* tree) {
  double eta = plan.Step(idx.round), unit = plan.MarginUnit(idx);
  double start = plan.loss && idx.round == 0 ? plan.loss->Start() / plan.parallel_trees : 0.0;
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
    weights = prior.Fit(soft, newton.Lambda(), row_variance, leaf.noise_share,
                        MakeStrata(plan, oblivious));
    for (auto& weight : weights) {
      weight = newton.Clip(weight);
    }
    return weights;
  }
  double prior = shrink ? shrinkage->leaves.Update(leaves, leaf.prior_max) : 0.0;
  for (auto const& s : leaves) {
    double noise2 = leaf.noise_share * s.noise2 + row_variance * s.hess;
    weights.push_back(newton.Weight(s, shrink ? noise2 / (prior * s.hess) : 0.0));
  }
  return weights;
}

std::vector<NodeSum> FinishTree(std::vector<double> const& leaf_weights, Plan const& plan,
                                TreeIndex idx, std::vector<bst_node_t> const& leaves,
                                std::vector<NodeSum> const& released, RegTree* tree) {
  Newton newton{plan.leaf};
  std::vector<NodeSum> sums(tree->NumNodes());
  std::vector<double> weights(tree->NumNodes());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    sums[leaves[i]] = released[i];
    weights[leaves[i]] = leaf_weights[i];
  }
  SumUp(newton, *tree, &sums, &weights);
  OrderLeaves(plan, *tree, sums, &weights);
  Write(plan, idx, sums, weights, tree);
  return sums;
}
}  // namespace xgboost::dp
