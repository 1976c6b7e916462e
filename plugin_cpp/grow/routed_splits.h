/**
 * Splits that read no data: they cost nothing, and no histogram is built. Each row goes down the
 * finished tree in one pass. Sums of integers have no order, so that the sums of the leaves are
 * those that any other way would give.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for ptrdiff_t
#include <vector>   // for vector

#include "plugin_cpp/grow/bins.h"      // for BinOffsets, BinnedPages
#include "plugin_cpp/grow/splitter.h"  // for Splitter, Split
#include "plugin_cpp/rows/gradient.h"  // for LocalSum, PackedPair

namespace xgboost::dp {
class RoutedSplits : public Splitter {
 public:
  explicit RoutedSplits(SplitterParts const& parts) : ctx_{parts.ctx}, pages_{parts.pages} {}

  void Begin(common::Span<ClassGradients const> gradients) override;
  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool last) override;
  [[nodiscard]] std::vector<LeafSums> End(std::vector<bst_node_t> const& leaves,
                                          std::vector<bst_node_t>* positions) override;

 private:
  struct Node {
    bst_feature_t feature{0};
    std::ptrdiff_t next{-1};  // where the offsets of its codes begin; -1 for a leaf
  };
  /** @brief Send the rows of this worker down the tree. @return Sums of their pairs by node. */
  [[nodiscard]] std::vector<LocalSum> Route(std::vector<bst_node_t>* positions) const;
  template <typename Codes>
  [[nodiscard]] bst_node_t LeafOf(Codes const& codes, std::size_t row) const;

  Context const* ctx_;
  BinnedPages const& pages_;
  std::vector<PackedPair> const* gpair_{nullptr};
  std::vector<Node> nodes_;
  std::vector<bst_node_t> next_;  // where a row goes, by the code of the feature
};
}  // namespace xgboost::dp
