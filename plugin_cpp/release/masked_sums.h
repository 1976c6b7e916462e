/**
 * Masked sums, as one worker takes part in them. What a pair of workers shares are one-time pads,
 * which hide the numbers of one worker and cancel in the sum of all, and tags, which prove to the
 * other one who has said something and what.
 *
 * Each sum is two exchanges: every worker says its masked numbers, then that it has heard those of
 * all. Every message has a tag for each of the others, over all that was said before it, so that
 * nobody else can change, repeat or move one.
 *
 * Proof: docs/proofs/masked-sums.md
 */
#pragma once

#include <array>    // for array
#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, uint8_t, uint64_t, int64_t
#include <memory>   // for shared_ptr
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

/**
 * @brief The sums of one training: for each one SendShares, Acknowledge and Unmask, in this order.
 *
 * Once anything fails no sum can follow. It reads no data but the numbers that it masks.
 */
class MaskedSums {
 public:
  using Words = std::vector<std::uint64_t>;

  /**
   * @param seeds   See PairKeys.
   * @param session What the workers have agreed on: no two trainings have the same.
   */
  MaskedSums(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds,
             Digest const& session);

  /**
   * @brief What this worker tells all others: its numbers, masked, and a tag for each of them.
   *
   * @param what   Which release it is, with its noise. Workers with another one share no pads.
   * @param values Of this worker, with its noise.
   */
  [[nodiscard]] Words SendShares(std::string const& what, Words values);
  /**
   * @brief Check and add up what all have said.
   *
   * @param said What this worker was told as said by each, by rank.
   *
   * @return What it tells all others: a tag for each, over all that it has heard. If that was not
   *         right, the tags are zeros, and Unmask fails here too.
   */
  [[nodiscard]] Words Acknowledge(Words const& said);
  /**
   * @brief The sums, if all workers have heard the same.
   *
   * @param heard What this worker was told as the answers of Acknowledge, by rank.
   */
  [[nodiscard]] std::vector<std::int64_t> Unmask(Words const& heard);

  /** @brief 32 bytes that all workers have alike, and anybody may know. */
  [[nodiscard]] Digest SharedBytes(std::string const& purpose) const;

  [[nodiscard]] std::int32_t Rank() const { return keys_.Rank(); }
  [[nodiscard]] std::int32_t World() const { return keys_.World(); }

 private:
  enum class Step { kSendShares, kAcknowledge, kUnmask, kFailed };

  void Go(Step from, Step to);
  /** @brief Tags of a message of this worker, by reader; zeros for itself. */
  void AppendTags(std::string const& kind, Digest const& said, Words* out) const;
  /** @brief Whether the tags of a sender, by reader, hold the right one for this worker. */
  [[nodiscard]] bool IsFrom(std::int32_t sender, std::string const& kind, Digest const& said,
                            std::uint64_t const* tags) const;

  PairKeys keys_;
  Digest transcript_;  // of all releases so far, and of what all have said in them
  Step step_{Step::kSendShares};
  std::size_t size_{0};    // of the sum under way
  Words said_;             // of this worker
  Words sums_;             // of the sum under way
  std::int32_t wrong_{0};  // rank of a worker whose message was not right
};

/**
 * @brief Keep the masked sums of the training `id` for this thread, which is also the reach of
 *        XGBoost's communicator, in place of any earlier ones.
 *
 * They are nowhere else: not in the plan, the configuration or the model.
 */
void KeepSums(std::string const& id, std::shared_ptr<MaskedSums> sums);
void DropSums();
/**
 * @brief The masked sums that were kept for the training `id`; fails without.
 *
 * @param take No longer keep them: whoever has them now wipes them.
 */
[[nodiscard]] std::shared_ptr<MaskedSums> FindSums(std::string const& id, bool take);
}  // namespace xgboost::dp
