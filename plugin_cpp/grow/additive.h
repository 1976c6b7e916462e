/**
 * An additive round: a tree of every feature alone, all on the same gradients, and their leaves in
 * one release.
 *
 * Partitions of the features are drawn without looking at the data. A numeric feature
 * lacks the leaf in which 0 lies, and where missing values go: its sums are not released, and a row
 * that is in it does not have this column. A row that has k columns enters the leaf of each
 * with its integers over the root of k + 1, rounded towards zero, and the sum of all rows: so the
 * whole release has the sensitivity of one tree.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, uint32_t
#include <vector>   // for vector

#include "common/hist_util.h"                 // for HistogramCuts
#include "plugin_cpp/grow/binned_pages.h"     // for BinnedPages
#include "plugin_cpp/grow/offers.h"           // for Offers
#include "plugin_cpp/grow/partition.h"        // for Partition, Split
#include "plugin_cpp/grow/partition_draws.h"  // for PartitionDraws
#include "plugin_cpp/plan/plan.h"             // for Plan
#include "plugin_cpp/release/source.h"        // for RandomSource
#include "plugin_cpp/rows/gradient.h"         // for LocalSum, PackedPair
#include "xgboost/base.h"                     // for bst_node_t
#include "xgboost/context.h"                  // for Context
#include "xgboost/span.h"                     // for Span

namespace xgboost::dp {
/** @brief The leaves of a tree of one feature. */
struct ColumnLeaves {
  std::vector<bst_node_t> ids;  // from left to right
  std::size_t absent;           // the one whose sums are not released; if there is none, too large
};

class Columns {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  Columns(Context const* ctx, Plan const& plan, common::HistogramCuts const& cuts,
          Offers const& offers, BinnedPages const& pages, RandomSource* structure);

  /** @brief Draw the partitions of a round. */
  void Draw();
  [[nodiscard]] Partition operator[](bst_feature_t f) const {
    return {splits_[f].data(), splits_[f].size()};
  }
  [[nodiscard]] std::int32_t Depth(bst_feature_t f) const { return depth_[f]; }
  /** @brief Index of the absent leaf, from left to right; kNone for categories. */
  [[nodiscard]] std::size_t Absent(bst_feature_t f) const { return absent_[f]; }
  /**
   * @brief Sums of this worker's rows in the leaves that are present, feature by feature and from
   * left to right; the sum over all rows is the last.
   */
  [[nodiscard]] std::vector<LocalSum> Sum(std::vector<PackedPair> const& gpair) const;
  /**
   * @brief Keep the values of the leaves of a finished tree of this round.
   *
   * @param values Of all leaves, from left to right.
   */
  void Keep(std::size_t class_idx, bst_feature_t f, std::vector<float> const& values);
  /**
   * @brief Add the trees that were kept to predictions, those of all classes row by row.
   *
   * One pass over the stored cells. Values are added in the order of the trees, as XGBoost adds
   * them, so that the floats are the same.
   */
  void Add(common::Span<float> predictions) const;

 private:
  /**
   * @brief Add the trees of a class to the predictions of some rows of a sparse page.
   *
   * @param value  Of the leaves, by place.
   * @param stride From the prediction of a row in `out` to that of the next.
   */
  void AddStored(BinPage const& page, float const* value, std::size_t begin, std::size_t end,
                 float* out, std::size_t stride) const;
  /** @brief Move the nearest cut of a partition to where 0 ends. */
  void PartZero(bst_feature_t f);
  /** @brief The leaf of a code. */
  [[nodiscard]] std::size_t LeafOf(bst_feature_t f, std::uint32_t code) const;

  Context const* ctx_;
  Offers const& offers_;
  BinnedPages const& pages_;
  PartitionDraws draws_;
  RandomSource* structure_;
  std::vector<std::int32_t> depth_;
  std::vector<bst_bin_t> zero_;             // the bin in which 0 is
  std::vector<bst_feature_t> categorical_;  // of which missing values are a cell of their own
  std::vector<std::vector<Split>> splits_;
  std::vector<std::size_t> absent_;
  std::vector<std::uint32_t> cell_of_;  // by place: where in the sums
  std::size_t n_cells_{0};
  std::vector<bst_feature_t> feature_of_;   // by place
  std::vector<std::vector<float>> values_;  // of the leaves, by class and place
};
}  // namespace xgboost::dp
