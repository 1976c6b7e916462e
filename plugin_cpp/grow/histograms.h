/**
 * Sums of the bounded integer gradients by bin, for the nodes of one level.
 *
 * Integers make this faster than sums of floating-point pairs: a row's pair is one 64-bit word, so
 * one addition sums both entries, and the bins of a block of rows take half the cache. Nothing is
 * rounded, whatever the order of rows, threads, pages and workers. So the heaviest of some siblings
 * is their parent less the others, exactly.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint8_t, uint32_t
#include <memory>   // for shared_ptr
#include <vector>   // for vector

#include "plugin_cpp/grow/bins.h"        // for BinPage, BinOffsets
#include "plugin_cpp/grow/row_sets.h"    // for RowSets
#include "plugin_cpp/release/release.h"  // for Release, LocalSum, GlobalSum
#include "plugin_cpp/rows/gradient.h"    // for PackedPair
#include "xgboost/base.h"                // for bst_node_t
#include "xgboost/context.h"             // for Context
#include "xgboost/span.h"                // for Span

namespace xgboost::dp {
/** @brief Nodes that part the rows of one node of the level above. */
struct Siblings {
  bst_node_t parent{0};
  std::vector<bst_node_t> nodes;
  std::size_t heaviest{0};  // among the nodes
};

/** @brief The nodes of a level, which is begun, summed page by page, and ended. */
class Level {
 public:
  /**
   * @param release Sums over workers.
   * @param offsets  Of the bins of all features.
   * @param largest No entry of a row's pair is larger in absolute value.
   */
  Level(Context const* ctx, Release const& release, BinOffsets const& offsets,
        std::int64_t largest);

  /** @brief Begin the level below; of the root where there are no siblings. */
  void Begin(std::vector<Siblings> families);

 protected:
  struct RowBlock {
    std::size_t node;  // position among the nodes that are summed
    common::Span<std::uint32_t const> rows;
  };
  /** @brief The rows of the summed nodes in the p-th page, whose packed sums cannot overflow. */
  [[nodiscard]] std::vector<RowBlock> BlocksOf(std::size_t p, RowSets const& rows) const;
  /** @brief Index of a node of the level that ended last. */
  [[nodiscard]] std::size_t IndexOf(bst_node_t nidx) const;
  /** @brief The nodes of the level that was begun are known: the summed ones, then the others. */
  void EndNodes();

  Context const* ctx_;
  Release const& release_;
  BinOffsets const& offsets_;
  std::size_t rows_of_block_;
  std::vector<bst_node_t> nodes_;
  std::vector<Siblings> families_;  // of the level that is begun
  std::vector<bst_node_t> summed_;  // its nodes that are summed over their rows
};

/** @brief The sum that a word holds. */
template <typename Sum>
[[nodiscard]] Sum UnpackTo(PackedPair const& word) {
  return Sum{word.Sum().grad, word.Sum().hess};
}

/** @tparam Sum GlobalSum, over the rows of all workers, or LocalSum, of this one alone. */
template <typename Sum>
class NodeHistograms : public Level {
 public:
  /** @brief What is needed from the first page of a level to its end. */
  struct Scratch {
    std::vector<Sum> below;                      // sums of the level that is begun, when it ends
    std::vector<LocalSum> local;                 // of the summed nodes
    std::vector<std::vector<PackedPair>> words;  // of each thread
  };
  /**
   * @param scratch  Shared by those of which one ends its level before the next begins one.
   * @param is_small Whether sums are kept in words where they fit.
   */
  NodeHistograms(Context const* ctx, Release const& release, BinOffsets const& offsets,
                 std::int64_t largest, std::shared_ptr<Scratch> scratch, bool is_small);

  void Add(std::size_t p, BinPage const& page, RowSets const& rows,
           std::vector<PackedPair> const& gpair);
  /** @brief Complete the level, which replaces the one above. */
  void End();

  /** @brief The sums of a node; none where they are in words, which are null elsewhere. */
  [[nodiscard]] common::Span<Sum const> operator[](bst_node_t nidx) const {
    if (!words_.empty()) {
      return {};
    }
    return {sums_.data() + this->IndexOf(nidx) * n_bins_, n_bins_};
  }
  [[nodiscard]] PackedPair const* Words(bst_node_t nidx) const {
    return words_.empty() ? nullptr : words_.data() + this->IndexOf(nidx) * n_bins_;
  }

 private:
  /** @brief Consecutive features of a dense page that are summed together. */
  struct Tile {
    std::size_t begin, end;
  };

  std::vector<Tile> tiles_;
  std::size_t n_bins_;
  bool is_small_;
  std::vector<Sum> sums_;  // these or those
  std::vector<PackedPair> words_;
  std::shared_ptr<Scratch> scratch_;
};

/** @brief The bins of a node whose sums are not 0, feature by feature. */
template <typename Sum>
struct StoredBins {
  std::vector<std::uint32_t> begins;   // of each feature, and one past the last
  std::vector<std::uint32_t> offsets;  // see BinOffsets; ascending
  std::vector<Sum> sums;
};

/**
 * @brief As NodeHistograms, where this worker has all rows and most cells of them are not stored:
 *        of each node, the bins that are not 0. Memory and time follow the stored cells.
 */
class StoredHistograms : public Level {
 public:
  using Level::Level;

  void Add(std::size_t p, BinPage const& page, RowSets const& rows,
           std::vector<PackedPair> const& gpair);
  void End();

  [[nodiscard]] StoredBins<GlobalSum> const& operator[](bst_node_t nidx) const {
    return bins_[this->IndexOf(nidx)];
  }

 private:
  using List = StoredBins<LocalSum>;  // without begins
  /** @brief Sums of one thread; all are 0 between blocks. */
  struct Table {
    std::vector<PackedPair> words;     // by place
    std::vector<std::uint8_t> is_set;  // by line of offsets: whether any may not be 0
    List list;                         // of a block
    List merged;
  };

  /** @brief Move the sums of a table to its list, and leave zeros. */
  static void TakeList(Table* table);

  std::vector<StoredBins<GlobalSum>> bins_;  // of the nodes
  std::vector<List> lists_;                  // of the summed nodes
  std::vector<Table> tables_;                // of each thread
};
}  // namespace xgboost::dp
