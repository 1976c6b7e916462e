#include "plugin_cpp/grow/features.h"

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

FeatureList InteractionSets::Allowed(FeatureList const& tree_features,
                                     FeatureList const& above) const {
  if (sets_.empty() || above.empty()) {
    return tree_features;
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
  std::set_intersection(wanted.cbegin(), wanted.cend(), tree_features.cbegin(),
                        tree_features.cend(), std::back_inserter(out));
  return out;
}

namespace {
/**
 * @brief Draw features without replacement, in proportion to their weights.
 *
 * A Fenwick tree stores the sums of weights, so a draw takes logarithmic time.
 */
FeatureList WeightedFeatures(std::vector<std::int64_t> const& weights, std::size_t n,
                             RandomSource* rng) {
  auto n_all = weights.size();
  std::vector<std::uint64_t> sums(n_all + 1, 0);  // sums[i]: the (i & -i) weights that end at i
  std::uint64_t total = 0;
  auto parent = [](std::size_t i) { return i + (i & (~i + 1)); };
  for (std::size_t i = 1; i <= n_all; ++i) {
    auto weight = static_cast<std::uint64_t>(weights[i - 1]);
    total += weight;
    sums[i] += weight;
    if (parent(i) <= n_all) {
      sums[parent(i)] += sums[i];
    }
  }
  std::size_t most = 1;
  while (2 * most <= n_all) {
    most *= 2;
  }
  FeatureList out;
  while (out.size() < n) {
    auto rest = UniformBelow(rng, total);
    std::size_t drawn = 0;  // the first feature whose cumulative weight exceeds the number
    for (auto step = most; step > 0; step /= 2) {
      if (drawn + step <= n_all && sums[drawn + step] <= rest) {
        drawn += step;
        rest -= sums[drawn];
      }
    }
    out.push_back(static_cast<bst_feature_t>(drawn));
    auto weight = static_cast<std::uint64_t>(weights[drawn]);
    total -= weight;
    for (auto i = drawn + 1; i <= n_all; i = parent(i)) {
      sums[i] -= weight;
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}
}  // namespace

FeatureList SelectFeatures(Plan const& plan, std::int64_t tree_idx, RandomSource* rng) {
  if (!plan.offered.empty()) {
    return plan.offered;
  }
  FeatureList out(plan.n_features);
  std::iota(out.begin(), out.end(), 0);
  auto n = static_cast<std::size_t>(plan.features_per_tree);
  if (n == out.size()) {
    return out;
  }
  if (!plan.feature_weights.empty()) {
    return WeightedFeatures(plan.feature_weights, n, rng);
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
