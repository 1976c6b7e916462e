#include "plugin_cpp/candidates/bins.h"

#include <algorithm>    // for max
#include <cstddef>      // for size_t
#include <cstdint>      // for int32_t, uint8_t, uint32_t, uint64_t
#include <limits>       // for numeric_limits
#include <memory>       // for default_delete
#include <string>       // for string
#include <type_traits>  // for remove_const_t, remove_pointer_t
#include <vector>       // for vector

#include "common/categorical.h"           // for IsCat
#include "common/threading_utils.h"       // for ParallelFor
#include "data/sparse_page_dmatrix.h"     // for SparsePageDMatrix
#include "plugin_cpp/candidates/rows.h"   // for ForEachPage
#include "plugin_cpp/pages/page_file.h"   // for PageFile
#include "xgboost/logging.h"              // for CHECK
#include "xgboost/span.h"                 // for Span

namespace xgboost::dp {
namespace {
/** @brief The bin of a value within its feature: the first whose cut is above it, or the last. */
std::uint32_t BinOf(common::HistogramCuts const& cuts, common::Span<FeatureType const> types,
                    Entry const& entry) {
  auto begin = cuts.Ptrs()[entry.index];
  if (common::IsCat(types, entry.index)) {
    return cuts.SearchCatBin(entry) - begin;
  }
  auto const* first = cuts.Values().data() + begin;
  auto const* at = first;
  // Without branches: which half it is cannot be guessed.
  for (auto n = cuts.Ptrs()[entry.index + 1] - begin; n > 1;) {
    auto half = n / 2;
    at = at[half - 1] <= entry.fvalue ? at + half : at;
    n -= half;
  }
  return static_cast<std::uint32_t>(at - first);
}

/** @brief Where to keep the pages of a matrix: empty for memory. */
std::string CacheOf(DMatrix* p_fmat) {
  auto const* paged = dynamic_cast<data::SparsePageDMatrix const*>(p_fmat);
  return paged && paged->NumBatches() > 1 ? paged->CachePrefix() : std::string{};
}

BinPage BinPageOf(Context const* ctx, common::HistogramCuts const& cuts,
                  common::Span<FeatureType const> types, BinPlaces const& places,
                  SparsePage const& page) {
  auto view = page.GetView();
  auto const* offset = page.offset.ConstHostVector().data();
  BinPage out;
  out.base_row = page.base_rowid;
  out.n_rows = view.Size();
  out.n_features = places.NumFeatures();
  // Rows of a page are numbered by 32 bits.
  CHECK(out.n_rows <= std::numeric_limits<std::uint32_t>::max())  // CHECK_LE would print them
      << "Too many rows in one batch: give the rows in several, by a `DataIter`.";
  auto n_cells = out.n_rows * out.n_features;
  auto n_entries = out.n_rows == 0 ? 0 : offset[out.n_rows] - offset[0];
  bool is_full = n_entries == n_cells;
  auto allocate = [&](std::size_t n_bytes) {
    auto* bytes = new std::uint8_t[n_bytes];
    out.n_bytes = n_bytes;
    out.bytes = {bytes, std::default_delete<std::uint8_t[]>{}};
    return bytes;
  };

  if (2 * n_entries < n_cells) {
    auto* row_ptr = reinterpret_cast<std::uint64_t*>(
        allocate((out.n_rows + 1) * sizeof(std::uint64_t) + n_entries * sizeof(std::uint32_t)));
    auto* entries = reinterpret_cast<std::uint32_t*>(row_ptr + out.n_rows + 1);
    row_ptr[0] = 0;
    common::ParallelFor(out.n_rows, ctx->Threads(), [&](auto i) {
      row_ptr[i + 1] = offset[i + 1] - offset[0];
      auto* at = entries + (offset[i] - offset[0]);
      for (auto const& entry : view[i]) {
        *at++ = places[entry.index] + BinOf(cuts, types, entry);
      }
    });
    return out;
  }

  std::uint32_t largest{0};
  for (bst_feature_t f = 0; f < out.n_features; ++f) {
    largest = std::max(largest, is_full ? places.NumBins(f) - 1 : places.MissingCode(f));
  }
  out.code_bytes = largest < (1U << 8) ? 1 : largest < (1U << 16) ? 2 : 4;
  allocate(n_cells * out.code_bytes);
  WithDenseCodes(out, [&](auto const& codes) {
    using CodeT = std::remove_const_t<std::remove_pointer_t<decltype(codes.codes)>>;
    auto* begin = const_cast<CodeT*>(codes.codes);
    common::ParallelFor(out.n_rows, ctx->Threads(), [&](auto i) {
      auto* row = begin + i * out.n_features;
      if (view[i].size() != out.n_features) {
        for (bst_feature_t f = 0; f < out.n_features; ++f) {
          row[f] = static_cast<CodeT>(places.MissingCode(f));
        }
      }
      for (auto const& entry : view[i]) {
        row[entry.index] = static_cast<CodeT>(BinOf(cuts, types, entry));
      }
    });
  });
  return out;
}
}  // namespace

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

void CheckRoom(Context const* ctx, DMatrix* p_fmat) {
  auto cache = CacheOf(p_fmat);
  if (cache.empty()) {
    return;
  }
  std::uint64_t n_bytes = 0;
  ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
    std::uint64_t n_cells = page.Size() * p_fmat->Info().num_col_, n_entries = page.data.Size();
    n_bytes += 2 * n_entries < n_cells ? n_entries * sizeof(std::uint32_t) : n_cells;
  });
  PageFile{cache}.Reserve(n_bytes);
}

BinnedPages BinRows(Context const* ctx, common::HistogramCuts const& cuts, DMatrix* p_fmat) {
  auto types = p_fmat->Info().feature_types.ConstHostSpan();
  BinnedPages out{cuts, CacheOf(p_fmat)};
  ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
    out.Add(BinPageOf(ctx, cuts, types, out.Places(), page));
  });
  return out;
}
}  // namespace xgboost::dp
