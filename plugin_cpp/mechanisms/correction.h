/**
 * The correction of the mean of a regression. Because gradients are clipped, the trees
 * underestimate the mean of a skewed target. After the last tree the mean residual within the
 * declared range is released, without another clip, and the tree is shifted by it. This is done
 * twice, because predictions beyond the range can move into it.
 *
 * Proof: docs/proofs/leaves.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/plan/plan.h"        // for Plan
#include "plugin_cpp/release/release.h"  // for Released, LocalInt, NoisyInt
#include "plugin_cpp/rows/gradient.h"    // for RoundLoss
#include "plugin_cpp/rows/persons.h"     // for Persons
#include "xgboost/base.h"                // for GradientPair, bst_node_t
#include "xgboost/context.h"             // for Context
#include "xgboost/data.h"                // for MetaInfo
#include "xgboost/linalg.h"              // for MatrixView
#include "xgboost/tree_model.h"          // for RegTree

namespace xgboost::dp {
/**
 * @brief Sums over the rows of this worker: of labels minus predicted means, both within their
 * range; and the number of means inside the range, or for a correction by a factor the sum of
 * means. A person counts the mean of their rows.
 *
 * @param persons  The persons of the rows; null if the unit is a row.
 * @param own      The loss of the plan with margins before the tree, or no loss.
 * @param gpair    Gradients of the squared loss of XGBoost, before the tree.
 * @param position The leaf of each row in the tree.
 */
[[nodiscard]] std::vector<LocalInt> SumResiduals(Context const* ctx, RowBound const& bound,
                                                 MetaInfo const& info, Persons const* persons,
                                                 RoundLoss const& own,
                                                 linalg::MatrixView<GradientPair const> gpair,
                                                 std::vector<bst_node_t> const& position,
                                                 RegTree const& tree);

/** @brief Shifts the last tree by released means. */
class MeanCorrection {
 public:
  explicit MeanCorrection(Plan const& plan);
  /**
   * @brief Shift all leaves by an estimate of the mean residual, which shrinks with the noise.
   */
  void Shift(Released<NoisyInt> const& released, RegTree* tree);

 private:
  [[nodiscard]] double EstimateShift(Released<NoisyInt> const& released);

  double scale_;
  double rows_;          // released or public; 0 if unknown
  double largest_mean_;  // in half widths; 0 without a correction by a factor
  double eta_;
  double variance_;  // prior variance of the next shift, in half widths or logarithms squared
};
}  // namespace xgboost::dp
