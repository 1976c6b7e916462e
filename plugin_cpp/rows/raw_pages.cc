#include "plugin_cpp/rows/raw_pages.h"

#include <algorithm>  // for any_of, stable_sort
#include <atomic>     // for atomic
#include <cmath>      // for floor, isinf
#include <vector>     // for vector

#include "common/threading_utils.h"  // for ParallelFor
#include "xgboost/logging.h"         // for CHECK

namespace xgboost::dp {
namespace {
/**
 * @brief Whether every row has strictly increasing column indices. A column that the matrix does
 * not have is a defect of its row alone, and refused.
 */
bool HasDistinctColumns(Context const* ctx, SparsePage const& page, bst_feature_t n_features) {
  auto view = page.GetView();
  std::atomic<bool> distinct{true};
  std::atomic<bool> known{true};
  common::ParallelFor(view.Size(), ctx->Threads(), [&](auto i) {
    // Without branches, so that entries are compared several at a time.
    auto const* row = view[i].data();
    auto n = view[i].size();
    bool is_known = true, is_distinct = true;
    for (std::size_t j = 0; j < n; ++j) {
      is_known &= row[j].index < n_features;
    }
    for (std::size_t j = 1; j < n; ++j) {
      is_distinct &= row[j - 1].index < row[j].index;
    }
    if (!is_known) {
      known.store(false, std::memory_order_relaxed);
    }
    if (!is_distinct) {
      distinct.store(false, std::memory_order_relaxed);
    }
  });
  CHECK(known)
      << "A row has an entry in a column that the matrix does not have. Give the matrix its number "
         "of columns, and drop such rows.";
  return distinct;
}

/** @brief Copy of a page with sorted, distinct columns. */
SparsePage WithDistinctColumns(SparsePage const& page) {
  SparsePage out;
  auto& offset = out.offset.HostVector();
  auto& data = out.data.HostVector();
  offset.clear();
  offset.push_back(0);
  data.reserve(page.data.Size());
  auto view = page.GetView();
  std::vector<Entry> row;
  for (std::size_t i = 0; i < view.Size(); ++i) {
    auto inst = view[i];
    row.assign(inst.data(), inst.data() + inst.size());
    std::stable_sort(row.begin(), row.end(),
                     [](Entry const& a, Entry const& b) { return a.index < b.index; });
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (j + 1 == row.size() || row[j + 1].index != row[j].index) {
        data.push_back(row[j]);
      }
    }
    offset.push_back(data.size());
  }
  out.SetBaseRowId(page.base_rowid);
  return out;
}
}  // namespace

void ForEachPage(Context const* ctx, DMatrix* p_fmat,
                 std::function<void(SparsePage const&)> const& fn) {
  for (auto const& page : p_fmat->GetBatches<SparsePage>(ctx)) {
    if (HasDistinctColumns(ctx, page, p_fmat->Info().num_col_)) {
      fn(page);
    } else {
      fn(WithDistinctColumns(page));
    }
  }
}

void CheckFeatures(Context const* ctx, Plan const& plan, SparsePage const& page) {
  auto view = page.GetView();
  std::atomic<bool> finite{true};
  std::atomic<bool> declared{true};
  auto is_categorical = [](FeaturePlan const& feature) {
    return feature.kind == FeaturePlan::Kind::kCategorical;
  };
  bool any_categorical = std::any_of(plan.features.cbegin(), plan.features.cend(), is_categorical);
  common::ParallelFor(view.Size(), ctx->Threads(), [&](auto i) {
    auto const* row = view[i].data();
    auto n = view[i].size();
    bool is_finite = true, is_declared = true;
    for (std::size_t j = 0; j < n; ++j) {
      is_finite &= !std::isinf(row[j].fvalue);
    }
    for (std::size_t j = 0; any_categorical && j < n; ++j) {
      auto const& feature = plan.features[row[j].index];
      auto value = row[j].fvalue;
      if (is_categorical(feature) && !std::isinf(value)) {
        is_declared &= value >= 0.0f && value < static_cast<float>(feature.n_categories) &&
                       value == std::floor(value);
      }
    }
    if (!is_finite) {
      finite.store(false, std::memory_order_relaxed);
    }
    if (!is_declared) {
      declared.store(false, std::memory_order_relaxed);
    }
  });
  CHECK(finite) << "A row has an infinite feature. Features are finite or missing. Drop or replace "
                   "such cells "
                   "row by row.";
  CHECK(declared) << "A row has a category outside the domain declared in `dp_categories`. Declare "
                  << "every category that may occur, or map unknown ones to missing.";
}
}  // namespace xgboost::dp
