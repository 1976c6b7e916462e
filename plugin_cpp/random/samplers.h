/**
 * @brief Exact samplers in integer arithmetic (Canonne, Kamath and Steinke, "The Discrete Gaussian
 *        for Differential Privacy", 2020).
 *
 * No floating-point number is involved: the rounding of a floating-point sampler leaves gaps in the
 * support of its noise, and these can reveal the value that the noise should hide. The
 * probabilities below are exact given independent uniform words. The accounting needs the exact
 * distribution, so every bound is checked, and a violation is fatal.
 *
 * The number of words drawn depends on the noise, so the running time is not private.
 */
#pragma once

// Proof: docs/proofs/samplers.md

#include <cstdint>  // for int64_t, uint64_t

#include "plugin_cpp/random/chacha20.h"  // for RandomSource

namespace xgboost::dp {
// `__extension__` suppresses a -Wpedantic warning about the type.
__extension__ using u128 = unsigned __int128;  // NOLINT(runtime/int)

/** @brief Largest n of @ref UniformBelow. */
inline constexpr std::uint64_t kMaxUniform = std::uint64_t{1} << 63;
/** @brief Largest n of @ref UniformBelow128. */
inline constexpr u128 kMaxUniform128 = u128{1} << 126;
/** @brief Largest scale of @ref DiscreteLaplace. */
inline constexpr std::uint64_t kMaxLaplaceScale = std::uint64_t{1} << 48;
/** @brief Largest variance parameter of @ref DiscreteGaussian. */
inline constexpr std::uint64_t kMaxGaussianSigma2 = std::uint64_t{1} << 56;

/** @brief floor(sqrt(x)), exact for every 64-bit x. */
[[nodiscard]] std::uint64_t IntegerSqrt(std::uint64_t x);
/** @brief floor(sqrt(x)), exact for x below 2^126. */
[[nodiscard]] std::uint64_t IntegerSqrt128(u128 x);

/** @brief Uniform on 0, ..., n - 1 for 1 <= n <= 2^63. */
[[nodiscard]] std::uint64_t UniformBelow(RandomSource* rng, std::uint64_t n);

/** @brief Uniform on 0, ..., n - 1 for 1 <= n <= 2^126. */
[[nodiscard]] u128 UniformBelow128(RandomSource* rng, u128 n);

/** @brief True with probability exp(-(q + a / b)), for 0 <= a <= b and 1 <= b <= 2^126. */
[[nodiscard]] bool BernoulliExp(RandomSource* rng, u128 q, u128 a, u128 b);

/** @brief An integer x with probability proportional to exp(-|x| / scale), 1 <= scale <= 2^48. */
[[nodiscard]] std::int64_t DiscreteLaplace(RandomSource* rng, std::uint64_t scale);

/**
 * @brief An integer x with probability proportional to exp(-x^2 / (2 sigma2)).
 *
 * Added to an integer of sensitivity s, it costs no more than the continuous Gaussian mechanism in
 * concentrated differential privacy: s^2 / (2 sigma2).
 *
 * @param sigma2 Upper bound on the variance, practically equal to it; 1 <= sigma2 <= 2^56.
 */
[[nodiscard]] std::int64_t DiscreteGaussian(RandomSource* rng, std::uint64_t sigma2);
}  // namespace xgboost::dp
