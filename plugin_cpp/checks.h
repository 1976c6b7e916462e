/**
 * What is checked before a tree is grown: that the training is the one that was calibrated and
 * accounted for, and that nothing of stock XGBoost takes part that would need a proof.
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
/** @brief The most rows that a training takes. Public, and part of what a valid data set is. */
struct RowLimits {
  std::uint64_t total;  // over all workers
  std::uint64_t batch;  // rows of a page are numbered by 32 bits
};

/** @brief The limits in force. Only tests lower them, to meet them with few rows. */
[[nodiscard]] RowLimits& Limits();

/** @brief Settings of stock XGBoost that would be ignored here, or would need a proof. */
void CheckTrainParam(tree::TrainParam const& param);

/**
 * @brief The matrix is a plain one, and has the columns and the unit of privacy of the plan.
 *
 * @param persons Those that the training reads: another thread may set others after it has asked.
 */
void CheckMatrix(DMatrix* p_fmat, Plan const& plan, Persons const* persons);

/**
 * @brief Every row lies in the declared domain, no batch is too long, and bins on disk have room.
 *
 * Called before anything is released, and again before anything is drawn for the trees.
 */
void CheckRows(Context const* ctx, Plan const& plan, DMatrix* p_fmat);

/**
 * @brief Sums of integers are exact in double up to 2^53 only; a rounded one has no sensitivity.
 *
 * The limit is public and part of what a valid data set is: 2^35 rows on the finest grid of the
 * row-weight clip.
 */
void CheckSums(Context const* ctx, Plan const& plan, std::uint64_t n_rows);

[[nodiscard]] std::string const* Find(Args const& args, std::string const& key);
/** @brief Refuse arguments other than those that a plan was calibrated for. */
void CheckFirstArgs(Args const& args, Plan const& plan);
/** @brief Refuse new arguments in the middle of a training, but for those that change no tree. */
void CheckLaterArgs(Args const& args, Plan const& plan);

/**
 * @brief Use up the claim of the booster's ledger, which must be open and must name this plan.
 *
 * The ledger's last entry charges the whole plan, or the largest cost of several, and names them by
 * the SHA-256 of their texts. A plan with known or absent noise needs a claim too, in a ledger that
 * is marked non-private. So whatever happens to the booster from here on, its report never shows
 * less than what was drawn.
 *
 * @return The ledger, which must stay as it is until the training ends.
 */
[[nodiscard]] std::string TakeClaim(Attributes const& attributes, KnownNoise const& known,
                                    std::string const& plan_text, DMatrix const* train);
}  // namespace xgboost::dp
