/**
 * @brief Source of the random bits of every private release: ChaCha20 (RFC 8439), keyed from the
 *        operating system. XGBoost's own generators are seeded by a parameter and replayable, so
 *        noise drawn from them would be public.
 */
#pragma once

// Proof: docs/proofs/samplers.md

#include <array>    // for array
#include <cstddef>  // for size_t
#include <cstdint>  // for uint8_t, uint32_t, uint64_t

namespace xgboost::dp {
/** @brief A stream of independent, uniform 64-bit words. The samplers know nothing else. */
class RandomSource {
 public:
  RandomSource() = default;
  virtual ~RandomSource() = default;
  RandomSource(RandomSource const&) = delete;
  RandomSource& operator=(RandomSource const&) = delete;

  virtual std::uint64_t Next64() = 0;
};

/** @brief A 256-bit key. Whoever holds a copy wipes it with @ref SecureWipe. */
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
 * A new source has none before its first draw: if the number does not change, nothing was drawn
 * from new sources.
 */
[[nodiscard]] std::uint64_t NumRefills();

/** @brief The number of forks between the first process and this one. */
[[nodiscard]] std::uint64_t ForkGeneration();

/**
 * @brief Four blocks of ChaCha20 (RFC 8439, section 2.3), from the block counter of the state on.
 *
 * @param state Constants, key, block counter and nonce as 16 words.
 * @param out   64 words, in stream order.
 */
void FourBlocks(std::array<std::uint32_t, 16> const& state, std::uint32_t* out);

/**
 * @brief The ChaCha20 key stream of one key and one stream, read 8 bytes at a time, little-endian.
 *
 * The nonce is (stream_id, 0, 0) and the block counter starts at 0. Two sources with the same key
 * must have different stream ids, or they share their noise. A stream ends, with a fatal error,
 * after 2^32 blocks: a repeated block would be repeated noise.
 *
 * A copy in a forked process would release the same noise as its parent, and the difference of the
 * two releases would be exact; so drawing in any process but the creating one is a fatal error.
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
 * @brief A fresh key from the operating system's cryptographic generator.
 *
 * Blocks until that generator is seeded. Any failure is fatal: there is no weaker generator to fall
 * back to, as noise that can be guessed is no noise.
 */
[[nodiscard]] ChaChaKey SystemKey();
}  // namespace xgboost::dp
