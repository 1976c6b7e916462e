#include "plugin_cpp/grow/partition.h"

#include <algorithm>  // for fill, max, min

#include "plugin_cpp/release/sums.h"  // for LocalSum, GlobalSum

namespace xgboost::dp {
template <typename Sum>
void FeatureSums<Sum>::Reset(common::Span<Sum const> bins, Sum const& total) {
  bins_ = bins;
  left_of_.resize(bins.size() + 1);
  Sum left;
  auto* out = left_of_.data();
  *out++ = left;
  for (auto const *bin = bins.data(), *end = bin + bins.size(); bin != end; ++bin) {
    left += *bin;
    *out++ = left;
  }
  missing_ = total - left;
}

template <typename Sum>
void FeatureSums<Sum>::Cells(Partition partition, std::vector<Sum>* out) const {
  // The leaves of a heap of n splits are n, ..., 2 n, from left to right.
  auto n_splits = partition.size();
  auto const* splits = partition.data();
  auto leaf_of = [&](auto goes_left) {
    std::size_t at = 0;
    while (at < n_splits) {
      at = 2 * at + (goes_left(splits[at]) ? 1 : 2);
    }
    return at - n_splits;
  };
  out->resize(n_splits + 1);
  auto* cells = out->data();
  auto n_bins = static_cast<bst_bin_t>(bins_.size());
  if (splits[0].is_categorical) {
    auto const* bins = bins_.data();
    std::fill(out->begin(), out->end(), Sum{});
    for (bst_bin_t b = 0; b < n_bins; ++b) {
      cells[leaf_of([&](Split const& s) { return s.GoesLeft(b); })] += bins[b];
    }
  } else {
    for (std::size_t leaf = 0; leaf <= n_splits; ++leaf) {
      bst_bin_t begin = 0, end = n_bins;
      for (auto at = leaf + n_splits; at > 0; at = (at - 1) / 2) {
        auto cut = splits[(at - 1) / 2].bin + 1;
        bool is_left = at % 2 == 1;
        begin = is_left ? begin : std::max(begin, cut);
        end = is_left ? std::min(end, cut) : end;
      }
      cells[leaf] = begin < end ? left_of_[end] - left_of_[begin] : Sum{};
    }
  }
  cells[leaf_of([](Split const& s) { return s.default_left; })] += missing_;
}

template class FeatureSums<LocalSum>;
template class FeatureSums<GlobalSum>;
}  // namespace xgboost::dp
