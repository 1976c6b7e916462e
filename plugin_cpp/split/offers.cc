#include "plugin_cpp/split/offers.h"

namespace xgboost::dp {
Offers::Offers(Plan const& plan, common::HistogramCuts const& cuts) : ptrs_{cuts.Ptrs()} {
  for (auto const& feature : plan.features) {
    is_categorical_.push_back(feature.kind == FeaturePlan::Kind::kCategorical);
  }
}

Split Offers::At(bst_feature_t f, std::size_t idx) const {
  Split out;
  out.feature = f;
  out.bin = idx / 2;
  out.default_left = idx % 2 == 1;
  out.is_categorical = is_categorical_[f];
  return out;
}
}  // namespace xgboost::dp
