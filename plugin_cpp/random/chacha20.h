/**
 * @brief Source of the random bits of every private release: ChaCha20 (RFC 8439), keyed from the
 *        operating system. XGBoost's own generators are seeded by a parameter and can be replayed,
 *        so noise drawn from them would be public.
 */
#pragma once

// Proof: docs/proofs/samplers.md

#include <array>    // for array
#include <cstddef>  // for size_t
#include <cstdint>  // for uint8_t, uint32_t, uint64_t

namespace xgboost::dp {
/** @brief A stream of independent, uniform 64-bit words. Samplers use only this interface. */
class RandomSource {
 public:
  RandomSource() = default;
  virtual ~RandomSource() = default;
  RandomSource(RandomSource const&) = delete;
  RandomSource& operator=(RandomSource const&) = delete;

  virtual std::uint64_t Next64() = 0;
};

/** @brief A 256-bit key. The owner of every copy must wipe it with @ref SecureWipe. */
using ChaChaKey = std::array<std::uint8_t, 32>;

/** @brief Overwrite memory that held a key or noise, in a way the compiler may not remove. */
void SecureWipe(void* data, std::size_t n_bytes);

/**
 * @brief Overwrite the stack memory of earlier function calls, in which the compiler may have saved
 *        registers with parts of the key or stream.
 */
void WipeStack();

/**
 * @brief The number of refills of all sources of this process.
 *
 * A new source is refilled at its first draw. If the number has not changed, nothing was drawn from
 * new sources.
 */
[[nodiscard]] std::uint64_t NumRefills();

/** @brief The number of forks between the first process and this one. */
[[nodiscard]] std::uint64_t ForkGeneration();

/**
 * @brief Compute four blocks of ChaCha20 (RFC 8439, section 2.3), starting at the state's block
 *        counter.
 *
 * @param state Constants, key, block counter and nonce as 16 words.
 * @param out   64 words, in stream order.
 */
void FourBlocks(std::array<std::uint32_t, 16> const& state, std::uint32_t* out);

/**
 * @brief The ChaCha20 key stream of one key and one stream id, read 8 bytes at a time,
 *        little-endian.
 *
 * The nonce is (stream_id, 0, 0) and the block counter starts at 0. Two sources with the same key
 * must have different stream ids, or their noise is the same. After 2^32 blocks a stream ends with
 * a fatal error: a repeated block would be repeated noise.
 *
 * A copy in a forked process would release the same noise as its parent, and the difference between
 * the two releases would be exact. Drawing in any process but the one that created the source is
 * therefore a fatal error.
 *
 * Not thread safe: the order of the draws is part of the mechanism.
 */
class ChaCha20Source final : public RandomSource {
 public:
  ChaCha20Source(ChaChaKey const& key, std::uint32_t stream_id);
  ~ChaCha20Source() override;

  std::uint64_t Next64() override;

 private:
  // Many blocks at a time, for vector instructions and a single check of the process id.
  static constexpr std::size_t kBlocks = 32;
  static constexpr std::size_t kBufferWords = kBlocks * 16;

  void Refill();

  std::array<std::uint32_t, 16> state_{};
  std::array<std::uint32_t, kBufferWords> buffer_{};
  std::size_t pos_{kBufferWords};
  std::uint64_t n_blocks_{0};
  std::uint64_t fork_generation_;
  std::int64_t process_id_;
};

/**
 * @brief Create a fresh key from the operating system's cryptographic generator.
 *
 * Blocks until that generator is seeded. Any failure is fatal. There is no weaker generator to fall
 * back to, because noise that can be guessed does not protect anything.
 */
[[nodiscard]] ChaChaKey SystemKey();
}  // namespace xgboost::dp
