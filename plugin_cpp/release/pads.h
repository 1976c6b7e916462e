/**
 * What a pair of workers shares: one-time pads, which hide the numbers of one worker and cancel in
 * the sum of all, and tags, which prove to the other one who has said something and what.
 *
 * Proof: docs/proofs/masked-sums.md
 */
#pragma once

#include <array>    // for array
#include <cstdint>  // for int32_t, uint8_t, uint64_t
#include <string>   // for string
#include <vector>   // for vector

#include "plugin_cpp/release/sha256.h"  // for Digest

namespace xgboost::dp {
/** @brief A proof for one reader, of 128 bits. */
using Tag = std::array<std::uint64_t, 2>;

/** @brief The secrets that one worker shares with each of the others. */
class PairKeys {
 public:
  /** @param seeds `world` keys of 32 bytes, by rank; the worker's own is not used. */
  PairKeys(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds);
  ~PairKeys();
  PairKeys(PairKeys const&) = delete;
  PairKeys& operator=(PairKeys const&) = delete;

  /**
   * @brief Mask numbers with the pads of a context, modulo 2^64: the worker of the lower rank adds
   *        what the pair shares, the other one subtracts it.
   *
   * @param context Never given twice. Pads of two workers cancel if both give the same, and are
   *                independent of each other if not.
   */
  void Mask(Digest const& context, std::vector<std::uint64_t>* values) const;
  /**
   * @brief What proves to one worker of a pair that the other one says something.
   *
   * @param sender  Rank of who says it, this worker or the peer.
   * @param kind    What is said: a text of 8 characters.
   * @param context Of all that was said before.
   */
  [[nodiscard]] Tag TagOf(std::int32_t peer, std::int32_t sender, std::string const& kind,
                          Digest const& context, Digest const& said) const;

  [[nodiscard]] std::int32_t Rank() const { return rank_; }
  [[nodiscard]] std::int32_t World() const { return static_cast<std::int32_t>(keys_.size()); }

 private:
  std::int32_t rank_;
  std::vector<Digest> keys_;  // that of the worker itself: zeros
};
}  // namespace xgboost::dp
