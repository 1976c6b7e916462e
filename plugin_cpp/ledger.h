/**
 * What was released. The ledger is written from the mechanisms as they draw, never from the
 * calibration; epsilon is recomputed from it.
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <cstdint>  // for int64_t, uint64_t
#include <string>   // for string
#include <vector>   // for vector

#include "xgboost/json.h"  // for Json

namespace xgboost::dp {
/** @brief Releases of one mechanism with the same parameters, in the order of release. */
struct LedgerEvent {
  std::string mechanism;  // "gaussian", "exponential" or "poisson"
  std::string release;    // "intercept", "candidates", "splits" or "leaves"
  std::uint64_t sensitivity2{0};
  std::uint64_t sigma2{0};
  std::uint64_t coordinates{0};  // numbers of one release that one row can touch
  std::uint64_t eps_num{0};
  std::uint64_t rate_num{0};
  std::uint64_t count{0};
  std::vector<LedgerEvent> events;  // "poisson": the releases from each sample

  [[nodiscard]] bool SameMechanism(LedgerEvent const& that) const;
};

LedgerEvent GaussianEvent(std::string release, std::uint64_t sensitivity2, std::uint64_t sigma2,
                          std::uint64_t coordinates);
LedgerEvent ExponentialEvent(std::string release, std::uint64_t eps_num);
/** @brief Releases that read only a Poisson sample of the rows, drawn with rate_num / 2^32. */
LedgerEvent SampledEvent(std::uint64_t rate_num, std::vector<LedgerEvent> events);

[[nodiscard]] Json ToJson(LedgerEvent const& event);

/**
 * @brief The events of one training. Selections and leaf releases alternate; they are merged per
 *        mechanism, which the accounting allows: Gaussians are convolved last and equal selections
 *        commute with each other.
 */
class Ledger {
 public:
  void Record(LedgerEvent const& event);
  [[nodiscard]] Json SaveEvents() const;

 private:
  std::vector<LedgerEvent> events_;
};
}  // namespace xgboost::dp
