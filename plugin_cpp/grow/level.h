/**
 * The nodes of one level of a tree, and the rows of theirs that are summed.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint32_t
#include <vector>   // for vector

#include "xgboost/base.h"  // for bst_node_t
#include "xgboost/span.h"  // for Span

namespace xgboost::dp {
/** @brief Nodes that part the rows of one node of the level above. */
struct Siblings {
  bst_node_t parent{0};
  std::vector<bst_node_t> nodes;
  std::size_t heaviest{0};  // among the nodes
};

/** @brief Rows of one node in one page. */
struct RowBlock {
  std::size_t node;  // position among the nodes that are summed
  common::Span<std::uint32_t const> rows;
};

class RowSets;

/**
 * @brief The nodes that are summed over their rows: all but the heaviest of some siblings, which is
 *        their parent less the others.
 */
[[nodiscard]] std::vector<bst_node_t> SummedNodes(std::vector<Siblings> const& families);

/**
 * @brief Rows of a block, whose packed sums cannot overflow.
 * @param largest No entry of a row's pair is larger in absolute value.
 */
[[nodiscard]] std::size_t RowsOfBlock(std::int64_t largest);

/** @brief The rows of these nodes in the p-th page, in blocks. */
[[nodiscard]] std::vector<RowBlock> BlocksOf(std::size_t p, RowSets const& rows,
                                             std::vector<bst_node_t> const& nodes,
                                             std::size_t rows_of_block);

/** @brief Index of a node that is among these. */
[[nodiscard]] std::size_t IndexOf(bst_node_t nidx, std::vector<bst_node_t> const& nodes);
}  // namespace xgboost::dp
