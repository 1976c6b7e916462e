/**
 * Splits read from noisy histograms (FEVERLESS; DP-GBM): every sum of a level is released with
 * Gaussian noise, and all that follows, the best split and the sums of its children, costs nothing
 * more. A row is in one node of a level and, with its missing values as a bin of their own, in one
 * bin of each feature: the squared L2 sensitivity of a level is that of a tree's leaves times the
 * number of features.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/gradient.h"          // for GradientSum
#include "plugin_cpp/noise/samplers.h"    // for RandomSource
#include "plugin_cpp/plan.h"              // for Plan
#include "plugin_cpp/split/candidates.h"  // for SplitCandidates, Split, CellSum
#include "plugin_cpp/split/select.h"      // for OpenNode
#include "xgboost/context.h"              // for Context

namespace xgboost::dp {
/** @brief A split with the released sums of both of its children. */
struct ReleasedSplit {
  Split split;
  CellSum left, right;
};

class HistogramSelector {
 public:
  /** @param rng Null for the noise-free algorithm. */
  HistogramSelector(Context const* ctx, Plan const& plan, SplitCandidates const* candidates,
                    RandomSource* rng)
      : ctx_{ctx}, plan_{plan}, candidates_{candidates}, rng_{rng} {}

  /** @brief The split with the largest gain on noisy sums, for each node or for all of them. */
  [[nodiscard]] std::vector<ReleasedSplit> Select(std::vector<OpenNode> const& nodes,
                                                  bool oblivious) const;

 private:
  [[nodiscard]] std::vector<GradientSum> Release(std::vector<GradientSum> cells) const;
  [[nodiscard]] double Gain(CellSum const& s) const;

  Context const* ctx_;
  Plan const& plan_;
  SplitCandidates const* candidates_;
  RandomSource* rng_;
};
}  // namespace xgboost::dp
