/**
 * The list of split candidates: every (feature, cut, missing direction). It depends on the public or
 * released cuts only. Both directions are always candidates: to offer one only where values are
 * missing would tell whether any is. No candidate is filtered on exact sums, empty children stay.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t, uint64_t
#include <utility>  // for move
#include <vector>   // for vector

#include "common/hist_util.h"     // for HistogramCuts
#include "plugin_cpp/rows/gradient.h"  // for GradientSum
#include "plugin_cpp/rows/node_histograms.h"  // for HistogramRow
#include "plugin_cpp/plan/plan.h"      // for Plan
#include "xgboost/base.h"         // for bst_feature_t, bst_bin_t
#include "xgboost/span.h"         // for Span

namespace xgboost::dp {
struct Split {
  bst_feature_t feature{0};
  bst_bin_t bin{0};  // numeric: last bin of the left child; categorical: the right child's category
  bool default_left{false};
  bool is_categorical{false};
  std::uint64_t subset{0};  // categorical: not 0 names a random half that goes right as well

  /** @brief Whether the rows of a bin go left. */
  [[nodiscard]] bool GoesLeft(bst_bin_t b) const {
    return is_categorical ? b != bin && (subset == 0 || !InSubset(subset, b)) : b <= bin;
  }
  /** @brief The same of a code: the bin, or that of missing values. */
  [[nodiscard]] bool GoesLeft(std::uint32_t code, std::uint32_t missing) const {
    return code == missing ? default_left : this->GoesLeft(static_cast<bst_bin_t>(code));
  }
  /** @brief Whether a category is in the half of a name, each with probability 1/2. */
  [[nodiscard]] static bool InSubset(std::uint64_t name, bst_bin_t category) {
    // The finaliser of SplitMix64. It needs no secrecy: which half it is, is public.
    auto z = name + 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(category) + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return ((z ^ (z >> 31)) & 1) != 0;
  }
};

/** @brief Splits of several levels below one node, in heap order; all on one feature. */
using SplitGroup = common::Span<Split const>;

/** @brief Groups of splits, one for each node of a level; empty where there is no split. */
class SplitGroups {
 public:
  /** @brief Append a group. */
  void Add(Split const* begin, std::size_t n_splits) {
    splits_.insert(splits_.end(), begin, begin + n_splits);
    ends_.push_back(splits_.size());
  }
  [[nodiscard]] SplitGroup operator[](std::size_t i) const {
    auto begin = i == 0 ? 0 : ends_[i - 1];
    return {splits_.data() + begin, ends_[i] - begin};
  }

 private:
  std::vector<Split> splits_;
  std::vector<std::size_t> ends_;
};

/** @brief A sum over cells of a histogram, and how many there are: each brings noise of its own. */
struct CellSum {
  GradientSum sum;
  std::int64_t cells{0};

  friend CellSum operator+(CellSum const& a, CellSum const& b) {
    return {a.sum + b.sum, a.cells + b.cells};
  }
  friend CellSum operator-(CellSum const& a, CellSum const& b) {
    return {a.sum - b.sum, a.cells - b.cells};
  }
};

/** @brief The sums of one feature in a node, ready to be parted by many groups of splits. */
class FeatureSums {
 public:
  /** @param bins Sums of the bins of the feature. */
  FeatureSums(std::vector<GradientSum> bins, GradientSum const& missing);
  /** @brief Sums of the 2^m cells of a group, from left to right. They part the rows. */
  [[nodiscard]] std::vector<GradientSum> Cells(SplitGroup group) const;

 private:
  std::vector<GradientSum> bins_, left_of_;  // and the sums up to each bin
  GradientSum missing_;
};

class SplitCandidates {
 public:
  SplitCandidates(Plan const& plan, common::HistogramCuts const& cuts);

  /** @brief Number of candidates of a feature. */
  [[nodiscard]] std::size_t Size(bst_feature_t f) const {
    auto n_bins = ptrs_[f + 1] - ptrs_[f];
    // A numeric feature's last cut parts missing values from all others: one direction is enough.
    return is_categorical_[f] ? 2 * n_bins : 2 * n_bins - 1;
  }
  [[nodiscard]] std::size_t NumBins(bst_feature_t f) const { return ptrs_[f + 1] - ptrs_[f]; }
  [[nodiscard]] bool IsCategorical(bst_feature_t f) const { return is_categorical_[f]; }
  /** @brief Sums of a feature in a node with this histogram and these totals. */
  [[nodiscard]] FeatureSums SumsOf(bst_feature_t f, HistogramRow hist,
                                        GradientSum const& total) const {
    auto cells = this->Cells(f, hist, total);
    auto missing = cells.back();
    cells.pop_back();
    return {std::move(cells), missing};
  }
  /** @brief The candidate of a feature at an index of its list. */
  [[nodiscard]] Split At(bst_feature_t f, std::size_t idx) const;

  /** @brief Call fn(index, left) for every candidate of a feature, in the order of its list. */
  template <typename Fn>
  void ForEach(bst_feature_t f, HistogramRow hist, GradientSum const& total,
               Fn&& fn) const {
    auto begin = ptrs_[f];
    auto n_bins = ptrs_[f + 1] - begin;
    auto const* bins = hist.data() + begin;
    auto missing = total - this->FeatureSum(f, hist);
    std::size_t idx = 0;
    if (is_categorical_[f]) {
      for (std::uint32_t c = 0; c < n_bins; ++c) {
        auto right = bins[c];
        fn(idx++, total - right - missing);
        fn(idx++, total - right);
      }
      return;
    }
    GradientSum left;
    for (std::uint32_t i = 0; i < n_bins; ++i) {
      left += bins[i];
      fn(idx++, left);
      if (i + 1 < n_bins) {
        fn(idx++, left + missing);
      }
    }
  }

  /** @brief The cells of a feature: its bins, then its missing values. They part the rows. */
  [[nodiscard]] std::vector<GradientSum> Cells(bst_feature_t f, HistogramRow hist,
                                               GradientSum const& total) const {
    std::vector<GradientSum> cells;
    for (auto i = ptrs_[f]; i < ptrs_[f + 1]; ++i) {
      cells.push_back(hist[i]);
    }
    cells.push_back(total - this->FeatureSum(f, hist));
    return cells;
  }

  /** @brief Call fn(index, left, right) for every candidate of a feature, from its cells alone. */
  template <typename Fn>
  void ForEachOfCells(bst_feature_t f, std::vector<GradientSum> const& cells, Fn&& fn) const {
    CellSum total, left, missing{cells.back(), 1};
    for (auto const& cell : cells) {
      total = total + CellSum{cell, 1};
    }
    std::size_t idx = 0;
    for (std::size_t i = 0; i + 1 < cells.size(); ++i) {
      if (is_categorical_[f]) {
        CellSum right{cells[i], 1};
        fn(idx++, total - right - missing, right + missing);
        fn(idx++, total - right, right);
        continue;
      }
      left = left + CellSum{cells[i], 1};
      fn(idx++, left, total - left);
      if (i + 2 < cells.size()) {
        fn(idx++, left + missing, total - left - missing);
      }
    }
  }

 private:
  [[nodiscard]] GradientSum FeatureSum(bst_feature_t f, HistogramRow hist) const {
    GradientSum sum;
    for (auto i = ptrs_[f]; i < ptrs_[f + 1]; ++i) {
      sum += hist[i];
    }
    return sum;
  }

  std::vector<std::uint32_t> ptrs_;
  std::vector<bool> is_categorical_;
};
}  // namespace xgboost::dp
