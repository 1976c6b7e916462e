/**
 * The claim of a training: before a tree is grown the ledger of the booster accounts for all of it.
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include "plugin_cpp/guard.h"      // for Attributes
#include "plugin_cpp/plan/plan.h"  // for Plan

namespace xgboost::dp {
/**
 * @brief The booster's ledger must end in an open entry for this plan, which claims all of it as
 *        spent: with the bound that is enforced, and every draw with its noise and its number. So
 *        whatever happens to the booster from here on, its report never shows less.
 */
void CheckClaim(Attributes const& attributes, Plan const& plan);
}  // namespace xgboost::dp
