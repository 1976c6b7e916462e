/**
 * Splits that read no data: they cost nothing, no histogram is built, and rows go to the leaves at
 * the end.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/grow/row_router.h"  // for RowRouter
#include "plugin_cpp/grow/splitter.h"    // for Splitter

namespace xgboost::dp {
class RoutedSplits : public Splitter {
 public:
  explicit RoutedSplits(SplitterParts const& parts) : ctx_{parts.ctx}, pages_{parts.pages} {}

  void Begin(common::Span<ClassGradients const> gradients) override {
    CHECK_EQ(gradients.size(), 1);
    gpair_ = &gradients[0].pairs;
    router_.Reset();
  }

  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool) override {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!children[i].empty()) {
        router_.Add(nodes[i].nidx, partitions[i][0], children[i][0]);
      }
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
  BinnedPages const& pages_;
  std::vector<PackedPair> const* gpair_{nullptr};
  RowRouter router_;
};
}  // namespace xgboost::dp
