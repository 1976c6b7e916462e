/**
 * Corrects the mean prediction of a regression. Because gradients are clipped, the trees
 * underestimate the mean of a skewed target. After the last tree, the mean residual is released,
 * bounded only by the declared range, and the tree is shifted by it. This is done twice, because
 * the shift can move predictions from outside the range into it.
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
 * @brief Two sums over the rows of this worker, before noise.
 *
 * The first is the sum of residuals: label minus predicted mean, both clipped to the declared
 * range. The second is the number of predictions inside the range, or, if the mean is corrected by
 * a factor, the sum of predicted means. A person contributes the mean over their rows.
 *
 * @param persons  The persons of the rows; null if the unit is a row.
 * @param own      The loss of the plan, if any, and the margins before the tree.
 * @param gpair    Gradients of XGBoost's squared loss before the tree, if the plan has no loss.
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
   * @brief Shift all leaves by an estimate of the mean residual, shrunk according to the noise.
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
