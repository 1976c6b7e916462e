#include "plugin_cpp/split/features.h"

#include <algorithm>  // for includes, sort, unique, set_intersection, rotate
#include <cstddef>    // for size_t, ptrdiff_t
#include <iterator>   // for back_inserter
#include <numeric>    // for iota
#include <utility>    // for swap

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
}  // namespace xgboost::dp
