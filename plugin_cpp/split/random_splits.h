/**
 * Splits that read no data: a feature and then one of its offers, each with equal probability. They
 * cost nothing, no histogram is built, and rows go to the leaves at the end.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstdint>  // for int32_t
#include <vector>   // for vector

#include "plugin_cpp/random/samplers.h"  // for UniformBelow
#include "plugin_cpp/rows/row_router.h"  // for RowRouter
#include "plugin_cpp/split/splitter.h"   // for Splitter

namespace xgboost::dp {
class RandomSplits : public Splitter {
 public:
  RandomSplits(Context const* ctx, Offers const& offers, BinnedPages const& pages,
               RandomSource* structure)
      : ctx_{ctx}, offers_{offers}, pages_{pages}, structure_{structure} {}

  void Begin(common::Span<ClassGradients const> gradients) override {
    CHECK_EQ(gradients.size(), 1);
    gpair_ = &gradients[0].pairs;
    router_.Reset();
  }

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

  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool) override {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      router_.Add(nodes[i].nidx, partitions[i][0], children[i][0]);
    }
  }

  [[nodiscard]] std::vector<LeafSums> End(std::vector<bst_node_t> const& leaves,
                                          std::vector<bst_node_t>* positions) override {
    auto of_nodes = router_.Route(ctx_, pages_, *gpair_, positions);
    std::vector<LocalSum> sums;
    for (auto nidx : leaves) {
      sums.push_back(of_nodes[nidx]);
    }
    return {sums};
  }

 private:
  Context const* ctx_;
  Offers const& offers_;
  BinnedPages const& pages_;
  RandomSource* structure_;
  std::vector<PackedPair> const* gpair_{nullptr};
  RowRouter router_;
};
}  // namespace xgboost::dp
