#include "plugin_cpp/grow/routed_splits.h"

#include <algorithm>  // for max, min
#include <mutex>      // for mutex, lock_guard

#include "common/threading_utils.h"  // for ParallelFor

namespace xgboost::dp {
void RoutedSplits::Begin(common::Span<ClassGradients const> gradients) {
  CHECK_EQ(gradients.size(), 1);
  gpair_ = &gradients[0].pairs;
  nodes_.assign(1, Node{});
}

void RoutedSplits::Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
                          std::vector<std::vector<bst_node_t>> const& children, bool) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!children[i].empty()) {
      auto left = children[i][0];
      nodes_.resize(std::max(nodes_.size(), static_cast<std::size_t>(left) + 2));
      nodes_[nodes[i].nidx] = {partitions[i][0], left};
    }
  }
}

template <typename Codes>
bst_node_t RoutedSplits::LeafOf(Codes const& codes, std::size_t row) const {
  bst_node_t nidx = 0;
  while (nodes_[nidx].left >= 0) {
    auto const& node = nodes_[nidx];
    auto f = node.split.feature;
    bool goes_left = node.split.GoesLeft(codes(row, f), pages_.Places().MissingCode(f));
    nidx = node.left + (goes_left ? 0 : 1);
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
    WithCodes(page, pages_.Places(), [&](auto const& codes) {
      common::ParallelFor((page.n_rows + kBlock - 1) / kBlock, ctx_->Threads(), [&](auto block) {
        std::vector<LocalSum> own(nodes_.size());
        auto end = std::min(page.n_rows, (static_cast<std::size_t>(block) + 1) * kBlock);
        for (auto i = static_cast<std::size_t>(block) * kBlock; i < end; ++i) {
          auto row = page.base_row + i;
          auto nidx = this->LeafOf(codes, i);
          (*positions)[row] = nidx;
          own[nidx] += (*gpair_)[row].Sum();
        }
        std::lock_guard<std::mutex> guard{lock};
        for (std::size_t k = 0; k < own.size(); ++k) {
          sums[k] += own[k];
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
