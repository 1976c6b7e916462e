/**
 * The private choice of several levels at once: one exponential mechanism picks a feature and a
 * partition of its values into 2^m cells, which m levels of the tree then carry out.
 *
 * The partitions are drawn at random without looking at the data, a few for each feature. The
 * utility is the sum of the score over all cells. A row is in one cell, so the range is that of a
 * single split, and m levels cost one selection.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t
#include <vector>   // for vector

#include "plugin_cpp/split/exact_levels.h"  // for ExactLevels
#include "plugin_cpp/split/score.h"         // for ClassNorm
#include "plugin_cpp/split/splitter.h"      // for TreeSpec, OpenNode, Offers

namespace xgboost::dp {
/** @brief Draws partitions without looking at the data. */
class PartitionDraws {
 public:
  /** @param structure Source of the partitions, the same on all workers. */
  PartitionDraws(Offers const& offers, RandomSource* structure)
      : offers_{offers}, structure_{structure} {}

  /** @brief Append a partition of a feature: so many splits, in heap order. */
  void Draw(bst_feature_t f, std::size_t n_splits, std::vector<Split>* out);
  /**
   * @brief Whether the bins of a numeric feature, and its missing values, are so few that each has
   * a cell of its own: that partition is at least as good as any, and is not drawn.
   */
  [[nodiscard]] bool IsOnlyOne(bst_feature_t f, std::size_t n_splits) const {
    return !offers_.IsCategorical(f) && offers_.NumBins(f) <= n_splits;
  }

 private:
  /** @brief Compute the ranks of the cuts of a partition. */
  void Rank(std::size_t n_splits);
  /** @brief Append the partition with a cell for each bin and for missing values. */
  void PartAll(bst_feature_t f, std::size_t n_splits, std::vector<Split>* out);
  void DrawNumeric(bst_feature_t f, std::size_t n_splits, std::vector<Split>* out);
  void DrawCategorical(bst_feature_t f, std::size_t n_splits, std::vector<Split>* out);

  Offers const& offers_;
  RandomSource* structure_;
  std::vector<std::size_t> rank_;  // of the cuts of a partition, in heap order
  // Of DrawNumeric; the pool counts from 0 up.
  std::vector<bst_bin_t> pool_, cuts_;
  std::vector<std::size_t> taken_;
};

class PartitionSelector {
 public:
  /** @param structure Source of the partitions, the same on all workers. */
  PartitionSelector(Context const* ctx, Plan const& plan, Offers const& offers,
                    RandomSource* structure)
      : ctx_{ctx}, plan_{plan}, offers_{offers}, draws_{offers, structure} {}

  /** @brief Choose the splits of `n_levels` levels below every node. */
  [[nodiscard]] Partitions Select(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t n_levels, ExactLevels<GlobalSum> const& levels,
                                  Release* release);

 private:
  /** @brief What one thread works with, kept from one feature to the next. */
  struct Workspace {
    FeatureSums<GlobalSum> sums;
    std::vector<GlobalSum> cells;
    std::vector<ClassNorm> norms;  // of the cells of all partitions of a feature
    std::vector<std::int64_t> utilities;
  };

  /** @brief Draw a fixed number of partitions for each feature, or its only one. */
  void Draw(FeatureList const& features, std::size_t n_splits);

  Context const* ctx_;
  Plan const& plan_;
  Offers const& offers_;
  PartitionDraws draws_;
  std::vector<Split> drawn_;           // of all choices
  std::vector<std::size_t> begins_;    // of the partitions of each feature of each choice
  std::vector<Workspace> workspaces_;  // of each thread
};
}  // namespace xgboost::dp
