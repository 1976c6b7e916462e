/**
 * Cuts of all features, released or public, and the binned rows of a worker. Training reads the
 * features in no other form. Pages are in memory, or are mapped from a file one at a time.
 *
 * The code of a cell is the bin within its feature, or the number of bins for a missing value. A
 * page is dense if most cells are stored, with one code per cell in as few bytes as possible;
 * otherwise it is sparse, with one number per stored entry. The layout does not change any sum.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <algorithm>  // for lower_bound
#include <cstddef>    // for size_t
#include <cstdint>    // for uint8_t, uint16_t, uint32_t, uint64_t
#include <memory>     // for shared_ptr, unique_ptr
#include <string>     // for string
#include <vector>     // for vector

#include "common/hist_util.h"           // for HistogramCuts
#include "plugin_cpp/grow/page_file.h"  // for PageFile
#include "plugin_cpp/plan/plan.h"       // for Plan
#include "plugin_cpp/simd.h"            // for kCacheLineBytes, Prefetch
#include "xgboost/base.h"               // for bst_idx_t, bst_feature_t
#include "xgboost/context.h"            // for Context
#include "xgboost/data.h"               // for DMatrix

namespace xgboost::dp {
/**
 * @brief Offsets in a table that has an entry for each bin, and one per feature for missing values.
 */
class BinOffsets {
 public:
  explicit BinOffsets(common::HistogramCuts const& cuts) {
    auto const& ptrs = cuts.Ptrs();
    for (std::size_t f = 0; f < ptrs.size(); ++f) {
      begins_.push_back(ptrs[f] + static_cast<std::uint32_t>(f));
    }
  }
  /** @brief Offset of the first bin of a feature; past the last feature, the table size. */
  [[nodiscard]] std::uint32_t operator[](std::size_t f) const { return begins_[f]; }
  [[nodiscard]] bst_feature_t NumFeatures() const { return begins_.size() - 1; }
  [[nodiscard]] std::uint32_t NumBins(std::size_t f) const {
    return begins_[f + 1] - begins_[f] - 1;
  }
  [[nodiscard]] std::uint32_t MissingCode(std::size_t f) const { return this->NumBins(f); }
  [[nodiscard]] std::size_t Size() const { return begins_.back(); }

 private:
  std::vector<std::uint32_t> begins_;
};

struct BinPage {
  bst_idx_t base_row{0};
  std::size_t n_rows{0};
  bst_feature_t n_features{0};
  std::size_t code_bytes{0};  // of a dense page; 0 for a sparse one
  std::size_t n_bytes{0};
  std::shared_ptr<std::uint8_t const> bytes;

  [[nodiscard]] bool IsDense() const { return code_bytes != 0; }
  template <typename CodeT>
  [[nodiscard]] CodeT const* Codes() const {
    return reinterpret_cast<CodeT const*>(bytes.get());
  }
  /** @brief Start of the entries of each row of a sparse page, and the end of the last row. */
  [[nodiscard]] std::uint64_t const* RowPtr() const {
    return reinterpret_cast<std::uint64_t const*>(bytes.get());
  }
  /** @brief Entries of a sparse page: their offsets, ascending within a row. */
  [[nodiscard]] std::uint32_t const* Entries() const {
    return reinterpret_cast<std::uint32_t const*>(this->RowPtr() + n_rows + 1);
  }
};

template <typename CodeT>
struct DenseCodes {
  CodeT const* codes;
  std::size_t n_features;

  std::uint32_t operator()(std::size_t row, bst_feature_t f) const {
    return codes[row * n_features + f];
  }
  void Prefetch(std::size_t row, bst_feature_t f) const {
    dp::Prefetch(codes + row * n_features + f);
  }
  void Prefetch(std::size_t row, std::size_t begin, std::size_t end) const {
    auto const* cell = codes + row * n_features;
    for (auto f = begin; f + 1 < end; f += kCacheLineBytes / sizeof(CodeT)) {
      dp::Prefetch(cell + f);
    }
    dp::Prefetch(cell + end - 1);
  }
};

struct SparseCodes {
  std::uint64_t const* row_ptr;
  std::uint32_t const* entries;
  BinOffsets const& offsets;

  std::uint32_t operator()(std::size_t row, bst_feature_t f) const {
    auto const* end = entries + row_ptr[row + 1];
    auto const* it = std::lower_bound(entries + row_ptr[row], end, offsets[f]);
    return it == end || *it >= offsets[f + 1] ? offsets.MissingCode(f) : *it - offsets[f];
  }
  void Prefetch(std::size_t row, bst_feature_t) const { dp::Prefetch(row_ptr + row); }
};

template <typename Fn>
void WithDenseCodes(BinPage const& page, Fn&& fn) {
  switch (page.code_bytes) {
    case 1:
      return fn(DenseCodes<std::uint8_t>{page.Codes<std::uint8_t>(), page.n_features});
    case 2:
      return fn(DenseCodes<std::uint16_t>{page.Codes<std::uint16_t>(), page.n_features});
    default:
      return fn(DenseCodes<std::uint32_t>{page.Codes<std::uint32_t>(), page.n_features});
  }
}

template <typename Fn>
void WithCodes(BinPage const& page, BinOffsets const& offsets, Fn&& fn) {
  if (page.IsDense()) {
    WithDenseCodes(page, fn);
  } else {
    fn(SparseCodes{page.RowPtr(), page.Entries(), offsets});
  }
}

class BinnedPages {
 public:
  /** @param cache Path prefix of the file; empty for pages in memory. */
  BinnedPages(common::HistogramCuts const& cuts, std::string const& cache);

  void Add(BinPage page);
  [[nodiscard]] std::size_t Size() const { return pages_.size(); }
  /** @brief One page. Read the pages in order, and do not keep more than one at a time. */
  [[nodiscard]] BinPage operator[](std::size_t i) const;
  [[nodiscard]] BinPage const& Head(std::size_t i) const { return pages_[i]; }
  [[nodiscard]] std::size_t NumRows() const;
  [[nodiscard]] BinOffsets const& Offsets() const { return offsets_; }

 private:
  BinOffsets offsets_;
  std::vector<BinPage> pages_;         // without their bytes if there is a file
  std::vector<std::uint64_t> begins_;  // in the file
  std::unique_ptr<PageFile> file_;
};

/**
 * @brief The cuts of all features.
 *
 * @param private_cuts Released cuts of the features of kind `kPrivate`, in order.
 */
[[nodiscard]] common::HistogramCuts MakeCuts(Plan const& plan,
                                             std::vector<std::vector<float>> const& private_cuts);

/**
 * @brief Bin every page, with exactly one bin per stored entry.
 *
 * For a matrix on disk, the bins are written to a file next to its own.
 */
[[nodiscard]] BinnedPages BinRows(Context const* ctx, common::HistogramCuts const& cuts,
                                  DMatrix* p_fmat);
}  // namespace xgboost::dp
