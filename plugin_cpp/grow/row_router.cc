#include "plugin_cpp/grow/row_router.h"

#include <algorithm>  // for max, min
#include <mutex>      // for mutex, lock_guard

#include "common/threading_utils.h"  // for ParallelFor

namespace xgboost::dp {
void RowRouter::Reset() { nodes_.assign(1, Node{}); }

void RowRouter::Add(bst_node_t nidx, Split const& split, bst_node_t left) {
  nodes_.resize(std::max(nodes_.size(), static_cast<std::size_t>(left) + 2));
  nodes_[nidx] = {split, left};
}

template <typename Codes>
bst_node_t RowRouter::LeafOf(BinPlaces const& places, Codes const& codes, std::size_t row) const {
  bst_node_t nidx = 0;
  while (nodes_[nidx].left >= 0) {
    auto const& node = nodes_[nidx];
    auto f = node.split.feature;
    bool goes_left = node.split.GoesLeft(codes(row, f), places.MissingCode(f));
    nidx = node.left + (goes_left ? 0 : 1);
  }
  return nidx;
}

std::vector<LocalSum> RowRouter::Route(Context const* ctx, BinnedPages const& pages,
                                       std::vector<PackedPair> const& gpair,
                                       std::vector<bst_node_t>* positions) const {
  constexpr std::size_t kBlock = 16384;
  std::vector<LocalSum> sums(nodes_.size());
  std::mutex lock;
  positions->resize(gpair.size());
  for (std::size_t p = 0; p < pages.Size(); ++p) {
    auto page = pages[p];
    WithCodes(page, pages.Places(), [&](auto const& codes) {
      common::ParallelFor((page.n_rows + kBlock - 1) / kBlock, ctx->Threads(), [&](auto block) {
        std::vector<LocalSum> own(nodes_.size());
        auto end = std::min(page.n_rows, (static_cast<std::size_t>(block) + 1) * kBlock);
        for (auto i = static_cast<std::size_t>(block) * kBlock; i < end; ++i) {
          auto row = page.base_row + i;
          auto nidx = this->LeafOf(pages.Places(), codes, i);
          (*positions)[row] = nidx;
          own[nidx] += gpair[row].Sum();
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
}  // namespace xgboost::dp
