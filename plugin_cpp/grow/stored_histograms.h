/**
 * Sums of the bounded integer gradients by bin, for the nodes of one level, where most cells of the
 * rows are not stored: of each node, the bins that are not 0. Memory and time follow the stored
 * cells of its rows. The sums are those of NodeHistograms.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint8_t, uint32_t
#include <vector>   // for vector

#include "plugin_cpp/grow/bin_page.h"    // for BinPage, BinPlaces
#include "plugin_cpp/grow/level.h"       // for Siblings
#include "plugin_cpp/release/release.h"  // for Release, LocalSum, GlobalSum
#include "plugin_cpp/rows/gradient.h"    // for PackedPair
#include "xgboost/base.h"                // for bst_node_t
#include "xgboost/context.h"             // for Context

namespace xgboost::dp {
/** @brief The bins of a node whose sums are not 0, feature by feature. */
template <typename Sum>
struct StoredBins {
  std::vector<std::uint32_t> begins;  // of each feature, and one past the last
  std::vector<std::uint32_t> places;  // see BinPlaces; ascending
  std::vector<Sum> sums;
};

class RowSets;

/** @brief As NodeHistograms, where this worker has all rows and all pages are sparse. */
class StoredHistograms {
 public:
  /** @param largest No entry of a row's pair is larger in absolute value. */
  StoredHistograms(Context const* ctx, Release const& release, BinPlaces const& places,
                   std::int64_t largest);

  void BeginRoot();
  void BeginLevel(std::vector<Siblings> families);
  void Add(std::size_t p, BinPage const& page, RowSets const& rows,
           std::vector<PackedPair> const& gpair);
  void End();

  [[nodiscard]] StoredBins<GlobalSum> const& operator[](bst_node_t nidx) const;

 private:
  /** @brief Some places in ascending order, with their sums. */
  struct List {
    std::vector<std::uint32_t> places;
    std::vector<LocalSum> sums;
  };
  /** @brief Sums of one thread; all are 0 between blocks. */
  struct Table {
    std::vector<PackedPair> words;     // by place
    std::vector<std::uint8_t> is_set;  // by line of places: whether any may not be 0
    List list;                         // of a block
    List merged;
  };

  /** @brief Move the sums of a table to its list, and leave zeros. */
  static void TakeList(Table* table);
  /** @brief Add a list to another. */
  static void Merge(List const& list, List* into, List* scratch);
  [[nodiscard]] StoredBins<GlobalSum> Finish(List* list) const;

  Context const* ctx_;
  Release const& release_;
  BinPlaces const& places_;
  std::size_t rows_of_block_;
  std::vector<bst_node_t> nodes_;
  std::vector<StoredBins<GlobalSum>> bins_;  // of the nodes
  std::vector<Siblings> families_;           // of the level that is begun
  std::vector<bst_node_t> summed_;           // its nodes that are summed over their rows
  std::vector<List> lists_;                  // their sums
  std::vector<Table> tables_;                // of each thread
};
}  // namespace xgboost::dp
