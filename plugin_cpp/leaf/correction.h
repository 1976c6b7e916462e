/**
 * The correction of the mean of a regression. Gradients are clipped, so that the trees fit less
 * than the mean of a skewed target. With the last round the mean of what is left over is released,
 * of labels and predictions within their declared range and otherwise not clipped, and the last
 * tree is shifted by it.
 *
 * Proof: docs/proofs/leaves.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "plugin_cpp/leaf/shrinkage.h"   // for NodeSum
#include "plugin_cpp/plan/plan.h"        // for Plan
#include "plugin_cpp/release/release.h"  // for Released, LocalSum, NoisySum
#include "xgboost/base.h"                // for GradientPair
#include "xgboost/context.h"             // for Context
#include "xgboost/data.h"                // for MetaInfo
#include "xgboost/linalg.h"              // for MatrixView
#include "xgboost/tree_model.h"          // for RegTree

namespace xgboost::dp {
/**
 * @brief Sums over the rows of this worker before the last round: of what labels exceed predictions
 *        by, both within their range, and of ones for predictions inside of it.
 *
 * @param gpair Gradients of the squared loss as XGBoost makes them.
 */
[[nodiscard]] LocalSum SumResiduals(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                                    linalg::MatrixView<GradientPair const> gpair);

/**
 * @brief Shift all leaves of the last tree, so that the mean of the predictions is that of the
 *        labels, as far as the released sums stand out of their noise. Reads released sums only.
 *
 * @param sums     Of all nodes of the tree.
 * @param released Of SumResiduals.
 */
void ShiftLeaves(Plan const& plan, std::vector<NodeSum> const& sums,
                 Released<NoisySum> const& released, RegTree* tree);
}  // namespace xgboost::dp
