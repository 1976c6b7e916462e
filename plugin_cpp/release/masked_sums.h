/**
 * Noisy sums over workers of which no worker, and nobody on the network, sees more than the noisy
 * sum: every worker adds its share of the noise to its own sums, and masks them before it sends
 * them.
 *
 * Proof: docs/proofs/masked-sums.md
 */
#pragma once

#include <cstdint>  // for int64_t, uint64_t
#include <memory>   // for shared_ptr
#include <vector>   // for vector

#include "plugin_cpp/random/samplers.h"  // for RandomSource
#include "plugin_cpp/release/masking.h"  // for Masking
#include "plugin_cpp/release/pads.h"     // for PairPads
#include "xgboost/context.h"            // for Context

namespace xgboost::dp {
class MaskedSums {
 public:
  /** @param rng Of this worker's shares, independent of all others; null for no noise. */
  MaskedSums(Context const* ctx, Masking const& masking, RandomSource* rng)
      : ctx_{ctx}, masking_{masking}, rng_{rng} {}

  /** @brief Start with pads that fit the masking and this worker; fails for others. */
  void Open(std::shared_ptr<PairPads> pads);

  /**
   * @brief The same noisy sums over all workers, on every worker.
   *
   * A worker that has dropped out is an error on the others: without its pads nothing can be read.
   * No further sum is masked then.
   *
   * @param local  Exact sums of this worker's rows; equally many on all workers.
   * @param sigma2 What the ledger claims of the noise; 0 exactly without noise.
   */
  [[nodiscard]] std::vector<std::int64_t> Release(std::vector<std::int64_t> local,
                                                  std::uint64_t sigma2);

 private:
  Context const* ctx_;
  Masking masking_;
  RandomSource* rng_;
  std::shared_ptr<PairPads> pads_;
};
}  // namespace xgboost::dp
