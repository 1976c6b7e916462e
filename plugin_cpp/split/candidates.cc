#include "plugin_cpp/split/candidates.h"

namespace xgboost::dp {
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
