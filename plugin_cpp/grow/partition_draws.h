/**
 * Partitions of the values of a feature, drawn at random without looking at the data.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for uint64_t
#include <vector>   // for vector

#include "plugin_cpp/grow/offers.h"     // for Offers, Split, Partition
#include "plugin_cpp/release/source.h"  // for RandomSource

namespace xgboost::dp {
/** @brief Draws partitions without looking at the data. */
class PartitionDraws {
 public:
  explicit PartitionDraws(Offers const& offers) : offers_{offers} {}

  /**
   * @brief Append a partition of a feature: so many splits, in heap order.
   *
   * @param structure Source of the partition, the same on all workers.
   */
  void Draw(bst_feature_t f, std::size_t n_splits, RandomSource* structure,
            std::vector<Split>* out);
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
  void DrawNumeric(bst_feature_t f, std::size_t n_splits, RandomSource* structure,
                   std::vector<Split>* out);
  void DrawCategorical(bst_feature_t f, std::size_t n_splits, RandomSource* structure,
                       std::vector<Split>* out);

  Offers const& offers_;
  std::vector<std::size_t> rank_;  // of the cuts of a partition, in heap order
  // Of DrawNumeric; the pool counts from 0 up.
  std::vector<bst_bin_t> pool_, cuts_;
  std::vector<std::size_t> taken_;
};

/**
 * @brief The partitions of one selection, a fixed number of each feature of each choice. They
 * follow from a public name that was drawn before, so that only those are made that are looked at.
 */
class NamedPartitions {
 public:
  NamedPartitions(Offers const& offers, std::uint64_t name, std::size_t n_splits)
      : draws_{offers}, name_{name}, n_splits_{n_splits} {}

  /** @brief The i-th partition of a feature; of one that has only one partition, that. */
  [[nodiscard]] Partition Make(std::size_t choice, bst_feature_t f, std::size_t i);
  [[nodiscard]] bool IsOnlyOne(bst_feature_t f) const { return draws_.IsOnlyOne(f, n_splits_); }

 private:
  PartitionDraws draws_;
  std::uint64_t name_;
  std::size_t n_splits_;
  std::vector<Split> made_;
};
}  // namespace xgboost::dp
