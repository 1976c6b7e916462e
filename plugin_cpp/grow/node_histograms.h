/**
 * Sums of the bounded integer gradients by bin, for the nodes of one level.
 *
 * The gradient and Hessian of a row are packed into one 64-bit word, so a single addition sums
 * both, and the bins of a block of rows take half the cache of floating-point pairs. Sums are exact
 * in any order of rows, threads, pages and workers, so the histogram of the heaviest sibling is
 * exactly the parent's minus the others. Nodes with few rows need no wider sums than their words.
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
struct Siblings {
  bst_node_t parent{0};
  std::vector<bst_node_t> nodes;
  std::size_t heaviest{0};  // among the nodes
};

/** @brief The nodes of a level. Call Begin, then sum page by page, then EndNodes. */
class Level {
 public:
  /**
   * @param release Sums the numbers of all workers.
   * @param offsets Offsets of the bins of all features.
   * @param largest Largest absolute value of an entry of a pair.
   */
  Level(Context const* ctx, Release const& release, BinOffsets const& offsets,
        std::int64_t largest);

  /** @brief Begin the next level; the root if there are no families. */
  void Begin(std::vector<Siblings> families);

 protected:
  struct RowBlock {
    std::size_t node;  // index in summed_
    common::Span<std::uint32_t const> rows;
  };
  /** @brief Split the rows of the summed nodes in a page into blocks that cannot overflow sums. */
  [[nodiscard]] std::vector<RowBlock> MakeBlocks(std::size_t p, RowSets const& rows) const;
  /** @brief Whether every node of the level has too few rows in a page to overflow a word. */
  [[nodiscard]] bool FitsWords(std::size_t p, RowSets const& rows) const;
  /** @brief Index of a node in the last complete level. */
  [[nodiscard]] std::size_t IndexOf(bst_node_t nidx) const;
  /** @brief Set the nodes of the complete level: the summed ones, then the heaviest siblings. */
  void EndNodes();

  Context const* ctx_;
  Release const& release_;
  BinOffsets const& offsets_;
  std::size_t rows_per_block_;
  std::vector<bst_node_t> nodes_;
  std::vector<Siblings> families_;  // of the level in progress
  std::vector<bst_node_t> summed_;  // its nodes that are summed over their rows
};

template <typename Sum>
[[nodiscard]] Sum UnpackTo(PackedPair const& word) {
  return Sum{word.Sum().grad, word.Sum().hess};
}

/** @tparam Sum GlobalSum for sums over all workers, or LocalSum for this worker only. */
template <typename Sum>
class DenseHistograms : public Level {
 public:
  /** @brief Memory that is in use from the first page of a level to its end. */
  struct Scratch {
    std::vector<Sum> below;                      // sums of the level in progress
    std::vector<LocalSum> local;                 // of the summed nodes
    std::vector<PackedPair> packed;              // below, if it fits words
    std::vector<std::vector<PackedPair>> words;  // of each thread
  };
  /**
   * @param scratch  Shared by the classes. Each must end its level before the next one begins.
   * @param is_small Whether sums are packed into words if they fit.
   * @param has_all  Whether one page has all rows that are summed.
   */
  DenseHistograms(Context const* ctx, Release const& release, BinOffsets const& offsets,
                  std::int64_t largest, std::shared_ptr<Scratch> scratch, bool is_small,
                  bool has_all);

  void Add(std::size_t p, BinPage const& page, RowSets const& rows,
           std::vector<PackedPair> const& gpair);
  /** @brief Complete the level. It replaces the previous one. */
  void End();

  /** @brief The sums of a node; empty if they are packed into Words. */
  [[nodiscard]] common::Span<Sum const> operator[](bst_node_t nidx) const {
    if (is_packed_) {
      return {};
    }
    return {sums_.data() + this->IndexOf(nidx) * n_bins_, n_bins_};
  }
  [[nodiscard]] PackedPair const* Words(bst_node_t nidx) const {
    return is_packed_ ? words_.data() + this->IndexOf(nidx) * n_bins_ : nullptr;
  }

 private:
  /** @brief Consecutive features of a dense page that are summed together. */
  struct Tile {
    std::size_t begin, end;
  };

  template <typename Out>
  void AddRows(std::vector<RowBlock> const& blocks, BinPage const& page, PackedPair const* pairs,
               Out* sums);
  /** @brief Set the heaviest siblings, which follow the summed nodes. */
  template <typename Out>
  void SubtractSiblings(Out* below) const;

  std::vector<Tile> tiles_;
  std::size_t n_bins_;
  bool is_small_, has_all_;
  bool fits_{false};       // whether the level in progress is summed in words
  bool is_packed_{false};  // whether the complete level has words instead of sums
  std::vector<Sum> sums_;
  std::vector<PackedPair> words_;
  std::shared_ptr<Scratch> scratch_;
};

/** @brief The nonzero bins of a node, feature by feature. */
template <typename Sum>
struct SparseBins {
  std::vector<std::uint32_t> begins;   // of each feature, and the end of the last
  std::vector<std::uint32_t> offsets;  // see BinOffsets; ascending
  std::vector<Sum> sums;
};

/**
 * @brief Like DenseHistograms, but stores only nonzero bins: for sparse rows on a single worker.
 *        Memory and time are proportional to the number of stored cells.
 */
class SparseHistograms : public Level {
 public:
  using Level::Level;

  void Add(std::size_t p, BinPage const& page, RowSets const& rows,
           std::vector<PackedPair> const& gpair);
  void End();

  [[nodiscard]] SparseBins<GlobalSum> const& operator[](bst_node_t nidx) const {
    return bins_[this->IndexOf(nidx)];
  }

 private:
  using List = SparseBins<LocalSum>;  // without begins
  /** @brief Sums of one thread; all zero between blocks. */
  struct Table {
    std::vector<PackedPair> words;     // by place
    std::vector<std::uint8_t> is_set;  // by cache line: whether a word may be nonzero
    List list;                         // of a block
    List merged;
  };

  /** @brief Move the sums of a table to its list, and reset the table. */
  static void TakeList(Table* table);

  std::vector<SparseBins<GlobalSum>> bins_;  // of the nodes
  std::vector<List> lists_;                  // of the summed nodes
  std::vector<Table> tables_;                // of each thread
};
}  // namespace xgboost::dp
