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

#include "plugin_cpp/candidates/bins.h"  // for BinnedPages
#include "plugin_cpp/gradient.h"         // for GradientSum, PackedPair
#include "plugin_cpp/secure/masking.h"   // for Masking
#include "tree/common_row_partitioner.h"  // for CommonRowPartitioner
#include "xgboost/base.h"                // for bst_node_t
#include "xgboost/context.h"             // for Context
#include "xgboost/span.h"                // for Span

namespace xgboost::dp {
/** @brief Sums of the bins of all features in one node. */
using HistogramRow = common::Span<GradientSum const>;

/** @brief Nodes that part the rows of one node of the level above. */
struct Siblings {
  bst_node_t parent{0};
  std::vector<bst_node_t> nodes;
  std::size_t heaviest{0};  // among the nodes
};

class NodeHistograms {
 public:
  /**
   * @param n_bins  Bins of all features together.
   * @param largest No entry of a row's pair is larger in absolute value.
   */
  NodeHistograms(Context const* ctx, Masking const& masking, std::size_t n_bins,
                 std::int64_t largest);

  /** @brief Forget all nodes but the root, and sum its rows. */
  void BuildRoot(BinnedPages const& pages,
                 std::vector<tree::CommonRowPartitioner> const& partitioners,
                 std::vector<PackedPair> const& gpair);
  /**
   * @brief Replace the nodes of the level by those of the next.
   *
   * The heaviest of some siblings is their parent less the others, exactly.
   */
  void BuildLevel(BinnedPages const& pages,
                  std::vector<tree::CommonRowPartitioner> const& partitioners,
                  std::vector<PackedPair> const& gpair, std::vector<Siblings> const& families);

  /** @brief Sums over the rows of all workers; those of this worker alone in a masked training. */
  [[nodiscard]] HistogramRow operator[](bst_node_t nidx) const;

 private:
  struct Level {
    std::vector<bst_node_t> nodes;  // those that are summed over their rows come first
    std::vector<GradientSum> sums;
  };

  /** @brief Sum the rows of the first `n_built` nodes, of the same workers. */
  void SumRows(BinnedPages const& pages,
               std::vector<tree::CommonRowPartitioner> const& partitioners,
               std::vector<PackedPair> const& gpair, std::size_t n_built, Level* level) const;
  [[nodiscard]] GradientSum const* Find(bst_node_t nidx) const;

  Context const* ctx_;
  Masking masking_;
  std::size_t n_bins_;
  std::size_t rows_of_block_;
  Level level_;
};
}  // namespace xgboost::dp
