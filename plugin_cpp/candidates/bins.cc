#include "plugin_cpp/candidates/bins.h"

#include <algorithm>  // for max
#include <cstdint>    // for int32_t
#include <limits>     // for numeric_limits
#include <memory>     // for make_unique
#include <vector>     // for vector

#include "plugin_cpp/candidates/rows.h"  // for ForEachPage, IsDensePage

namespace xgboost::dp {
common::HistogramCuts MakeCuts(Plan const& plan,
                               std::vector<std::vector<float>> const& private_cuts) {
  common::HistogramCuts cuts;
  auto& values = cuts.cut_values_.HostVector();
  auto& ptrs = cuts.cut_ptrs_.HostVector();
  auto& mins = cuts.min_vals_.HostVector();
  values.clear();
  ptrs.assign(1, 0);
  mins.assign(plan.features.size(), std::numeric_limits<float>::lowest());
  auto next = private_cuts.cbegin();
  float max_category = -1;
  for (auto const& feature : plan.features) {
    if (feature.kind == FeaturePlan::Kind::kCategorical) {
      for (std::int32_t c = 0; c < feature.n_categories; ++c) {
        values.push_back(static_cast<float>(c));
      }
      max_category = std::max(max_category, static_cast<float>(feature.n_categories - 1));
    } else {
      auto const& chosen = feature.kind == FeaturePlan::Kind::kPrivate ? *next++ : feature.cuts;
      values.insert(values.end(), chosen.cbegin(), chosen.cend());
      // Every value, however large, is below the last cut, in training as in prediction.
      if (chosen.empty() || chosen.back() < std::numeric_limits<float>::max()) {
        values.push_back(std::numeric_limits<float>::max());
      }
    }
    ptrs.push_back(values.size());
  }
  if (max_category >= 0) {
    cuts.SetCategorical(true, max_category);
  }
  return cuts;
}

BinnedPages BinRows(Context const* ctx, common::HistogramCuts const& cuts, DMatrix* p_fmat,
                    double sparse_threshold) {
  bst_bin_t max_bins{1};
  for (bst_feature_t f = 0; f < cuts.NumFeatures(); ++f) {
    max_bins = std::max(max_bins, cuts.FeatureBins(f));
  }
  auto types = p_fmat->Info().feature_types.ConstHostSpan();
  BinnedPages out;
  ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
    out.push_back(std::make_unique<GHistIndexMatrix>(ctx, page, types, cuts, max_bins,
                                                     IsDensePage(page, cuts.NumFeatures()),
                                                     sparse_threshold));
  });
  return out;
}
}  // namespace xgboost::dp
