/**
 * What is checked before a tree is grown: that the training is the one that was calibrated and
 * accounted for, and that nothing of stock XGBoost takes part that would need a proof.
 */
#pragma once

#include <cstdint>  // for uint64_t
#include <string>   // for string

#include "plugin_cpp/guard.h"  // for Attributes
#include "plugin_cpp/plan/plan.h"   // for Plan
#include "tree/param.h"        // for TrainParam
#include "xgboost/context.h"   // for Context
#include "xgboost/data.h"      // for DMatrix, MetaInfo

namespace xgboost::dp {
/** @brief Whether this is the matrix of a worker that has been given no rows, nor columns. */
[[nodiscard]] bool IsEmptyPart(MetaInfo const& info);

/** @brief Settings of stock XGBoost that would be ignored here, or would need a proof. */
void CheckTrainParam(tree::TrainParam const& param, DMatrix* p_fmat, Plan const& plan);

/**
 * @brief Sums of integers are exact in double up to 2^53 only; a rounded one has no sensitivity.
 *
 * The limit is public and part of what a valid data set is: 2^35 rows on the finest grid of the
 * row-weight clip.
 */
void CheckSums(Context const* ctx, Plan const& plan, std::uint64_t n_rows);

/**
 * @brief The booster's ledger must end in an open entry for this plan, which claims all of it as
 *        spent. So whatever happens to the booster from here on, its report never shows less.
 */
void CheckClaim(Attributes const& attributes, std::string const& plan_id);
}  // namespace xgboost::dp
