/**
 * The candidates of a selection: every combination of feature, cut and default direction.
 *
 * They depend on public or released cuts only. Both directions are always present: offering one
 * only if values are missing would reveal that. No candidate is filtered by exact sums, and splits
 * with empty children stay.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <algorithm>  // for transform
#include <cstddef>    // for size_t
#include <cstdint>    // for uint32_t
#include <vector>     // for vector

#include "common/hist_util.h"                 // for HistogramCuts
#include "plugin_cpp/grow/features.h"         // for FeatureList
#include "plugin_cpp/grow/node_histograms.h"  // for SparseBins
#include "plugin_cpp/grow/partition.h"        // for Split, Partition, FeatureSums
#include "plugin_cpp/plan/plan.h"             // for Plan
#include "plugin_cpp/rows/gradient.h"         // for PackedPair
#include "xgboost/base.h"                     // for bst_feature_t, bst_node_t
#include "xgboost/span.h"                     // for Span

namespace xgboost::dp {
struct OpenNode {
  bst_node_t nidx{0};
  FeatureList features;
};

/** @brief Exact sums of a node: its total, and its bins in one of three forms. */
template <typename Sum>
struct NodeSums {
  Sum total;
  common::Span<Sum const> bins;            // all bins,
  SparseBins<Sum> const* stored{nullptr};  // nonzero bins,
  PackedPair const* words{nullptr};        // or all bins as words
};

class SplitCandidates {
 public:
  SplitCandidates(Plan const& plan, common::HistogramCuts const& cuts) : ptrs_{cuts.Ptrs()} {
    for (auto const& feature : plan.features) {
      is_categorical_.push_back(feature.kind == FeaturePlan::Kind::kCategorical);
    }
  }

  [[nodiscard]] std::size_t Size(bst_feature_t f) const {
    // The last cut of a numeric feature isolates missing values: one direction is enough.
    return 2 * this->NumBins(f) - (is_categorical_[f] ? 0 : 1);
  }
  [[nodiscard]] std::size_t NumBins(bst_feature_t f) const { return ptrs_[f + 1] - ptrs_[f]; }
  [[nodiscard]] bool IsCategorical(bst_feature_t f) const { return is_categorical_[f]; }
  [[nodiscard]] Split At(bst_feature_t f, std::size_t idx) const {
    return {f, static_cast<bst_bin_t>(idx / 2), idx % 2 == 1, is_categorical_[f]};
  }

  /** @brief The bins of a feature, of sums as words. */
  template <typename Sum>
  [[nodiscard]] PackedPair const* Words(bst_feature_t f, NodeSums<Sum> const& node) const {
    return node.words + ptrs_[f];
  }
  /** @brief Call fn(sum) for the bins of a feature; zero sums may be left out. */
  template <typename Sum, typename Fn>
  void ForEachSum(bst_feature_t f, NodeSums<Sum> const& node, Fn&& fn) const {
    auto const* sums = node.stored ? node.stored->sums.data() : node.bins.data();
    auto const* begins = node.stored ? node.stored->begins.data() : ptrs_.data();
    for (auto i = begins[f]; i < begins[f + 1]; ++i) {
      fn(node.words ? UnpackTo<Sum>(node.words[i]) : sums[i]);
    }
  }
  /**
   * @brief Sums of the bins of a feature.
   *
   * @param memory Memory for sums that are not contiguous.
   */
  template <typename Sum>
  [[nodiscard]] common::Span<Sum const> Bins(bst_feature_t f, NodeSums<Sum> const& node,
                                             std::vector<Sum>* memory) const {
    if (!node.stored && !node.words) {
      return node.bins.subspan(ptrs_[f], this->NumBins(f));
    }
    if (node.words) {
      memory->resize(this->NumBins(f));
      std::transform(node.words + ptrs_[f], node.words + ptrs_[f + 1], memory->begin(),
                     UnpackTo<Sum>);
      return {memory->data(), memory->size()};
    }
    memory->assign(this->NumBins(f), Sum{});
    // An entry for missing values follows the bins of each feature.
    auto first = ptrs_[f] + f;
    auto const& [begins, offsets, sums] = *node.stored;
    for (auto i = begins[f]; i < begins[f + 1]; ++i) {
      (*memory)[offsets[i] - first] = sums[i];
    }
    return {memory->data(), memory->size()};
  }
  template <typename Sum>
  [[nodiscard]] Sum Missing(bst_feature_t f, NodeSums<Sum> const& node) const {
    Sum stored;
    this->ForEachSum(f, node, [&](Sum const& sum) { stored += sum; });
    return node.total - stored;
  }
  template <typename Sum>
  [[nodiscard]] std::vector<Sum> Cells(Partition partition, NodeSums<Sum> const& node) const {
    std::vector<Sum> memory;
    FeatureSums<Sum> sums;
    sums.Reset(this->Bins(partition[0].feature, node, &memory), node.total);
    return sums.Cells(partition);
  }

  /**
   * @brief Call fn(index, left, right) for every candidate of a feature, in order.
   *
   * @param bins Exact or noisy sums of the bins; bins and missing values sum to the total.
   */
  template <typename Sum, typename Fn>
  void ForEach(bst_feature_t f, Sum const* bins, Sum const& missing, Sum const& total,
               Fn&& fn) const {
    auto n_bins = this->NumBins(f);
    std::size_t idx = 0;
    if (is_categorical_[f]) {
      for (std::size_t c = 0; c < n_bins; ++c) {
        fn(idx++, total - bins[c] - missing, bins[c] + missing);
        fn(idx++, total - bins[c], bins[c]);
      }
      return;
    }
    Sum left;
    for (std::size_t i = 0; i < n_bins; ++i) {
      left += bins[i];
      fn(idx++, left, total - left);
      if (i + 1 < n_bins) {
        fn(idx++, left + missing, total - left - missing);
      }
    }
  }

 private:
  std::vector<std::uint32_t> ptrs_;
  std::vector<bool> is_categorical_;
};
}  // namespace xgboost::dp
