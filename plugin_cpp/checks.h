/**
 * Checks before a tree is grown: the training must be the one that was calibrated and claimed, and
 * must not use settings of XGBoost without a privacy proof.
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <cstdint>  // for uint64_t
#include <string>   // for string

#include "plugin_cpp/plan/plan.h"       // for Plan
#include "plugin_cpp/release/ledger.h"  // for Attributes
#include "plugin_cpp/rows/persons.h"    // for Persons
#include "tree/param.h"                 // for TrainParam
#include "xgboost/base.h"               // for Args
#include "xgboost/context.h"            // for Context
#include "xgboost/data.h"               // for DMatrix

namespace xgboost::dp {
/** @brief Public upper limits on the number of rows, which define valid data sets. */
struct RowLimits {
  std::uint64_t total;  // over all workers
  std::uint64_t batch;  // rows of a page have 32-bit indices
};

/** @brief The limits in force. Only tests lower them. */
[[nodiscard]] RowLimits& Limits();

/** @brief Refuse XGBoost settings that would have no effect here, or have no privacy proof. */
void CheckTrainParam(tree::TrainParam const& param);

/**
 * @brief Refuse matrices that are not plain, or differ from the plan in columns or privacy unit.
 *
 * @param persons The persons that the training uses; another thread may set others at any time.
 */
void CheckMatrix(DMatrix* p_fmat, Plan const& plan, Persons const* persons);

/**
 * @brief Refuse rows outside the declared domain, long batches, and bins without disk space.
 *
 * Called before anything is released, and again before anything is drawn for the trees.
 */
void CheckRows(Context const* ctx, Plan const& plan, DMatrix* p_fmat);

/**
 * @brief Refuse more rows than can be summed exactly: doubles are exact up to 2^53 only, and a
 *        rounded sum has no sensitivity bound. With the finest grid of the row-weight clip, the
 *        limit is 2^35 rows.
 */
void CheckSums(Context const* ctx, Plan const& plan, std::uint64_t n_rows);

[[nodiscard]] std::string const* Find(Args const& args, std::string const& key);
/** @brief Refuse arguments that differ from the plan. */
void CheckFirstArgs(Args const& args, Plan const& plan);
/** @brief During a training, refuse new arguments that can change a tree. */
void CheckLaterArgs(Args const& args, Plan const& plan);

/**
 * @brief Consume the claim of the booster's ledger, which must be open and must name this plan.
 *
 * The last entry of the ledger charges the whole plan, or the largest cost of several plans, and
 * names them by their SHA-256. A plan with known or absent noise needs a claim in a ledger that is
 * marked non-private. The booster's report therefore never shows less than was drawn.
 *
 * @return The ledger, which must not change until the training ends.
 */
[[nodiscard]] std::string TakeClaim(Attributes const& attributes, KnownNoise const& known,
                                    std::string const& plan_text, DMatrix const* train);
}  // namespace xgboost::dp
