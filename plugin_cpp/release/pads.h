/**
 * Pairwise one-time pads, which hide the numbers of one worker and cancel in the sum of all.
 *
 * Proof: docs/proofs/masked-sums.md
 */
#pragma once

#include <cstdint>  // for int32_t, uint8_t, uint64_t
#include <memory>   // for unique_ptr, shared_ptr
#include <string>   // for string
#include <vector>   // for vector

#include "plugin_cpp/random/chacha20.h"  // for ChaCha20Source

namespace xgboost::dp {
/**
 * @brief The pads that one worker shares with each of the others.
 *
 * Each pair reads one ChaCha20 stream, with a key that nobody else has, from front to back, so that
 * no word is used twice. The worker of the lower rank adds it and the other one subtracts it,
 * modulo 2^64.
 */
class PairPads {
 public:
  /** @param seeds `world` keys of 32 bytes, by rank; the worker's own is not used. */
  PairPads(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds);

  /** @brief Mask numbers with fresh pads; all workers must do so with equally many. */
  void Mask(std::vector<std::uint64_t>* values);

  [[nodiscard]] std::int32_t Rank() const { return rank_; }
  [[nodiscard]] std::int32_t World() const { return static_cast<std::int32_t>(sources_.size()); }

 private:
  std::int32_t rank_;
  std::vector<std::unique_ptr<ChaCha20Source>> sources_;  // null for the worker itself
};

/**
 * @brief Keep the pads of the training `id` for this thread, which is also the reach of XGBoost's
 *        communicator, in place of any earlier ones.
 *
 * They are nowhere else: not in the plan, the configuration or the model.
 */
void KeepPads(std::string const& id, std::shared_ptr<PairPads> pads);
/** @brief Wipe the pads that this thread keeps. */
void DropPads();
/**
 * @brief The pads that were kept for the training `id`; fails without.
 *
 * @param take No longer keep them: whoever has them now wipes them.
 */
[[nodiscard]] std::shared_ptr<PairPads> FindPads(std::string const& id, bool take);
}  // namespace xgboost::dp
