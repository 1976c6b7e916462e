#include "plugin_cpp/rows/raw_pages.h"

#include <algorithm>  // for any_of, sort
#include <atomic>     // for atomic
#include <cmath>      // for floor, isinf

#include "common/threading_utils.h"      // for ParallelFor
#include "plugin_cpp/release/release.h"  // for LocalInt, SumOverWorkers
#include "xgboost/logging.h"             // for CHECK

namespace xgboost::dp {
namespace {
struct PageColumns {
  bool known;   // all columns are below n_features
  bool rising;  // each row has rising column indices, without repetitions

  PageColumns(Context const* ctx, SparsePage const& page, bst_feature_t n_features) {
    auto view = page.GetView();
    std::atomic<bool> all_known{true};
    std::atomic<bool> all_rising{true};
    common::ParallelFor(view.Size(), ctx->Threads(), [&](auto i) {
      // Without branches, for vector instructions.
      auto const* row = view[i].data();
      auto n = view[i].size();
      bool is_known = true, is_rising = true;
      for (std::size_t j = 0; j < n; ++j) {
        is_known &= row[j].index < n_features;
      }
      for (std::size_t j = 1; j < n; ++j) {
        is_rising &= row[j - 1].index < row[j].index;
      }
      if (!is_known) {
        all_known.store(false, std::memory_order_relaxed);
      }
      if (!is_rising) {
        all_rising.store(false, std::memory_order_relaxed);
      }
    });
    known = all_known;
    rising = all_rising;
  }
};

SparsePage Sorted(SparsePage const& page) {
  SparsePage out;
  auto& offset = out.offset.HostVector();
  auto& data = out.data.HostVector();
  offset = page.offset.ConstHostVector();
  data = page.data.ConstHostVector();
  for (std::size_t i = 0; i + 1 < offset.size(); ++i) {
    auto begin = data.begin() + offset[i], end = data.begin() + offset[i + 1];
    std::sort(begin, end, Entry::CmpIndex);
  }
  out.SetBaseRowId(page.base_rowid);
  return out;
}
}  // namespace

void ForEachPage(Context const* ctx, DMatrix* p_fmat,
                 std::function<void(SparsePage const&)> const& fn) {
  auto n_features = static_cast<bst_feature_t>(p_fmat->Info().num_col_);
  for (auto const& page : p_fmat->GetBatches<SparsePage>(ctx)) {
    PageColumns rows{ctx, page, n_features};
    CHECK(rows.known) << "A row has an entry in a column outside the matrix. Set the shape of the "
                         "matrix to its number of columns, and drop such rows.";
    if (rows.rising) {
      fn(page);
      continue;
    }
    auto sorted = Sorted(page);
    // XGBoost would keep one of the entries, depending on the rows around it, and treat a row with
    // as many entries as columns as complete.
    CHECK((PageColumns{ctx, sorted, n_features}.rising))
        << "A row has two entries in one column. Store every cell of a sparse matrix once, and "
           "drop or fix such rows one by one.";
    fn(sorted);
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
  CHECK(finite)
      << "A row has an infinite feature. Features must be finite or missing. Drop or replace "
         "such cells row by row.";
  CHECK(declared)
      << "A row has a category outside the domain declared in `dp_categories`. Declare "
      << "every category that may occur, or replace undeclared ones with missing values.";
}

void CheckNumRows(Context const* ctx, Masking const& masking, std::uint64_t n_rows,
                  std::int64_t most) {
  LocalInt local{static_cast<std::int64_t>(n_rows)};
  // Workers that hide their numbers of rows each get an equal part of the bound.
  bool fits = masking.IsOn() ? local.value <= most / masking.workers
                             : SumOverWorkers(ctx, masking, local).value <= most;
  // Not CHECK_LE, which would print the number of rows.
  CHECK(fits) << "There are too many rows: sums of more than 2^35 rows, or 2^53 / 2^grid_bits, "
                 "would overflow. Train on fewer rows.";
}
}  // namespace xgboost::dp
