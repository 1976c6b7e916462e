#include "plugin_cpp/split/offers.h"

#include <algorithm>  // for max, min
#include <cstddef>    // for size_t
#include <utility>    // for move
#include <vector>     // for vector

namespace xgboost::dp {
FeatureSums::FeatureSums(std::vector<GradientSum> bins, GradientSum const& missing)
    : bins_{std::move(bins)}, left_of_(1), missing_{missing} {
  left_of_.reserve(bins_.size() + 1);
  for (auto const& bin : bins_) {
    left_of_.push_back(left_of_.back() + bin);
  }
}

std::vector<GradientSum> FeatureSums::Cells(SplitGroup group) const {
  // The leaves of a heap of n splits are n, ..., 2 n, from left to right.
  auto n_splits = group.size();
  auto leaf_of = [&](auto goes_left) {
    std::size_t at = 0;
    while (at < n_splits) {
      at = 2 * at + (goes_left(group[at]) ? 1 : 2);
    }
    return at - n_splits;
  };
  std::vector<GradientSum> cells(n_splits + 1);
  auto n_bins = static_cast<bst_bin_t>(bins_.size());
  if (group[0].is_categorical) {
    for (bst_bin_t b = 0; b < n_bins; ++b) {
      cells[leaf_of([&](Split const& s) { return s.GoesLeft(b); })] += bins_[b];
    }
  } else {
    for (std::size_t leaf = 0; leaf < cells.size(); ++leaf) {
      bst_bin_t begin = 0, end = n_bins;
      for (auto at = leaf + n_splits; at > 0; at = (at - 1) / 2) {
        auto cut = group[(at - 1) / 2].bin + 1;
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

SplitCandidates::SplitCandidates(Plan const& plan, common::HistogramCuts const& cuts)
    : ptrs_{cuts.Ptrs()} {
  for (auto const& feature : plan.features) {
    is_categorical_.push_back(feature.kind == FeaturePlan::Kind::kCategorical);
  }
}

Split SplitCandidates::At(bst_feature_t f, std::size_t idx) const {
  Split out;
  out.feature = f;
  out.bin = idx / 2;
  out.default_left = idx % 2 == 1;
  out.is_categorical = is_categorical_[f];
  return out;
}
}  // namespace xgboost::dp
