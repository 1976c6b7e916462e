#include "plugin_cpp/releases/leaves/covers.h"

#include <algorithm>  // for clamp, max
#include <array>      // for array
#include <cmath>      // for exp, log, sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for uint32_t
#include <cstring>    // for memcpy
#include <limits>     // for numeric_limits
#include <map>        // for map

#include "tree/tree_view.h"  // for ScalarTreeView

namespace xgboost::dp {
namespace {
constexpr double kLeastShare = 1e-4;
constexpr double kLeastCover = 1e-6;
// Deviation of the log-odds of the share of one split between the nodes of a level.
constexpr double kSpread = 0.5;

double LogOdds(double share) { return std::log(share / (1.0 - share)); }

/** @brief A share with normal noise. */
struct MeasuredShare {
  double value;
  double deviation;

  /** @brief Of the cover of nodes that goes to the right, from both sides. */
  MeasuredShare(double cover, NodeSum const& left, NodeSum const& right) {
    auto both = left.cover_noise2 + right.cover_noise2;
    auto of_right = both > 0 ? left.cover_noise2 / both : 0.5;
    value = (of_right * right.cover + (1.0 - of_right) * (cover - left.cover)) / cover;
    deviation = std::sqrt(of_right * right.cover_noise2) / cover;
  }

  /**
   * @brief Its posterior mean. The log-odds have a normal prior.
   *
   * @param centre Of the prior.
   * @param spread Its deviation; infinity for a uniform one.
   */
  [[nodiscard]] double Mean(double centre, double spread) const {
    if (!(deviation > 0)) {
      return std::clamp(value, 0.0, 1.0);
    }
    constexpr std::size_t kPoints = 64;
    constexpr double kDeviations = 6.0;
    auto end = [&](double sign) {
      return LogOdds(
          std::clamp(value + sign * kDeviations * deviation, kLeastShare, 1.0 - kLeastShare));
    };
    auto begin = end(-1.0), step = (end(1.0) - begin) / (kPoints - 1);
    std::array<double, kPoints> share, log_density;
    for (std::size_t i = 0; i < kPoints; ++i) {
      auto odds = begin + step * static_cast<double>(i);
      share[i] = 1.0 / (1.0 + std::exp(-odds));
      auto noise = (share[i] - value) / deviation, prior = (odds - centre) / spread;
      log_density[i] = -0.5 * (noise * noise + prior * prior);
    }
    auto top = *std::max_element(log_density.cbegin(), log_density.cend());
    double sum = 0, total = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
      auto density = std::exp(log_density[i] - top);
      sum += density * share[i];
      total += density;
    }
    return sum / total;
  }
};

using Key = std::vector<std::uint32_t>;

/** @brief What a node shares with others of its level: its split, and the way to it by that column.
 */
Key KeyOf(tree::ScalarTreeView const& view, bst_node_t nidx) {
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
}  // namespace

std::vector<double> EstimateCovers(RegTree const& tree, std::vector<NodeSum> const& sums) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  auto view = tree.HostScView();
  std::map<Key, std::vector<bst_node_t>> groups;  // by depth, as keys begin with it
  for (bst_node_t nidx = 0; nidx < tree.NumNodes(); ++nidx) {
    if (!view.IsLeaf(nidx)) {
      groups[KeyOf(view, nidx)].push_back(nidx);
    }
  }
  std::vector<double> covers(tree.NumNodes());
  auto const& root = sums[RegTree::kRoot];
  covers[RegTree::kRoot] = std::max({root.cover, std::sqrt(root.cover_noise2), kLeastCover});
  for (auto const& [_, nodes] : groups) {
    double cover = 0;
    NodeSum left, right;
    for (auto nidx : nodes) {
      cover += covers[nidx];
      left = left + sums[view.LeftChild(nidx)];
      right = right + sums[view.RightChild(nidx)];
    }
    auto of_all = MeasuredShare{cover, left, right}.Mean(0.0, kInf);
    for (auto nidx : nodes) {
      auto l = view.LeftChild(nidx), r = view.RightChild(nidx);
      auto share = nodes.size() == 1 ? of_all
                                     : MeasuredShare{covers[nidx], sums[l], sums[r]}.Mean(
                                           LogOdds(of_all), kSpread);
      covers[l] = std::max(covers[nidx] * (1.0 - share), kLeastCover);
      covers[r] = std::max(covers[nidx] * share, kLeastCover);
    }
  }
  return covers;
}

std::vector<double> ExplainedGains(RegTree const& tree, std::vector<double> weights) {
  auto view = tree.HostScView();
  std::vector<double> gains(tree.NumNodes(), 0.0);
  // Children have larger ids than their parent.
  for (bst_node_t nidx = tree.NumNodes() - 1; nidx >= 0; --nidx) {
    if (view.IsLeaf(nidx)) {
      continue;
    }
    auto l = view.LeftChild(nidx), r = view.RightChild(nidx);
    double of_left = view.stats[l].sum_hess, of_right = view.stats[r].sum_hess;
    auto difference = weights[r] - weights[l], share = of_right / (of_left + of_right);
    weights[nidx] = weights[l] + share * difference;
    gains[nidx] = of_left * share * difference * difference;
  }
  return gains;
}
}  // namespace xgboost::dp
