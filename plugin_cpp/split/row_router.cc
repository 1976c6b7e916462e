#include "plugin_cpp/split/row_router.h"

#include <algorithm>  // for max, min
#include <cstddef>    // for size_t
#include <mutex>      // for mutex, lock_guard

#include "common/hist_util.h"        // for DispatchBinType
#include "common/threading_utils.h"  // for ParallelFor

namespace xgboost::dp {
void RowRouter::Reset() { nodes_.assign(1, Node{}); }

void RowRouter::Add(bst_node_t nidx, Split const& split, bst_node_t left) {
  nodes_.resize(std::max(nodes_.size(), static_cast<std::size_t>(left) + 2));
  nodes_[nidx] = {split, left};
}

template <typename BinOf>
bst_node_t RowRouter::LeafOf(BinOf&& bin_of) const {
  bst_node_t nidx = 0;
  while (nodes_[nidx].left >= 0) {
    auto const& node = nodes_[nidx];
    auto bin = bin_of(node.split.feature);
    bool goes_left = bin < 0 ? node.split.default_left : node.split.GoesLeft(bin);
    nidx = node.left + (goes_left ? 0 : 1);
  }
  return nidx;
}

std::vector<GradientSum> RowRouter::Route(Context const* ctx, BinnedPages const& pages,
                                          std::vector<PackedPair> const& gpair,
                                          std::vector<bst_node_t>* positions) const {
  constexpr std::size_t kBlock = 16384;
  std::vector<GradientSum> sums(nodes_.size());
  std::mutex lock;
  positions->resize(gpair.size());
  for (auto const& page : pages) {
    auto const& ptrs = page->cut.Ptrs();
    auto n_rows = page->Size();
    auto n_features = page->Features();
    common::DispatchBinType(page->index.GetBinTypeSize(), [&](auto t) {
      using BinT = decltype(t);
      auto const* bins = page->index.template data<BinT>();
      common::ParallelFor((n_rows + kBlock - 1) / kBlock, ctx->Threads(), [&](auto block) {
        std::vector<GradientSum> own(nodes_.size());
        auto end = std::min(n_rows, (static_cast<std::size_t>(block) + 1) * kBlock);
        for (auto i = static_cast<std::size_t>(block) * kBlock; i < end; ++i) {
          auto row = page->base_rowid + i;
          // A dense page holds the bins of each feature counted from 0, others hold those of all.
          auto nidx = page->IsDense() ? this->LeafOf([&](bst_feature_t f) {
            return static_cast<bst_bin_t>(bins[i * n_features + f]);
          })
                                      : this->LeafOf([&](bst_feature_t f) {
                                          auto bin = page->GetGindex(row, f);
                                          return bin < 0 ? bin
                                                         : bin - static_cast<bst_bin_t>(ptrs[f]);
                                        });
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
