/**
 * The draws that a plan leads to: which release, with which noise, and how often in a round.
 *
 * What one unit of privacy can change of a release, and with it the cost of a draw, is computed
 * from the plan and from these records in xgb_dp/accounting, and there alone.
 *
 * Proof: docs/proofs/sampling.md
 */
#pragma once

#include <cstdint>  // for int32_t

#include "plugin_cpp/plan/plan.h"       // for Plan
#include "plugin_cpp/release/ledger.h"  // for NoiseEvent, GaussianEvent, SelectionEvent

namespace xgboost::dp {
/** @brief The selections of one level of a tree. */
[[nodiscard]] SelectionEvent SplitEvent(Plan const& plan);
/** @brief The noisy histograms of one level, of one tree for each class. */
[[nodiscard]] GaussianEvent HistogramEvent(Plan const& plan);
/** @brief The leaves of one tree for each class. */
[[nodiscard]] NoiseEvent LeafEvent(Plan const& plan);
/** @brief The residuals after all trees. */
[[nodiscard]] GaussianEvent CorrectionEvent(Plan const& plan);
/** @brief The candidates of all private features. */
[[nodiscard]] NoiseEvent CandidateEvent(Plan const& plan);

/** @brief All that a round may release of the rows it reads, where it reads some of them only. */
[[nodiscard]] RoundEvent EventOfRound(Plan const& plan, std::int32_t round);
}  // namespace xgboost::dp
