/**
 * Sums of the bounded integer gradients by bin, for the nodes of one level.
 *
 * Integers make this faster than sums of floating-point pairs: a row's pair is one 64-bit word, so
 * one addition sums both entries, and the bins of a block of rows take half the cache. Nothing is
 * rounded, whatever the order of rows, threads, pages and workers.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "plugin_cpp/grow/bin_page.h"    // for BinPage, BinPlaces
#include "plugin_cpp/grow/level.h"       // for Siblings
#include "plugin_cpp/release/release.h"  // for Release, LocalSum
#include "plugin_cpp/rows/gradient.h"    // for PackedPair
#include "xgboost/base.h"                // for bst_node_t
#include "xgboost/context.h"             // for Context
#include "xgboost/span.h"                // for Span

namespace xgboost::dp {
/** @brief Consecutive features of a dense page that are summed together. */
struct FeatureTile {
  std::size_t begin{0};
  std::size_t end{0};
};

class RowSets;

/**
 * @brief A level is begun, summed page by page, and ended.
 *
 * @tparam Sum GlobalSum, over the rows of all workers, or LocalSum, of this one alone.
 */
template <typename Sum>
class NodeHistograms {
 public:
  /**
   * @param release Sums over workers.
   * @param places  Of the bins of all features.
   * @param largest No entry of a row's pair is larger in absolute value.
   */
  NodeHistograms(Context const* ctx, Release const& release, BinPlaces const& places,
                 std::int64_t largest);

  /** @brief Forget all nodes, and begin with the root. */
  void BeginRoot();
  /**
   * @brief Begin the level below.
   *
   * The heaviest of some siblings is their parent less the others, exactly.
   */
  void BeginLevel(std::vector<Siblings> families);
  /** @brief Sum the rows of the p-th page. */
  void Add(std::size_t p, BinPage const& page, RowSets const& rows,
           std::vector<PackedPair> const& gpair);
  /** @brief Complete the level, which replaces the one above. */
  void End();

  /** @brief Sums of the bins of all features in one node. */
  [[nodiscard]] common::Span<Sum const> operator[](bst_node_t nidx) const {
    return {this->Find(nidx), n_bins_};
  }

 private:
  [[nodiscard]] Sum const* Find(bst_node_t nidx) const;

  Context const* ctx_;
  Release const& release_;
  BinPlaces const& places_;
  std::vector<FeatureTile> tiles_;
  std::size_t n_bins_;
  std::size_t rows_of_block_;
  std::vector<bst_node_t> nodes_;
  std::vector<Sum> sums_;
  std::vector<Sum> below_;                      // of the level that is begun, when it ends
  std::vector<Siblings> families_;              // of the level that is begun
  std::vector<bst_node_t> summed_;              // its nodes that are summed over their rows
  std::vector<LocalSum> local_;                 // their sums
  std::vector<std::vector<PackedPair>> words_;  // of each thread
};
}  // namespace xgboost::dp
