#include "plugin_cpp/split/features.h"

#include <algorithm>  // for includes, sort, unique, set_intersection, rotate, clamp, all_of
#include <cstddef>    // for size_t, ptrdiff_t
#include <iterator>   // for back_inserter
#include <limits>     // for numeric_limits
#include <numeric>    // for iota
#include <utility>    // for swap

#include "tree/tree_view.h"  // for ScalarTreeView

namespace xgboost::dp {
InteractionSets::InteractionSets(Plan const& plan) : sets_{plan.interactions} {
  for (auto& set : sets_) {
    std::sort(set.begin(), set.end());  // for std::includes
  }
}

FeatureList InteractionSets::Allowed(FeatureList const& of_tree, FeatureList const& above) const {
  if (sets_.empty() || above.empty()) {
    return of_tree;
  }
  auto normalise = [](FeatureList* list) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  };
  FeatureList path{above};
  normalise(&path);
  FeatureList wanted{path};
  for (auto const& set : sets_) {
    if (std::includes(set.cbegin(), set.cend(), path.cbegin(), path.cend())) {
      wanted.insert(wanted.end(), set.cbegin(), set.cend());
    }
  }
  normalise(&wanted);
  FeatureList out;
  std::set_intersection(wanted.cbegin(), wanted.cend(), of_tree.cbegin(), of_tree.cend(),
                        std::back_inserter(out));
  return out;
}

FeatureList FeaturesOfTree(Plan const& plan, std::int64_t tree_idx, RandomSource* rng) {
  FeatureList out(plan.n_features);
  std::iota(out.begin(), out.end(), 0);
  auto n = static_cast<std::size_t>(plan.features_per_tree);
  if (n == out.size()) {
    return out;
  }
  if (plan.cyclic_features) {
    auto first = static_cast<std::size_t>(tree_idx) * n % out.size();
    std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      std::swap(out[i], out[i + UniformBelow(rng, out.size() - i)]);
    }
  }
  out.resize(n);
  std::sort(out.begin(), out.end());
  return out;
}

void OrderLeaves(Plan const& plan, RegTree const& tree, std::vector<double> const& hess,
                 std::vector<double>* p_weight) {
  if (std::all_of(plan.monotone.cbegin(), plan.monotone.cend(), [](auto c) { return c == 0; })) {
    return;
  }
  auto& weight = *p_weight;
  auto view = tree.HostScView();
  auto n_nodes = tree.NumNodes();
  auto mean = [&](bst_node_t l, bst_node_t r) {
    return (hess[l] * weight[l] + hess[r] * weight[r]) / (hess[l] + hess[r]);
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
    auto middle = weight[below] <= weight[above] ? 0.5 * (weight[below] + weight[above])
                                                 : mean(l, r);
    middle = std::clamp(middle, lower[nidx], upper[nidx]);
    upper[below] = middle;
    lower[above] = middle;
  }
}
}  // namespace xgboost::dp
