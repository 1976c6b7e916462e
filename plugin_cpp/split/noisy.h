/**
 * Splits read from noisy sums: every sum of a level is released with Gaussian noise, and all that
 * follows, the best split and the sums of its children, costs nothing more.
 *
 * Histograms (FEVERLESS; DP-GBM): the sums of all bins of all features. Partially random (Maddock et
 * al. 2022, section 4.3.2): one random cut of each feature, and the sums of its two sides.
 * A row is in one node of a level and, with its missing values as a bin of their own, in one bin or
 * on one side of each feature: the squared L2 sensitivity of a level is that of a tree's leaves times
 * the number of features.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <vector>   // for vector

#include "plugin_cpp/rows/gradient.h"            // for GradientSum
#include "plugin_cpp/random/samplers.h"      // for RandomSource
#include "plugin_cpp/plan/plan.h"                // for Plan
#include "plugin_cpp/release/masked_sums.h"  // for MaskedSums
#include "plugin_cpp/split/offers.h"    // for SplitCandidates, Split, CellSum
#include "plugin_cpp/split/select.h"        // for OpenNode
#include "xgboost/context.h"                // for Context

namespace xgboost::dp {
/** @brief A split with the released sums of both of its children. */
struct ReleasedSplit {
  Split split;
  CellSum left, right;
};

class HistogramSelector {
 public:
  /**
   * @param rng       Null for the noise-free algorithm.
   * @param structure Source of random cuts.
   * @param masked    Null where sums travel in the clear.
   */
  HistogramSelector(Context const* ctx, Plan const& plan, SplitCandidates const* candidates,
                    RandomSource* rng, RandomSource* structure, MaskedSums* masked)
      : ctx_{ctx},
        plan_{plan},
        candidates_{candidates},
        rng_{rng},
        structure_{structure},
        masked_{masked} {}

  /** @brief The split with the largest gain on noisy sums, for each node or for all of them. */
  [[nodiscard]] std::vector<ReleasedSplit> Select(std::vector<OpenNode> const& nodes,
                                                  bool oblivious) const;

 private:
  /** @brief A candidate of a feature with the released sums of its sides. */
  struct Offer {
    std::size_t idx;
    CellSum left, right;
  };
  /** @brief The one cut of each feature of each node, where there is only one; else nothing. */
  [[nodiscard]] std::vector<std::int64_t> DrawCuts(std::vector<OpenNode> const& nodes,
                                                   bool oblivious) const;
  /** @brief Exact sums of all features of all nodes, in the order in which they are released. */
  [[nodiscard]] std::vector<std::int64_t> ListSums(std::vector<OpenNode> const& nodes,
                                                   std::vector<std::int64_t> const& cuts) const;
  [[nodiscard]] std::vector<std::int64_t> AddNoise(std::vector<std::int64_t> sums) const;
  /** @brief What one feature offers with its released sums. @param cut If there is only one. */
  [[nodiscard]] std::vector<Offer> MakeOffers(bst_feature_t f, std::int64_t cut,
                                              std::vector<GradientSum> const& released) const;
  /** @brief The best offers: feature, candidate, and (G, H, cells) of both sides, node by node. */
  [[nodiscard]] std::vector<std::int64_t> Choose(std::vector<OpenNode> const& nodes, bool oblivious,
                                                 std::vector<std::int64_t> const& cuts,
                                                 std::vector<std::int64_t> const& released) const;
  /** @brief Number of sums of a feature of which a row is in one. */
  [[nodiscard]] std::size_t NumCells(bst_feature_t f) const;
  [[nodiscard]] double Gain(CellSum const& s) const;

  Context const* ctx_;
  Plan const& plan_;
  SplitCandidates const* candidates_;
  RandomSource* rng_;
  RandomSource* structure_;
  MaskedSums* masked_;
};
}  // namespace xgboost::dp
