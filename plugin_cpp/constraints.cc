#include "plugin_cpp/constraints.h"

#include <algorithm>  // for includes, sort, unique, clamp, all_of
#include <limits>     // for numeric_limits
#include <numeric>    // for iota

#include "tree/tree_view.h"  // for ScalarTreeView

namespace xgboost::dp {
InteractionSets::InteractionSets(Plan const& plan)
    : sets_{plan.interactions}, all_(plan.n_features) {
  for (auto& set : sets_) {
    std::sort(set.begin(), set.end());  // for std::includes
  }
  std::iota(all_.begin(), all_.end(), 0);
}

FeatureList InteractionSets::Allowed(FeatureList const& above) const {
  if (sets_.empty() || above.empty()) {
    return all_;
  }
  auto normalise = [](FeatureList* list) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  };
  FeatureList path{above};
  normalise(&path);
  FeatureList out{path};
  for (auto const& set : sets_) {
    if (std::includes(set.cbegin(), set.cend(), path.cbegin(), path.cend())) {
      out.insert(out.end(), set.cbegin(), set.cend());
    }
  }
  normalise(&out);
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
