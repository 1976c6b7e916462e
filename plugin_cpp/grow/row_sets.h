/**
 * Which rows lie in which node, page by page.
 *
 * A row moves by one code of its page, down all levels that one selection fills: its partition is
 * on one feature. Rows of a node stay in their order, so that pages are read forwards.
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
  std::vector<std::uint8_t> child_of;  // by code: position among the children
};

class RowSets {
 public:
  void Reset(Context const* ctx, BinnedPages const& pages);
  /** @brief Rows of a node in a page, counted from the page's first; empty where there are none. */
  [[nodiscard]] common::Span<std::uint32_t const> Rows(std::size_t p, bst_node_t nidx) const;
  void Part(Context const* ctx, std::size_t p, BinPage const& page, BinOffsets const& offsets,
            std::vector<Branching> const& branchings);
  /** @brief The node of each row after a last parting, without row sets of its children. */
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
  std::vector<std::size_t> begins_;         // where those of each page begin
  std::vector<std::vector<Range>> ranges_;  // by page and node
  std::vector<std::uint32_t> parted_;       // of one page
  std::vector<std::uint8_t> child_;         // of the rows of one page, in their order
  // The codes of each dense page in memory, feature by feature: rows are parted by one feature.
  std::vector<std::vector<std::uint8_t>> columns_;
};
}  // namespace xgboost::dp
