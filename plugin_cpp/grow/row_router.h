/**
 * Rows of a tree whose splits read no data: each goes down the finished tree in one pass.
 *
 * Such a tree needs neither histograms nor row sets of its levels. Sums of integers have no order,
 * so that the sums of the leaves are those that any other way would give.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <vector>   // for vector

#include "plugin_cpp/grow/binned_pages.h"  // for BinPlaces, BinnedPages
#include "plugin_cpp/grow/partition.h"     // for Split
#include "plugin_cpp/rows/gradient.h"      // for LocalSum, PackedPair
#include "xgboost/base.h"                  // for bst_node_t
#include "xgboost/context.h"               // for Context

namespace xgboost::dp {
class RowRouter {
 public:
  /** @brief Forget the last tree. */
  void Reset();
  /** @brief The split of a node. The right child follows the left one. */
  void Add(bst_node_t nidx, Split const& split, bst_node_t left);

  /**
   * @brief Send the rows of this worker down the tree.
   *
   * @param positions The leaf of each row.
   *
   * @return Sums of the pairs of the rows by node; of inner nodes they are 0.
   */
  [[nodiscard]] std::vector<LocalSum> Route(Context const* ctx, BinnedPages const& pages,
                                            std::vector<PackedPair> const& gpair,
                                            std::vector<bst_node_t>* positions) const;

 private:
  struct Node {
    Split split;
    bst_node_t left{-1};  // -1 for a leaf
  };
  template <typename Codes>
  [[nodiscard]] bst_node_t LeafOf(BinPlaces const& places, Codes const& codes,
                                  std::size_t row) const;

  std::vector<Node> nodes_;
};
}  // namespace xgboost::dp
