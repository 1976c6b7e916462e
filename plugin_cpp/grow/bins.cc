#include "plugin_cpp/grow/bins.h"

#include <limits>   // for numeric_limits
#include <utility>  // for move

#include "common/categorical.h"          // for IsCat
#include "common/threading_utils.h"      // for ParallelFor
#include "data/sparse_page_dmatrix.h"    // for SparsePageDMatrix
#include "plugin_cpp/grow/disk_space.h"  // for BinnedSize, CheckDiskSpace
#include "plugin_cpp/rows/raw_pages.h"   // for ForEachPage
#include "plugin_cpp/upstream.h"         // for MakeEmptyCuts
#include "xgboost/logging.h"             // for CHECK_LT
#include "xgboost/span.h"                // for Span

namespace xgboost::dp {
BinnedPages::BinnedPages(common::HistogramCuts const& cuts, std::string const& cache)
    : offsets_{cuts} {
  if (!cache.empty()) {
    file_ = std::make_unique<PageFile>(cache);
  }
}

void BinnedPages::Add(BinPage page) {
  if (file_) {
    begins_.push_back(file_->Append(page.bytes.get(), page.n_bytes));
    page.bytes.reset();
  }
  pages_.push_back(std::move(page));
}

BinPage BinnedPages::operator[](std::size_t i) const {
  auto page = pages_[i];
  if (file_) {
    page.bytes = file_->Map(begins_[i], page.n_bytes);
    auto next = (i + 1) % pages_.size();
    file_->ReadAhead(begins_[next], pages_[next].n_bytes);
  }
  return page;
}

std::size_t BinnedPages::NumRows() const {
  std::size_t n_rows = 0;
  for (auto const& page : pages_) {
    n_rows += page.n_rows;
  }
  return n_rows;
}

namespace {
/** @brief Finds the first bin whose cut is above a value, or the last bin of the feature. */
class BinFinder {
 public:
  BinFinder(common::HistogramCuts const& cuts, common::Span<FeatureType const> types)
      : cuts_{cuts}, types_{types}, ptrs_{cuts.Ptrs().data()}, values_{cuts.Values().data()} {}

  std::uint32_t operator()(Entry const& entry) const {
    auto begin = ptrs_[entry.index];
    if (common::IsCat(types_, entry.index)) {
      return cuts_.SearchCatBin(entry) - begin;
    }
    // Without branches, which would be unpredictable.
    std::uint32_t bin = 0;
    for (auto n = ptrs_[entry.index + 1] - begin; n > 1;) {
      auto half = n / 2;
      bin += half * static_cast<std::uint32_t>(values_[begin + bin + half - 1] <= entry.fvalue);
      n -= half;
    }
    return bin;
  }

 private:
  common::HistogramCuts const& cuts_;
  common::Span<FeatureType const> types_;
  std::uint32_t const* ptrs_;
  float const* values_;
};

/** @brief Path prefix for the pages of a matrix; empty for pages in memory. */
std::string CachePath(DMatrix* p_fmat) {
  auto const* paged = dynamic_cast<data::SparsePageDMatrix const*>(p_fmat);
  bool on_disk = paged && paged->NumBatches() > 1;
  return on_disk ? paged->CachePrefix() : std::string{};
}

struct Layout {
  std::size_t code_bytes{0};  // of a dense page; 0 for a sparse one
  std::size_t n_bytes{0};

  /** @param most_bins Largest number of bins of a feature. */
  Layout(SparsePage const& page, bst_feature_t n_features, std::uint32_t most_bins) {
    auto n_rows = page.Size(), n_cells = n_rows * n_features;
    auto const& offset = page.offset.ConstHostVector();
    auto n_entries = n_rows == 0 ? 0 : offset.back() - offset.front();
    if (2 * n_entries < n_cells) {
      n_bytes = (n_rows + 1) * sizeof(std::uint64_t) + n_entries * sizeof(std::uint32_t);
      return;
    }
    // Without missing values there is no code for them.
    auto n_codes = std::uint64_t{most_bins} + (n_entries == n_cells ? 0 : 1);
    code_bytes = n_codes <= (1U << 8) ? 1 : n_codes <= (1U << 16) ? 2 : 4;
    n_bytes = n_cells * code_bytes;
  }
};

void WriteSparse(Context const* ctx, BinFinder const& find_bin, BinOffsets const& offsets,
                 SparsePage const& page, std::uint8_t* bytes) {
  auto view = page.GetView();
  auto const* offset = page.offset.ConstHostVector().data();
  auto* row_ptr = reinterpret_cast<std::uint64_t*>(bytes);
  auto* entries = reinterpret_cast<std::uint32_t*>(row_ptr + view.Size() + 1);
  row_ptr[0] = 0;
  common::ParallelFor(view.Size(), ctx->Threads(), [&](auto i) {
    row_ptr[i + 1] = offset[i + 1] - offset[0];
    auto* at = entries + (offset[i] - offset[0]);
    for (auto const& entry : view[i]) {
      *at++ = offsets[entry.index] + find_bin(entry);
    }
  });
}

template <typename CodeT>
void WriteDense(Context const* ctx, BinFinder const& find_bin, BinOffsets const& offsets,
                SparsePage const& page, DenseCodes<CodeT> const&, std::uint8_t* bytes) {
  auto view = page.GetView();
  auto n_features = offsets.NumFeatures();
  auto* codes = reinterpret_cast<CodeT*>(bytes);
  common::ParallelFor(view.Size(), ctx->Threads(), [&](auto i) {
    auto* row = codes + i * n_features;
    if (view[i].size() != n_features) {
      for (bst_feature_t f = 0; f < n_features; ++f) {
        row[f] = static_cast<CodeT>(offsets.MissingCode(f));
      }
    }
    for (auto const& entry : view[i]) {
      row[entry.index] = static_cast<CodeT>(find_bin(entry));
    }
  });
}

BinPage MakeBinPage(Context const* ctx, BinFinder const& find_bin, BinOffsets const& offsets,
                    SparsePage const& page) {
  std::uint32_t most_bins{0};
  for (bst_feature_t f = 0; f < offsets.NumFeatures(); ++f) {
    most_bins = std::max(most_bins, offsets.NumBins(f));
  }
  Layout layout{page, offsets.NumFeatures(), most_bins};
  BinPage out;
  out.base_row = page.base_rowid;
  out.n_rows = page.Size();
  out.n_features = offsets.NumFeatures();
  out.code_bytes = layout.code_bytes;
  out.n_bytes = layout.n_bytes;
  auto* bytes = new std::uint8_t[layout.n_bytes];
  AskForLargePages(bytes, layout.n_bytes);
  out.bytes = {bytes, std::default_delete<std::uint8_t[]>{}};
  if (out.IsDense()) {
    WithDenseCodes(
        out, [&](auto const& codes) { WriteDense(ctx, find_bin, offsets, page, codes, bytes); });
  } else {
    WriteSparse(ctx, find_bin, offsets, page, bytes);
  }
  return out;
}

}  // namespace

common::HistogramCuts MakeCuts(Plan const& plan,
                               std::vector<std::vector<float>> const& private_cuts) {
  std::size_t n_offsets = 0;  // upper bound, checked before memory is allocated
  for (auto const& feature : plan.features) {
    n_offsets += feature.n_categories + feature.cuts.size() + 2;
  }
  for (auto const& chosen : private_cuts) {
    n_offsets += chosen.size();
  }
  CHECK_LT(n_offsets, std::size_t{1} << 32)
      << "There are too many bins: all columns together must have fewer than 2^32. Set a smaller "
         "`max_bin`, or declare fewer categories.";
  auto cuts = MakeEmptyCuts(plan.features.size());
  auto& values = cuts.cut_values_.HostVector();
  auto& ptrs = cuts.cut_ptrs_.HostVector();
  values.clear();
  ptrs.assign(1, 0);
  auto next = private_cuts.cbegin();
  float max_category = -1;
  for (auto const& feature : plan.features) {
    if (feature.kind == FeaturePlan::Kind::kCategorical) {
      for (std::int32_t c = 0; c < feature.n_categories; ++c) {
        values.push_back(static_cast<float>(c));
      }
      max_category = std::max(max_category, static_cast<float>(feature.n_categories - 1));
    } else {
      bool is_private = feature.kind == FeaturePlan::Kind::kPrivate;
      auto chosen = is_private ? *next++ : feature.cuts;
      values.insert(values.end(), chosen.cbegin(), chosen.cend());
      // Every value is below the last cut, in training and in prediction.
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

std::uint64_t BinnedSize(Plan const& plan, SparsePage const& page) {
  std::uint32_t most_bins{0};
  if (plan.NumPrivateFeatures() > 0) {
    most_bins = plan.candidates.max_bin;
    if (plan.candidates.kind == CandidateKind::kQuantileTree) {
      // Heavy cells get additional cuts.
      most_bins = most_bins * 5 / 2;
    }
  }
  for (auto const& feature : plan.features) {
    most_bins = std::max({most_bins, static_cast<std::uint32_t>(feature.n_categories),
                          static_cast<std::uint32_t>(feature.cuts.size() + 1)});
  }
  return Layout{page, static_cast<bst_feature_t>(plan.features.size()), most_bins}.n_bytes;
}

void CheckDiskSpace(DMatrix* p_fmat, std::uint64_t n_bytes) {
  auto cache = CachePath(p_fmat);
  if (!cache.empty()) {
    PageFile{cache}.Reserve(n_bytes);
  }
}

BinnedPages BinRows(Context const* ctx, common::HistogramCuts const& cuts, DMatrix* p_fmat) {
  BinFinder find_bin{cuts, p_fmat->Info().feature_types.ConstHostSpan()};
  BinnedPages out{cuts, CachePath(p_fmat)};
  ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
    out.Add(MakeBinPage(ctx, find_bin, out.Offsets(), page));
  });
  return out;
}
}  // namespace xgboost::dp
