#include "plugin_cpp/split/candidates.h"

#include <algorithm>  // for upper_bound

namespace xgboost::dp {
SplitCandidates::SplitCandidates(Plan const& plan, common::HistogramCuts const& cuts)
    : ptrs_{cuts.Ptrs()} {
  offsets_.push_back(0);
  for (bst_feature_t f = 0; f < plan.features.size(); ++f) {
    auto n_bins = ptrs_[f + 1] - ptrs_[f];
    is_categorical_.push_back(plan.features[f].kind == FeaturePlan::Kind::kCategorical);
    // A numeric feature's last cut parts missing values from all others: one direction is enough.
    offsets_.push_back(offsets_.back() + (is_categorical_[f] ? 2 * n_bins : 2 * n_bins - 1));
  }
}

Split SplitCandidates::At(std::size_t idx) const {
  auto it = std::upper_bound(offsets_.cbegin(), offsets_.cend(), idx);
  Split out;
  out.feature = std::distance(offsets_.cbegin(), it) - 1;
  auto local = idx - offsets_[out.feature];
  out.bin = local / 2;
  out.default_left = local % 2 == 1;
  out.is_categorical = is_categorical_[out.feature];
  return out;
}

GradientSum SplitCandidates::LeftSum(Split const& split, common::ConstGHistRow hist,
                                     GradientSum const& total) const {
  auto missing = total - this->FeatureSum(split.feature, hist);
  auto begin = ptrs_[split.feature];
  if (split.is_categorical) {
    auto left = total - AsSum(hist[begin + split.bin]);
    return split.default_left ? left : left - missing;
  }
  GradientSum left;
  for (bst_bin_t i = 0; i <= split.bin; ++i) {
    left += AsSum(hist[begin + i]);
  }
  return split.default_left ? left + missing : left;
}
}  // namespace xgboost::dp
