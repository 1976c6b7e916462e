#include "plugin_cpp/rows/partition.h"

#include <algorithm>  // for max, min

#include "plugin_cpp/release/sums.h"  // for LocalSum, GlobalSum

namespace xgboost::dp {
template <typename Sum>
FeatureSums<Sum>::FeatureSums(common::Span<Sum const> bins, Sum const& missing)
    : bins_{bins}, left_of_(1), missing_{missing} {
  left_of_.reserve(bins_.size() + 1);
  for (std::size_t b = 0; b < bins_.size(); ++b) {
    left_of_.push_back(left_of_.back() + bins_[b]);
  }
}

template <typename Sum>
std::vector<Sum> FeatureSums<Sum>::Cells(Partition partition) const {
  // The leaves of a heap of n splits are n, ..., 2 n, from left to right.
  auto n_splits = partition.size();
  auto leaf_of = [&](auto goes_left) {
    std::size_t at = 0;
    while (at < n_splits) {
      at = 2 * at + (goes_left(partition[at]) ? 1 : 2);
    }
    return at - n_splits;
  };
  std::vector<Sum> cells(n_splits + 1);
  auto n_bins = static_cast<bst_bin_t>(bins_.size());
  if (partition[0].is_categorical) {
    for (bst_bin_t b = 0; b < n_bins; ++b) {
      cells[leaf_of([&](Split const& s) { return s.GoesLeft(b); })] += bins_[b];
    }
  } else {
    for (std::size_t leaf = 0; leaf < cells.size(); ++leaf) {
      bst_bin_t begin = 0, end = n_bins;
      for (auto at = leaf + n_splits; at > 0; at = (at - 1) / 2) {
        auto cut = partition[(at - 1) / 2].bin + 1;
        bool is_left = at % 2 == 1;
        begin = is_left ? begin : std::max(begin, cut);
        end = is_left ? std::min(end, cut) : end;
      }
      if (begin < end) {
        cells[leaf] = left_of_[end] - left_of_[begin];
      }
    }
  }
  cells[leaf_of([](Split const& s) { return s.default_left; })] += missing_;
  return cells;
}

template class FeatureSums<LocalSum>;
template class FeatureSums<GlobalSum>;
}  // namespace xgboost::dp
