/**
 * Splits read from noisy sums: every sum of a level is released with Gaussian noise, and all that
 * follows, the best split and the sums of its children, costs nothing more.
 *
 * Histograms (FEVERLESS; DP-GBM): the sums of all bins of all features. Partially random (Maddock
 * et al. 2022, section 4.3.2): one random cut of each feature, and the sums of its two sides. A row
 * is in one node of a level and, with its missing values as a bin of their own, in one bin or on
 * one side of each feature: the squared L2 sensitivity of a level is that of a tree's leaves times
 * the number of features.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t
#include <utility>  // for pair
#include <vector>   // for vector

#include "plugin_cpp/split/exact_levels.h"  // for ExactLevels
#include "plugin_cpp/split/splitter.h"      // for Splitter

namespace xgboost::dp {
class NoisySplits : public Splitter {
 public:
  NoisySplits(Context const* ctx, Plan const& plan, Offers const& offers, BinnedPages const& pages,
              RandomSource* structure, Release* release)
      : plan_{plan},
        offers_{offers},
        structure_{structure},
        release_{release},
        levels_{ctx, plan, offers, pages, *release} {}

  void Begin(common::Span<ClassGradients const> gradients) override {
    CHECK_EQ(gradients.size(), 1);
    levels_.Begin(gradients, {gradients[0].total});
  }
  /** @brief The split with the largest gain on noisy sums, for each node or for all of them. */
  [[nodiscard]] Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t n_levels) override;
  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool last) override;
  [[nodiscard]] std::vector<LeafSums> End(std::vector<bst_node_t> const& leaves,
                                          std::vector<bst_node_t>* positions) override;

 private:
  /** @brief A feature of a node, with its released cells and, where there is only one, its cut. */
  struct Cells {
    bst_feature_t feature{0};
    std::size_t cut{0};
    NoisySum const* sums{nullptr};
  };
  using NodeCells = std::vector<Cells>;

  /** @brief Features of all nodes, in the order in which their sums are released. */
  [[nodiscard]] std::vector<NodeCells> List(std::vector<OpenNode> const& nodes, bool oblivious);
  /** @brief Release the sums of all cells. */
  void ReleaseSums(std::vector<OpenNode> const& nodes, std::size_t class_idx,
                   std::vector<NodeCells>* cells);
  /** @brief Call fn(index, left, right) for what one feature offers. */
  template <typename Fn>
  void ForEachOffer(Cells const& cells, Fn&& fn) const;
  /** @brief The best offer for some nodes together: a feature's position and an offer of it. */
  [[nodiscard]] std::pair<std::size_t, std::size_t> Best(NodeCells const* begin,
                                                         NodeCells const* end) const;
  [[nodiscard]] double Gain(NoisySum const& s) const;

  Plan const& plan_;
  Offers const& offers_;
  RandomSource* structure_;
  Release* release_;
  ExactLevels<LocalSum> levels_;
  Released<NoisySum> released_;                        // of the level
  std::vector<std::pair<NoisySum, NoisySum>> chosen_;  // sums of both children of its nodes
  std::vector<NoisySum> sums_;                         // by node
};
}  // namespace xgboost::dp
