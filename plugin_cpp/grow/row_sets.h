/**
 * The rows of each node, page by page.
 *
 * A partition splits on a single feature, so one code moves a row down all levels of a selection.
 * The rows of a node keep their order, so pages are read forwards.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for uint8_t, uint32_t
#include <vector>   // for vector

#include "plugin_cpp/grow/bins.h"       // for BinPage, BinOffsets, BinnedPages
#include "plugin_cpp/grow/partition.h"  // for Partition
#include "xgboost/base.h"               // for bst_node_t, bst_feature_t
#include "xgboost/context.h"            // for Context
#include "xgboost/span.h"               // for Span

namespace xgboost::dp {
struct Branching {
  /** @param children The children of the partition, from left to right. */
  Branching(BinOffsets const& offsets, bst_node_t node, Partition partition,
            std::vector<bst_node_t> children);

  bst_node_t node;
  bst_feature_t feature;
  std::vector<bst_node_t> children;
  std::vector<std::uint8_t> child_of;  // index of the child, by code
};

class RowSets {
 public:
  void Reset(Context const* ctx, BinnedPages const& pages);
  /** @brief Rows of a node in a page, relative to the first row of the page. */
  [[nodiscard]] common::Span<std::uint32_t const> Rows(std::size_t p, bst_node_t nidx) const;
  void Part(Context const* ctx, std::size_t p, BinPage const& page, BinOffsets const& offsets,
            std::vector<Branching> const& branchings);
  /** @brief Find the node of each row after the last branchings, without updating the row sets. */
  void Positions(Context const* ctx, BinnedPages const& pages,
                 std::vector<Branching> const& branchings,
                 std::vector<bst_node_t>* positions) const;

 private:
  struct Range {
    std::size_t begin{0};
    std::size_t size{0};
  };
  template <typename Fn>
  void WithCodes(std::size_t p, BinPage const& page, BinOffsets const& offsets, Fn&& fn) const;

  std::vector<std::uint32_t> rows_;         // of all pages
  std::vector<std::size_t> begins_;         // first row of each page
  std::vector<std::vector<Range>> ranges_;  // by page and node
  std::vector<std::uint32_t> parted_;       // partitioned rows of one page
  std::vector<std::uint8_t> child_;         // of each row of one page
  // The codes of dense pages in memory, feature by feature, for partitions by one feature.
  std::vector<std::vector<std::uint8_t>> columns_;
};
}  // namespace xgboost::dp
