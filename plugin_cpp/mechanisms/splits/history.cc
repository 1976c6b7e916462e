#include "plugin_cpp/mechanisms/splits/history.h"

#include <algorithm>  // for max, for_each
#include <cmath>      // for ldexp, log

#include "plugin_cpp/mechanisms/splits/score.h"  // for AsUtility
#include "tree/tree_view.h"                      // for ScalarTreeView

namespace xgboost::dp {
void SplitHistory::Update(std::size_t class_idx, RegTree const& tree,
                          std::vector<NodeSum> const& sums) {
  constexpr double kPast = 0.9;
  auto* gain = gain_.data() + plan_.SplitClass(class_idx) * plan_.n_features;
  if (plan_.SplitClass(class_idx) == class_idx) {
    std::for_each(gain, gain + plan_.n_features, [](double& g) { g *= kPast; });
  }
  auto view = tree.HostScView();
  for (bst_node_t nidx = 0; nidx < tree.NumNodes(); ++nidx) {
    if (view.IsLeaf(nidx)) {
      continue;
    }
    auto const& l = sums[view.LeftChild(nidx)];
    auto const& r = sums[view.RightChild(nidx)];
    double h = l.hess + r.hess;
    double difference = (l.grad * r.hess - r.grad * l.hess) / h;
    double noise2 = l.noise2 * (r.hess / h) * (r.hess / h) + r.noise2 * (l.hess / h) * (l.hess / h);
    gain[view.SplitIndex(nidx)] += (difference * difference - noise2) * h / (l.hess * r.hess);
  }
}

std::vector<std::int64_t> SplitHistory::Offsets(std::size_t class_idx,
                                                FeatureList const& features) const {
  std::vector<std::int64_t> offsets(features.size(), 0);
  auto const* gain = gain_.data() + plan_.SplitClass(class_idx) * plan_.n_features;
  double total = 0;
  for (auto f : features) {
    total += std::max(gain[f], 0.0);
  }
  if (!(total > 0) || plan_.split_prior == 0.0 || plan_.noise_free) {
    return offsets;
  }
  // The utility of one nat in a selection: range / eps0.
  double nat = plan_.eps_num == 0 ? 0.0
                                  : std::ldexp(static_cast<double>(plan_.score_range), kEpsBits) /
                                        static_cast<double>(plan_.eps_num);
  for (std::size_t i = 0; i < features.size(); ++i) {
    double share = std::max(gain[features[i]], 0.0) / total;
    double prior =
        1.0 - plan_.split_prior + plan_.split_prior * share * static_cast<double>(features.size());
    offsets[i] = AsUtility(nat * std::log(prior));
  }
  return offsets;
}
}  // namespace xgboost::dp
