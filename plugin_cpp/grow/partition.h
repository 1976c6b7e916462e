/**
 * Partitions of the rows of a node by the bins of one feature and its missing values.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <algorithm>  // for fill, max, min
#include <cstddef>    // for size_t
#include <cstdint>    // for uint32_t, uint64_t
#include <vector>     // for vector

#include "plugin_cpp/random/public_words.h"  // for Scatter, kGoldenStep
#include "plugin_cpp/release/sums.h"         // for LocalSum, GlobalSum
#include "xgboost/base.h"                    // for bst_feature_t, bst_bin_t
#include "xgboost/span.h"                    // for Span

namespace xgboost::dp {
struct Split {
  bst_feature_t feature{0};
  bst_bin_t bin{0};  // numeric: last bin of the left child; categorical: the right child's category
  bool default_left{false};
  bool is_categorical{false};
  std::uint64_t subset{0};  // categorical: a nonzero name of a random half that goes right too

  [[nodiscard]] bool GoesLeft(bst_bin_t b) const {
    return is_categorical ? b != bin && (subset == 0 || !InSubset(subset, b)) : b <= bin;
  }
  /** @brief Whether a row goes left, given a code that is either a bin or `missing`. */
  [[nodiscard]] bool GoesLeft(std::uint32_t code, std::uint32_t missing) const {
    return code == missing ? default_left : this->GoesLeft(static_cast<bst_bin_t>(code));
  }
  /** @brief Whether a category is in the named half; the probability is 1/2. */
  [[nodiscard]] static bool InSubset(std::uint64_t name, bst_bin_t category) {
    return (Scatter(name + kGoldenStep * (static_cast<std::uint64_t>(category) + 1)) & 1) != 0;
  }
};

/** @brief Splits of several levels below one node, in heap order; all on one feature. */
using Partition = common::Span<Split const>;

/** @brief A partition for each node of a level; empty for a node without a split. */
class Partitions {
 public:
  void Add(Split const* begin, std::size_t n_splits) {
    splits_.insert(splits_.end(), begin, begin + n_splits);
    ends_.push_back(splits_.size());
  }
  [[nodiscard]] Partition operator[](std::size_t i) const {
    auto begin = i == 0 ? 0 : ends_[i - 1];
    return {splits_.data() + begin, ends_[i] - begin};
  }

 private:
  std::vector<Split> splits_;
  std::vector<std::size_t> ends_;
};

/**
 * @brief The leaf that each category reaches in a partition, by the rule of `Split::GoesLeft`.
 *        Avoids branches, which would be unpredictable.
 */
class CategoryLeaves {
 public:
  void Find(Partition partition, std::size_t n_categories);
  [[nodiscard]] std::size_t operator[](std::size_t category) const { return at_[category]; }

 private:
  std::vector<std::uint64_t> at_, names_;
};

/** @brief The sums of one feature in a node, prepared for many partitions. */
template <typename Sum>
class FeatureSums {
 public:
  /**
   * @brief Set the sums of a feature. Memory is reused.
   *
   * @param bins  Sums of the bins of the feature.
   * @param total Sum of the node. Its difference from the bins is the sum of missing values.
   */
  void Reset(common::Span<Sum const> bins, Sum const& total) {
    bins_ = bins;
    cumulative_.resize(bins.size() + 1);
    Sum left;
    auto* out = cumulative_.data();
    *out++ = left;
    for (auto const *bin = bins.data(), *end = bin + bins.size(); bin != end; ++bin) {
      left += *bin;
      *out++ = left;
    }
    missing_ = total - left;
  }
  /** @brief Sums of the 2^m cells of a partition, from left to right. */
  void Cells(Partition partition, std::vector<Sum>* out) {
    // The leaves of a heap of n splits are n, ..., 2 n, from left to right.
    auto n_splits = partition.size();
    auto const* splits = partition.data();
    auto find_leaf = [&](auto goes_left) {
      std::size_t at = 0;
      while (at < n_splits) {
        at = 2 * at + (goes_left(splits[at]) ? 1 : 2);
      }
      return at - n_splits;
    };
    out->resize(n_splits + 1);
    auto* cells = out->data();
    auto n_bins = static_cast<bst_bin_t>(bins_.size());
    if (splits[0].is_categorical) {
      auto const* bins = bins_.data();
      std::fill(out->begin(), out->end(), Sum{});
      leaves_.Find(partition, bins_.size());
      for (std::size_t b = 0; b < bins_.size(); ++b) {
        cells[leaves_[b] - n_splits] += bins[b];
      }
    } else {
      for (std::size_t leaf = 0; leaf <= n_splits; ++leaf) {
        bst_bin_t begin = 0, end = n_bins;
        for (auto at = leaf + n_splits; at > 0; at = (at - 1) / 2) {
          auto cut = splits[(at - 1) / 2].bin + 1;
          bool is_left = at % 2 == 1;
          begin = is_left ? begin : std::max(begin, cut);
          end = is_left ? std::min(end, cut) : end;
        }
        cells[leaf] = begin < end ? cumulative_[end] - cumulative_[begin] : Sum{};
      }
    }
    cells[find_leaf([](Split const& s) { return s.default_left; })] += missing_;
  }
  [[nodiscard]] std::vector<Sum> Cells(Partition partition) {
    std::vector<Sum> cells;
    this->Cells(partition, &cells);
    return cells;
  }

 private:
  common::Span<Sum const> bins_;
  std::vector<Sum> cumulative_;  // cumulative sums of bins
  CategoryLeaves leaves_;
  Sum missing_;
};
}  // namespace xgboost::dp
