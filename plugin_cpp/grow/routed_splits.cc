#include "plugin_cpp/grow/routed_splits.h"

#include <algorithm>  // for max, min
#include <mutex>      // for mutex, lock_guard
#include <vector>     // for vector

#include "common/threading_utils.h"    // for ParallelFor
#include "plugin_cpp/grow/row_sets.h"  // for Branching

namespace xgboost::dp {
void RoutedSplits::Begin(common::Span<ClassGradients const> gradients) {
  CHECK_EQ(gradients.size(), 1);
  gpair_ = &gradients[0].pairs;
  nodes_.assign(1, Node{});
  next_.clear();
}

void RoutedSplits::Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
                          std::vector<std::vector<bst_node_t>> const& children, bool) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!children[i].empty()) {
      Branching const branching{pages_.Offsets(), nodes[i].nidx, partitions[i], children[i]};
      nodes_.resize(std::max(nodes_.size(), static_cast<std::size_t>(children[i].back()) + 1));
      nodes_[branching.node] = {branching.feature, static_cast<std::ptrdiff_t>(next_.size())};
      for (auto child : branching.child_of) {
        next_.push_back(branching.children[child]);
      }
    }
  }
}

template <typename Codes>
bst_node_t RoutedSplits::LeafOf(Codes const& codes, std::size_t row) const {
  bst_node_t nidx = 0;
  while (nodes_[nidx].next >= 0) {
    auto const& node = nodes_[nidx];
    nidx = next_[node.next + codes(row, node.feature)];
  }
  return nidx;
}

std::vector<LocalSum> RoutedSplits::Route(std::vector<bst_node_t>* positions) const {
  constexpr std::size_t kBlock = 16384;
  std::vector<LocalSum> sums(nodes_.size());
  std::mutex lock;
  positions->resize(gpair_->size());
  for (std::size_t p = 0; p < pages_.Size(); ++p) {
    auto page = pages_[p];
    WithCodes(page, pages_.Offsets(), [&](auto const& codes) {
      common::ParallelFor((page.n_rows + kBlock - 1) / kBlock, ctx_->Threads(), [&](auto block) {
        std::vector<LocalSum> partial(nodes_.size());
        auto end = std::min(page.n_rows, (static_cast<std::size_t>(block) + 1) * kBlock);
        for (auto i = static_cast<std::size_t>(block) * kBlock; i < end; ++i) {
          auto row = page.base_row + i;
          auto nidx = this->LeafOf(codes, i);
          (*positions)[row] = nidx;
          partial[nidx] += (*gpair_)[row].Sum();
        }
        std::lock_guard<std::mutex> guard{lock};
        for (std::size_t k = 0; k < partial.size(); ++k) {
          sums[k] += partial[k];
        }
      });
    });
  }
  return sums;
}

std::vector<LeafSums> RoutedSplits::End(std::vector<bst_node_t> const& leaves,
                                        std::vector<bst_node_t>* positions) {
  auto of_nodes = this->Route(positions);
  std::vector<LocalSum> sums;
  for (auto nidx : leaves) {
    sums.push_back(of_nodes[nidx]);
  }
  return {sums};
}
}  // namespace xgboost::dp
