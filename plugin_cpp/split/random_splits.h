/**
 * Splits by chance: a feature and then one of its offers, each with equal probability.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstdint>  // for int32_t
#include <vector>   // for vector

#include "plugin_cpp/random/samplers.h"      // for UniformBelow
#include "plugin_cpp/split/routed_splits.h"  // for RoutedSplits

namespace xgboost::dp {
class RandomSplits : public RoutedSplits {
 public:
  RandomSplits(Context const* ctx, Offers const& offers, BinnedPages const& pages,
               RandomSource* structure)
      : RoutedSplits{ctx, pages}, offers_{offers}, structure_{structure} {}

  [[nodiscard]] Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t) override {
    Partitions partitions;
    Split split;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i == 0 || !tree.oblivious) {
        auto f = nodes[i].features[UniformBelow(structure_, nodes[i].features.size())];
        split = offers_.At(f, UniformBelow(structure_, offers_.Size(f)));
      }
      partitions.Add(&split, 1);
    }
    return partitions;
  }

 private:
  Offers const& offers_;
  RandomSource* structure_;
};
}  // namespace xgboost::dp
