#include "plugin_cpp/grow/level.h"

#include <algorithm>  // for clamp, find, max, min

#include "plugin_cpp/grow/row_sets.h"  // for RowSets
#include "plugin_cpp/rows/gradient.h"  // for PackedPair
#include "xgboost/logging.h"           // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::size_t kRowsOfBlock = 8192;
}  // namespace

std::vector<bst_node_t> SummedNodes(std::vector<Siblings> const& families) {
  std::vector<bst_node_t> summed;
  for (auto const& family : families) {
    for (std::size_t i = 0; i < family.nodes.size(); ++i) {
      if (i != family.heaviest) {
        summed.push_back(family.nodes[i]);
      }
    }
  }
  return summed;
}

std::size_t RowsOfBlock(std::int64_t largest) {
  CHECK_LE(largest, PackedPair::kLimit);
  return std::clamp<std::size_t>(PackedPair::kLimit / std::max<std::int64_t>(largest, 1), 1,
                                 kRowsOfBlock);
}

std::vector<RowBlock> BlocksOf(std::size_t p, RowSets const& rows,
                               std::vector<bst_node_t> const& nodes, std::size_t rows_of_block) {
  std::vector<RowBlock> blocks;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    auto set = rows.Rows(p, nodes[k]);
    for (std::size_t begin = 0; begin < set.size(); begin += rows_of_block) {
      blocks.push_back({k, set.subspan(begin, std::min(rows_of_block, set.size() - begin))});
    }
  }
  return blocks;
}

std::size_t IndexOf(bst_node_t nidx, std::vector<bst_node_t> const& nodes) {
  auto it = std::find(nodes.cbegin(), nodes.cend(), nidx);
  CHECK(it != nodes.cend());
  return it - nodes.cbegin();
}
}  // namespace xgboost::dp
