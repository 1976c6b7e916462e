/**
 * What a plan releases, derived from the plan alone: the trainer records it, and xgb_dp compares it
 * with its own calibration before anything is released.
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <cstdint>  // for int32_t

#include "plugin_cpp/plan/plan.h"       // for Plan
#include "plugin_cpp/release/ledger.h"  // for Ledger

namespace xgboost::dp {
/**
 * @brief Record what one round releases.
 *
 * Where a round reads all rows, its selections are left out: the grower records each as it makes
 * it, since "no split" may spare some.
 */
void RecordRound(Plan const& plan, std::int32_t round, Ledger* ledger);

/** @brief Everything that all rounds of a plan release, if "no split" spares no selection. */
[[nodiscard]] Ledger EventsOfPlan(Plan const& plan);
}  // namespace xgboost::dp
