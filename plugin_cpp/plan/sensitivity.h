/**
 * What one unit of privacy, a row or a person, can change of every release of a plan, and with it
 * the events that the ledger records.
 *
 * Proof: docs/proofs/accounting.md
 * Proof: docs/proofs/exponential-mechanism.md
 * Proof: docs/proofs/persons.md
 * Proof: docs/proofs/sampling.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstdint>  // for int64_t, uint64_t

#include "plugin_cpp/plan/plan.h"       // for Plan
#include "plugin_cpp/release/ledger.h"  // for NoiseEvent, GaussianEvent, SelectionEvent

namespace xgboost::dp {
/**
 * @brief Output perturbation: a leaf value is released as an integer of which this many are its
 *        sensitivity.
 */
inline constexpr std::int64_t kOutputUnits = std::int64_t{1} << 20;

/**
 * @brief What a row adds at most to the two sums of a correction: to that of residuals, and to that
 *        of predictions inside the range. The second needs less precision.
 */
inline constexpr std::int64_t kResidualUnit = std::int64_t{1} << 18;
inline constexpr std::int64_t kInsideUnit = std::int64_t{1} << 16;

/**
 * @brief Where persons spread over leaves, the sums of all rows are released beside the leaves, in
 *        this many units of the grid.
 */
inline constexpr std::uint64_t kRootUnit = 3;

/**
 * @brief Largest range, exclusive: with the bits of eps0 it must fit the denominator of the
 *        exponential mechanism. A denominator that wraps around would void the guarantee.
 */
inline constexpr std::uint64_t kMaxScoreRange = std::uint64_t{1} << (63 - kEpsBits);

/** @brief Range of the utility of `plan.score` under add/remove, in utility units. */
[[nodiscard]] std::uint64_t ScoreRange(Plan const& plan);

/** @brief The selections of one level of a tree. */
[[nodiscard]] SelectionEvent SplitEvent(Plan const& plan);
/** @brief The noisy histograms of one level, of one tree for each class. */
[[nodiscard]] GaussianEvent HistogramEvent(Plan const& plan);
/** @brief The leaves of one tree for each class. */
[[nodiscard]] NoiseEvent LeafEvent(Plan const& plan);
/** @brief The residuals after all trees, released once. */
[[nodiscard]] GaussianEvent CorrectionEvent(Plan const& plan);
/** @brief The candidates of all private features, released once. */
[[nodiscard]] NoiseEvent CandidateEvent(Plan const& plan);

/** @brief The noise on sums of gradients in one round: on leaves, or on the histograms above. */
[[nodiscard]] LedgerEntry SumsOfRound(Plan const& plan);
/** @brief The selections that one row takes part in, in all trees of one round. */
[[nodiscard]] LedgerEntry SelectionsOfRound(Plan const& plan);
/** @brief All that a round may release of the rows it reads, where it reads some of them only. */
[[nodiscard]] RoundEvent EventOfRound(Plan const& plan, std::int32_t round);
/** @brief Everything that all rounds of a plan release, if "no split" spares no selection. */
[[nodiscard]] Ledger EventsOfPlan(Plan const& plan);
}  // namespace xgboost::dp
