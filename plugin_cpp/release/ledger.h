/**
 * What was drawn. Every event is recorded by the draw that it pays for, never from the calibration.
 * What a unit of privacy can change of it follows from the plan, and epsilon from both, in
 * xgb_dp/accounting.
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t, uint64_t
#include <map>      // for map
#include <memory>   // for shared_ptr
#include <string>   // for string
#include <variant>  // for variant
#include <vector>   // for vector

#include "xgboost/data.h"  // for DMatrix
#include "xgboost/json.h"  // for Json

namespace xgboost::dp {
/** @brief Texts of a booster by name; one of them is its ledger. */
using Attributes = std::map<std::string, std::string>;
inline constexpr char kLedgerAttribute[] = "dp_ledger";

/** @brief A random identifier of a training: 32 hexadecimal digits from the operating system. */
[[nodiscard]] std::string NewTrainingId();

/**
 * @brief Allow one training on this matrix, by this worker, to draw what a ledger claims.
 *
 * @param persons Who the rows of the matrix belong to; null where each row counts one.
 *
 * Kept in memory only, and not for forked processes: a checkpoint, a pickle or a copy of a booster
 * holds the ledger but cannot draw under it again.
 */
void OpenClaim(std::string const& ledger, DMatrix const* train,
               std::shared_ptr<void const> persons);
/** @return Whether the claim was open for these rows and worker; it is not afterwards. */
bool UseClaim(std::string const& ledger, DMatrix const* train,
              std::shared_ptr<void const> const& persons);

/** @brief eps0 of a selection is eps_num / 2^kEpsBits. */
inline constexpr std::int32_t kEpsBits = 40;
/** @brief The rate of a sample is rate_num / 2^kSampleBits. */
inline constexpr std::int32_t kSampleBits = 32;

/** @brief Sums with discrete noise. `release` names what they are. */
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
  std::vector<std::uint64_t> drawn;  // of each part of the event

  LedgerEntry(DrawEvent event, std::uint64_t count) : event{std::move(event)}, count{count} {}
  /** @return How often the part has been drawn, this draw included. */
  std::uint64_t Draw(std::size_t part);
};

/** @brief A round that reads some of the rows, and all that it may release. */
struct RoundEvent {
  std::uint64_t rate_num{0};  // of a Poisson sample; else 0
  std::uint64_t ensemble{0};  // rounds that read disjoint parts: a row is in one; else 0
  std::vector<LedgerEntry> entries;
};

/**
 * @brief The events of one training, merged per mechanism, which the accounting allows: Gaussian
 * and Laplace noise are moved to the front of all selections there, and the selections of one
 *        training have equal ranges.
 */
class Ledger {
 public:
  /** @param person_level The unit of privacy of all events, see ToJson. */
  explicit Ledger(bool person_level) : person_level_{person_level} {}
  /**
   * @brief Draws from here on are those of a round that reads some of the rows.
   *
   * @param record Whether the round is an event of its own, or part of the ensemble begun before.
   */
  void BeginRound(RoundEvent const& round, bool record);
  /**
   * @brief Record a draw, before it is made.
   *
   * What the round has announced is paid for by the round. Any other draw is an event of its own,
   * as if it read all rows.
   *
   * @param part Of several draws that the event's bound holds for together. The same part again is
   *             another event.
   */
  void Record(DrawEvent const& event, std::size_t part);
  /** @brief Noise first, then selections, then rounds. */
  [[nodiscard]] Json SaveEvents() const;

 private:
  bool person_level_;
  std::vector<LedgerEntry> noise_, selections_, announced_;
  std::vector<std::pair<RoundEvent, std::uint64_t>> rounds_;
};
}  // namespace xgboost::dp
