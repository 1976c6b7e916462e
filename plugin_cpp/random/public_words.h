/**
 * Public random words, for choices that read no data: SplitMix64 (Steele, Lea and Flood 2014),
 * seeded by a public name. Each word can be computed separately, so unused choices need not be
 * made.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstdint>           // for uint64_t
#include <initializer_list>  // for initializer_list

#include "plugin_cpp/random/chacha20.h"  // for RandomSource

namespace xgboost::dp {
inline constexpr std::uint64_t kGoldenStep = 0x9e3779b97f4a7c15ULL;

/** @brief The finaliser of SplitMix64. Its results are public. */
[[nodiscard]] inline std::uint64_t Scatter(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

class PublicWords final : public RandomSource {
 public:
  /** @param path Distinguishes the sources with the same name. */
  PublicWords(std::uint64_t name, std::initializer_list<std::uint64_t> path) : state_{name} {
    for (auto step : path) {
      state_ = Scatter(state_ + kGoldenStep * (step + 1));
    }
  }
  std::uint64_t Next64() override { return Scatter(state_ += kGoldenStep); }

 private:
  std::uint64_t state_;
};
}  // namespace xgboost::dp
