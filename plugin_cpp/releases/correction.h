/**
 * The correction of the mean of a regression. Gradients are clipped, so that the trees fit less
 * than the mean of a skewed target. After the last tree the mean of what is left over is released,
 * of labels and predictions within their declared range and otherwise not clipped, and the tree is
 * shifted by it; then once more, since predictions beyond the range have come into it.
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
 * @brief Sums over the rows of this worker: of what labels exceed predicted means by, both within
 *        their range; and of ones for means inside of it, or of the means themselves where the
 *        correction is a factor. A person counts the mean of its rows.
 *
 * @param persons  Whom the rows belong to; null where each row counts one.
 * @param own      Margins before the tree, and the loss that says which means they predict; or
 * none.
 * @param gpair    Gradients of the squared loss as XGBoost makes them, before the tree.
 * @param position The leaf of each row in the tree.
 */
[[nodiscard]] std::vector<LocalInt> SumResiduals(Context const* ctx, RowBound const& bound,
                                                 MetaInfo const& info, Persons const* persons,
                                                 RoundLoss const& own,
                                                 linalg::MatrixView<GradientPair const> gpair,
                                                 std::vector<bst_node_t> const& position,
                                                 RegTree const& tree);

/** @brief Shifts the last tree by released means. Reads released sums only. */
class MeanCorrection {
 public:
  explicit MeanCorrection(Plan const& plan);
  /**
   * @brief Shift all leaves, so that the mean of the predictions is that of the labels, as far as
   *        the released sums stand out of their noise.
   */
  void Shift(Released<NoisyInt> const& released, RegTree* tree);

 private:
  [[nodiscard]] double ShiftOf(Released<NoisyInt> const& released);

  double scale_;
  double rows_;          // released or public; 0 where they are not known
  double largest_mean_;  // in half widths; 0 where the correction is no factor
  double eta_;
  double variance_;  // of the shift to come, in half widths or logarithms squared
};
}  // namespace xgboost::dp
