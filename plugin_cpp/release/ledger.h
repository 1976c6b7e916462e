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
  std::string mechanism;  // "gaussian", "laplace", "exponential", "poisson" or "parallel"
  std::string release;    // "intercept", "candidates", "splits", "histograms" or "leaves"
  std::uint64_t sensitivity2{0};
  std::uint64_t sigma2{0};
  std::uint64_t coordinates{0};  // numbers of one release that one row can touch
  std::uint64_t sensitivity{0};  // "laplace": in the L1 norm
  std::uint64_t scale{0};
  std::uint64_t eps_num{0};
  std::uint64_t rate_num{0};
  std::uint64_t parts{0};
  std::uint64_t count{0};
  std::vector<LedgerEvent> events;  // "poisson", "parallel": the releases of one round

  [[nodiscard]] bool SameMechanism(LedgerEvent const& that) const;
};

LedgerEvent GaussianEvent(std::string release, std::uint64_t sensitivity2, std::uint64_t sigma2,
                          std::uint64_t coordinates);
LedgerEvent LaplaceEvent(std::string release, std::uint64_t sensitivity, std::uint64_t scale);
LedgerEvent ExponentialEvent(std::string release, std::uint64_t eps_num);
/** @brief Releases that read only a Poisson sample of the rows, drawn with rate_num / 2^32. */
LedgerEvent SampledEvent(std::uint64_t rate_num, std::vector<LedgerEvent> events);
/** @brief Releases of rounds that read disjoint parts of the rows: a row is in one of them. */
LedgerEvent ParallelEvent(std::uint64_t parts, std::vector<LedgerEvent> events);

[[nodiscard]] Json ToJson(LedgerEvent const& event);

/**
 * @brief The events of one training. Selections and leaf releases alternate; they are merged per
 *        mechanism, which the accounting allows: Gaussians and Laplace noise are moved to the front
 *        of all selections there, and the selections of one training have equal ranges.
 */
class Ledger {
 public:
  void Record(LedgerEvent const& event);
  [[nodiscard]] Json SaveEvents() const;

 private:
  std::vector<LedgerEvent> events_;
};
}  // namespace xgboost::dp
