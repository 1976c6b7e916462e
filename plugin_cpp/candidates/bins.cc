#include "plugin_cpp/candidates/bins.h"

#include <algorithm>  // for min, max, lower_bound, fill
#include <cstdint>    // for uint64_t, int64_t
#include <limits>     // for numeric_limits
#include <memory>     // for make_unique
#include <vector>     // for vector

#include "common/threading_utils.h"                // for ParallelFor
#include "plugin_cpp/candidates/float_key.h"       // for FloatKey
#include "plugin_cpp/candidates/quantile_tree.h"   // for QuantileCuts
#include "plugin_cpp/candidates/rows.h"            // for ForEachPage, IsDensePage
#include "plugin_cpp/distributed.h"                // for SumOverWorkers, FromRankZero
#include "xgboost/logging.h"                       // for CHECK_EQ

namespace xgboost::dp {
namespace {
// Features counted in one pass over the rows: bounds the memory of the count tables.
constexpr bst_feature_t kFeatureBlock = 32;

/** @brief Rows per finest cell, for a block of features. */
class KeyCounts {
 public:
  KeyCounts(Context const* ctx, std::vector<bst_feature_t> features, std::int32_t key_bits)
      : ctx_{ctx}, features_{std::move(features)}, key_bits_{key_bits} {
    tables_.resize(ctx->Threads());
    for (auto& t : tables_) {
      t.resize(features_.size() << key_bits_);
    }
  }

  void Add(SparsePage const& page, bool is_dense) {
    auto view = page.GetView();
    auto n_threads = ctx_->Threads();
    auto n_rows = view.Size();
    auto shift = 32 - key_bits_;
    common::ParallelFor(n_threads, n_threads, [&](auto tid) {
      auto* table = tables_[tid].data();
      auto begin = n_rows * tid / n_threads;
      auto end = n_rows * (tid + 1) / n_threads;
      for (auto i = begin; i < end; ++i) {
        auto row = view[i];
        auto const* e = row.data();
        auto const* last = e + row.size();
        for (std::size_t k = 0; k < features_.size(); ++k) {
          auto fidx = features_[k];
          if (is_dense) {
            e = row.data() + fidx;
          } else {
            e = std::lower_bound(e, last, fidx,
                                 [](Entry const& l, bst_feature_t r) { return l.index < r; });
            if (e == last) {
              break;
            }
            if (e->index != fidx) {
              continue;
            }
          }
          ++table[(k << key_bits_) + (FloatKey(e->fvalue) >> shift)];
        }
      }
    });
  }

  /** @brief Running sums over the cells of the k-th feature, of all workers. */
  [[nodiscard]] std::vector<std::int64_t> Cumulative(std::size_t k) const {
    std::size_t n_cells = std::size_t{1} << key_bits_;
    std::vector<std::int64_t> out(n_cells + 1, 0);
    for (auto const& t : tables_) {
      for (std::size_t c = 0; c < n_cells; ++c) {
        out[c + 1] += t[(k << key_bits_) + c];
      }
    }
    SumOverWorkers(ctx_, &out);
    for (std::size_t c = 0; c < n_cells; ++c) {
      out[c + 1] += out[c];
    }
    return out;
  }

 private:
  Context const* ctx_;
  std::vector<bst_feature_t> features_;
  std::int32_t key_bits_;
  std::vector<std::vector<std::int64_t>> tables_;
};

/** @brief Private cuts of every feature of kind `kPrivate`, in ascending order of the features. */
std::vector<std::vector<float>> PrivateCuts(Context const* ctx, Plan const& plan, DMatrix* p_fmat,
                                            RandomSource* rng) {
  std::vector<bst_feature_t> features;
  for (bst_feature_t f = 0; f < plan.features.size(); ++f) {
    if (plan.features[f].kind == FeaturePlan::Kind::kPrivate) {
      features.push_back(f);
    }
  }
  auto key_bits = plan.candidates.levels - 1;
  std::vector<std::vector<float>> out;
  for (std::size_t begin = 0; begin < features.size(); begin += kFeatureBlock) {
    auto end = std::min(features.size(), begin + kFeatureBlock);
    std::vector<bst_feature_t> block(features.begin() + begin, features.begin() + end);
    auto n_block = block.size();
    KeyCounts counts{ctx, std::move(block), key_bits};
    ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
      counts.Add(page, IsDensePage(page, plan.n_features));
    });
    for (std::size_t k = 0; k < n_block; ++k) {
      auto cumulative = counts.Cumulative(k);
      auto count = [&](std::int32_t level, std::uint64_t cell) {
        auto width = key_bits - level;
        return cumulative[(cell + 1) << width] - cumulative[cell << width];
      };
      out.push_back(FromRankZero(ctx, [&] { return QuantileCuts(plan.candidates, count, rng); }));
    }
  }
  return out;
}
}  // namespace

common::HistogramCuts MakeCuts(Context const* ctx, Plan const& plan, DMatrix* p_fmat,
                               RandomSource* rng, Ledger* ledger) {
  ForEachPage(ctx, p_fmat, [&](SparsePage const& page) { CheckFeatures(ctx, plan, page); });

  auto n_private = static_cast<std::uint64_t>(plan.NumPrivateFeatures());
  if (n_private > 0 && rng) {
    // One row is in one node per released level of each feature.
    auto touched = n_private * plan.candidates.levels;
    ledger->Record(GaussianEvent("candidates", touched << (2 * plan.candidates.shift),
                                 plan.candidates.sigma2, touched));
  }
  auto private_cuts = PrivateCuts(ctx, plan, p_fmat, rng);

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
