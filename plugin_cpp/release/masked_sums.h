/**
 * Masked sums: one worker's side of the protocol. Each pair of workers shares keys for
 * authentication tags and for one-time pads. The pads hide the numbers of a worker and cancel in
 * the sum.
 *
 * A sum takes two exchanges: every worker sends its masked numbers, and then acknowledges the
 * numbers of all workers. Every message has a tag for each other worker over the whole transcript,
 * so nobody else can change, repeat or reorder messages.
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
/** @brief An authentication tag for one receiver, of 128 bits. */
using Tag = std::array<std::uint64_t, 2>;

/** @brief The secrets that one worker shares with each other worker. */
class PairKeys {
 public:
  /**
   * @param seeds `world` keys of 32 bytes, by rank; the key at this worker's own rank is not used.
   */
  PairKeys(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds);
  ~PairKeys();
  PairKeys(PairKeys const&) = delete;
  PairKeys& operator=(PairKeys const&) = delete;

  /**
   * @brief Mask numbers with the pads of a context, modulo 2^64: the worker with the lower rank
   *        adds the shared pad, and the other one subtracts it.
   *
   * @param context A unique digest. The pads of two workers cancel for equal contexts, and are
   *                independent for different ones.
   */
  void Mask(Digest const& context, std::vector<std::uint64_t>* values) const;
  /**
   * @brief The tag of a message between this worker and a peer.
   *
   * @param sender  Rank of the sender: this worker or the peer.
   * @param kind    Kind of message, 8 characters.
   * @param context Digest of the transcript.
   * @param content Digest of the message.
   */
  [[nodiscard]] Tag MakeTag(std::int32_t peer, std::int32_t sender, std::string const& kind,
                            Digest const& context, Digest const& content) const;

  [[nodiscard]] std::int32_t Rank() const { return rank_; }
  [[nodiscard]] std::int32_t World() const { return static_cast<std::int32_t>(keys_.size()); }

 private:
  std::int32_t rank_;
  std::vector<Digest> keys_;  // zeros for this worker
};

/**
 * @brief The sums of one training. Each sum calls SendShares, Acknowledge and Unmask, in this
 *        order.
 *
 * After a failure, no further sum is possible.
 */
class MaskedSums {
 public:
  using Words = std::vector<std::uint64_t>;

  /**
   * @param seeds   Keys shared with the other workers, see PairKeys.
   * @param session Unique digest of the agreement of the workers.
   */
  MaskedSums(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds,
             Digest const& session);

  /**
   * @brief Create the first message to all workers: masked numbers, and a tag for each worker.
   *
   * @param what   Name of the release and its noise. Workers that pass different names share no
   *               pads.
   * @param values Numbers of this worker, including its share of the noise.
   */
  [[nodiscard]] Words SendShares(std::string const& what, Words values);
  /**
   * @brief Check and add the messages of all workers.
   *
   * @param messages The messages that this worker received, by rank.
   *
   * @return The second message: a tag for each worker over the received messages. After a wrong
   *         message, the tags are zeros, and Unmask fails on this worker too.
   */
  [[nodiscard]] Words Acknowledge(Words const& messages);
  /**
   * @brief Return the sums if all workers received the same messages; otherwise fail.
   *
   * @param acknowledgements The acknowledgements that this worker received, by rank.
   */
  [[nodiscard]] std::vector<std::int64_t> Unmask(Words const& acknowledgements);

  /** @brief 32 public bytes, equal on all workers. */
  [[nodiscard]] Digest SharedBytes(std::string const& purpose) const;

  [[nodiscard]] std::int32_t Rank() const { return keys_.Rank(); }
  [[nodiscard]] std::int32_t World() const { return keys_.World(); }

 private:
  enum class Step { kSendShares, kAcknowledge, kUnmask, kFailed };

  void Go(Step from, Step to);
  /** @brief Append this worker's tag for each receiver of a message; zeros for itself. */
  void AppendTags(std::string const& kind, Digest const& content, Words* out) const;
  /** @brief Whether a sender's tag for this worker is correct. */
  [[nodiscard]] bool IsFrom(std::int32_t sender, std::string const& kind, Digest const& content,
                            std::uint64_t const* tags) const;

  PairKeys keys_;
  Digest transcript_;  // of all releases and messages so far
  Step step_{Step::kSendShares};
  std::size_t size_{0};    // of the current sum
  Words sent_;             // by this worker
  Words sums_;             // of the current sum
  std::int32_t wrong_{0};  // rank of a worker with a wrong message
};

/**
 * @brief Store the masked sums of the training `id` in this thread, like XGBoost's communicator.
 *
 * They replace earlier ones and never enter the plan, configuration or model.
 */
void KeepSums(std::string const& id, std::shared_ptr<MaskedSums> sums);
void DropSums();
/**
 * @brief The masked sums of the training `id`; fails if this thread has none.
 *
 * @param take Whether to transfer ownership.
 */
[[nodiscard]] std::shared_ptr<MaskedSums> FindSums(std::string const& id, bool take);
}  // namespace xgboost::dp
