/**
 * Order-preserving integer keys of 32-bit floats. Their leading bits are a grid over all floats
 * that depends on no data and adapts to any scale: public bounds of the features are not needed.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <cstdint>  // for uint32_t, uint64_t
#include <cstring>  // for memcpy

namespace xgboost::dp {
inline constexpr std::uint32_t kSignBit = 0x80000000U;
/** @brief Exclusive upper end of the key space. */
inline constexpr std::uint64_t kKeyEnd = std::uint64_t{1} << 32;

/** @brief Key of a value that is not missing; -0 and +0 have the same key. */
[[nodiscard]] inline std::uint32_t FloatKey(float value) {
  if (value == 0.0f) {
    value = 0.0f;
  }
  std::uint32_t bits;
  static_assert(sizeof(bits) == sizeof(value));
  std::memcpy(&bits, &value, sizeof(bits));
  return (bits & kSignBit) ? ~bits : (bits | kSignBit);
}

/** @brief Inverse of @ref FloatKey. May be infinite, NaN or subnormal at the ends. */
[[nodiscard]] inline float KeyToFloat(std::uint64_t key) {
  auto k = static_cast<std::uint32_t>(key);
  std::uint32_t bits = (k & kSignBit) ? (k & ~kSignBit) : ~k;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
}  // namespace xgboost::dp
