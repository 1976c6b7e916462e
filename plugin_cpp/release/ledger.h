/**
 * The record of all draws. Each draw records its own event; none is copied from the calibration.
 * xgb_dp/accounting computes sensitivities from the plan, and epsilon from the sensitivities and
 * this record.
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, uint64_t
#include <map>      // for map
#include <memory>   // for shared_ptr
#include <string>   // for string
#include <variant>  // for variant
#include <vector>   // for vector

#include "xgboost/data.h"  // for DMatrix
#include "xgboost/json.h"  // for Json

namespace xgboost::dp {
/** @brief Attributes of a booster by name, including its ledger. */
using Attributes = std::map<std::string, std::string>;
inline constexpr char kLedgerAttribute[] = "dp_ledger";

/** @brief A random identifier of a training: 32 hexadecimal digits from the operating system. */
[[nodiscard]] std::string NewTrainingId();

/**
 * @brief Allow one training on this matrix, by this worker, to draw what a ledger claims.
 *
 * @param persons The persons of the matrix; null if the unit is a row.
 *
 * Claims are in memory only, and not valid in forked processes: a checkpoint, pickle or copy of a
 * booster contains the ledger but cannot be used to draw again.
 */
void OpenClaim(std::string const& ledger, DMatrix const* train,
               std::shared_ptr<void const> persons);
/**
 * @brief Close the claim.
 *
 * @return Whether it was open for these rows and this worker.
 */
bool UseClaim(std::string const& ledger, DMatrix const* train,
              std::shared_ptr<void const> const& persons);

/** @brief eps0 of a selection is eps_num / 2^kEpsBits. */
inline constexpr std::int32_t kEpsBits = 40;
/** @brief The rate of a sample is rate_num / 2^kSampleBits. */
inline constexpr std::int32_t kSampleBits = 32;

/** @brief Sums with discrete noise. `release` is their name. */
struct NoiseEvent {
  std::string release;
  bool is_laplace{false};      // else Gaussian
  std::uint64_t parameter{0};  // sigma2 of Gaussian noise, scale of Laplace noise
};

struct SelectionEvent {
  std::string release;
  std::uint64_t eps_num{0};
  std::uint64_t range{0};  // of the utilities
};

using DrawEvent = std::variant<NoiseEvent, SelectionEvent>;

/** @brief Releases with the same parameters. */
struct LedgerEntry {
  DrawEvent event;
  std::uint64_t count{0};
  std::vector<std::uint64_t> drawn;  // by part of the event

  LedgerEntry(DrawEvent event, std::uint64_t count) : event{std::move(event)}, count{count} {}
  /** @return The number of draws of the part, including this one. */
  std::uint64_t Draw(std::size_t part);
};

/** @brief A round that reads only some of the rows, with all of its releases. */
struct RoundEvent {
  std::uint64_t rate_num{0};  // of a Poisson sample; else 0
  std::uint64_t ensemble{0};  // number of rounds on disjoint parts of the rows; else 0
  std::vector<LedgerEntry> entries;
};

/**
 * @brief The events of one training, merged by mechanism. Merging changes their order, which the
 *        accounting allows: Gaussian and Laplace noise may precede all selections, and these have
 *        equal ranges.
 */
class Ledger {
 public:
  explicit Ledger(bool person_level) : person_level_{person_level} {}
  /**
   * @brief Begin a round that reads only some of the rows.
   *
   * @param record Whether to record a new event. Otherwise the round belongs to the current
   *               ensemble.
   */
  void BeginRound(RoundEvent const& round, bool record);
  /**
   * @brief Record a draw before it is made.
   *
   * A draw that the current round has announced is covered by the event of the round. Any other
   * draw is a new event, as if it read all rows.
   *
   * @param part Index among several draws with a joint bound. A repeated part is a new event.
   */
  void Record(DrawEvent const& event, std::size_t part);
  /** @brief All events as JSON: noise first, then selections, then rounds. */
  [[nodiscard]] Json SaveEvents() const;

 private:
  bool person_level_;
  std::vector<LedgerEntry> noise_, selections_, announced_;
  std::vector<std::pair<RoundEvent, std::uint64_t>> rounds_;
};
}  // namespace xgboost::dp
