/**
 * SHA-256 (FIPS 180-4) and HMAC-SHA-256 (FIPS 198-1), for digests of plans and trees and for the
 * authentication of masked sums. Never for noise.
 *
 * Proof: docs/proofs/masked-sums.md
 */
#pragma once

#include <array>    // for array
#include <cstddef>  // for size_t
#include <cstdint>  // for uint8_t, uint32_t, uint64_t
#include <string>   // for string

namespace xgboost::dp {
using Digest = std::array<std::uint8_t, 32>;

/** @brief A hash of the appended bytes. The destructor wipes its state. */
class Sha256 {
 public:
  Sha256() = default;
  ~Sha256();
  Sha256(Sha256 const&) = delete;
  Sha256& operator=(Sha256 const&) = delete;

  Sha256& Append(void const* data, std::size_t n_bytes);
  Sha256& Append(std::string const& text) { return this->Append(text.data(), text.size()); }
  Sha256& Append(Digest const& digest) { return this->Append(digest.data(), digest.size()); }
  /** @brief Append 8 little-endian bytes. */
  Sha256& Append(std::uint64_t number);
  /** @brief The hash. Nothing can be appended afterwards. */
  [[nodiscard]] Digest Finish();

 private:
  static constexpr std::size_t kBlock = 64;

  void Compress(std::uint8_t const* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, kBlock> buffer_{};
  std::size_t n_buffered_{0};
  std::uint64_t n_bytes_{0};
};

/** @brief Bytes as hexadecimal digits. */
[[nodiscard]] std::string ToHex(std::uint8_t const* bytes, std::size_t n_bytes);

[[nodiscard]] Digest Hmac(Digest const& key, std::string const& text);
}  // namespace xgboost::dp
