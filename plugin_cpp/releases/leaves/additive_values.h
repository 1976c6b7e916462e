/**
 * Leaf values of an additive round, from what was released. Reads no data.
 *
 * The sum of all rows gives a step of the intercept. The leaves of each column are contrasts to it:
 * what is left of their gradients after that step. Their weights are shrunk by priors of each
 * column, and centred, so that the columns do not all take the step of the intercept again.
 *
 * Proof: docs/proofs/leaves.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/grow/additive.h"              // for ColumnLeaves
#include "plugin_cpp/plan/plan.h"                  // for Plan, TreeOfRound
#include "plugin_cpp/release/release.h"            // for Released, NoisySum
#include "plugin_cpp/releases/leaves/shrinkage.h"  // for LeafShrinkage
#include "xgboost/tree_model.h"                    // for RegTree

namespace xgboost::dp {
/**
 * @brief Set values and statistics of the trees of a round.
 *
 * @param released Sums of all leaves that are not absent, tree by tree, and of all rows.
 */
void FinishColumns(Plan const& plan, TreeOfRound of, std::vector<ColumnLeaves> const& leaves,
                   Released<NoisySum> const& released, LeafShrinkage* shrinkage,
                   std::vector<RegTree*> const& trees);
}  // namespace xgboost::dp
