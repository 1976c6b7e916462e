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

#include "plugin_cpp/rows/gradient.h"        // for GradientSum, PackedPair
#include "plugin_cpp/rows/bin_page.h"  // for BinPage, BinPlaces
#include "plugin_cpp/release/masking.h"  // for Masking
#include "xgboost/base.h"               // for bst_node_t
#include "xgboost/context.h"            // for Context
#include "xgboost/span.h"               // for Span

namespace xgboost::dp {
/** @brief Sums of the bins of all features in one node. */
using HistogramRow = common::Span<GradientSum const>;

/** @brief Nodes that part the rows of one node of the level above. */
struct Siblings {
  bst_node_t parent{0};
  std::vector<bst_node_t> nodes;
  std::size_t heaviest{0};  // among the nodes
};

/** @brief Consecutive features of a dense page that are summed together. */
struct FeatureTile {
  std::size_t begin{0};
  std::size_t end{0};
};

class RowSets;

/** @brief A level is begun, summed page by page, and ended. */
class NodeHistograms {
 public:
  /**
   * @param places  Of the bins of all features.
   * @param largest No entry of a row's pair is larger in absolute value.
   */
  NodeHistograms(Context const* ctx, Masking const& masking, BinPlaces const& places,
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

  /** @brief Sums over the rows of all workers; those of this worker alone in a masked training. */
  [[nodiscard]] HistogramRow operator[](bst_node_t nidx) const;

 private:
  struct Level {
    std::vector<bst_node_t> nodes;  // those that are summed over their rows come first
    std::vector<GradientSum> sums;
  };

  [[nodiscard]] GradientSum const* Find(bst_node_t nidx) const;

  Context const* ctx_;
  Masking masking_;
  BinPlaces const& places_;
  std::vector<FeatureTile> tiles_;
  std::size_t n_bins_;
  std::size_t rows_of_block_;
  Level level_, next_;
  std::vector<Siblings> families_;              // of the level that is begun
  std::size_t n_summed_{0};                     // nodes of it that are summed over their rows
  std::vector<std::vector<PackedPair>> words_;  // of each thread
};
}  // namespace xgboost::dp
