/**
 * The exponential mechanism, exact, over integer utilities.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint64_t

#include "plugin_cpp/random/samplers.h"  // for RandomSource
#include "xgboost/span.h"                // for Span

namespace xgboost::dp {
/** @brief Exclusive upper limit on the absolute value of a utility. */
inline constexpr std::int64_t kMaxUtility = std::int64_t{1} << 62;
/** @brief Exclusive upper limit on eps_num of @ref SelectExponential. */
inline constexpr std::uint64_t kMaxEpsNum = std::uint64_t{1} << 47;
/** @brief Exclusive upper limit on den of @ref SelectExponential. */
inline constexpr std::uint64_t kMaxSelectionDen = std::uint64_t{1} << 63;

/**
 * @brief Choose index c with probability proportional to exp(utilities[c] * eps_num / den).
 *
 * If adding a row changes every utility by an amount in an interval of length r, the choice has
 * bounded range r * eps_num / den. The interval may depend on the row and on the data. With den = r
 * * 2^40, the range is eps0 = eps_num / 2^40. Only the index may be released: neither the utilities
 * nor their maximum is protected.
 *
 * The expected number of iterations is the number of candidates divided by the sum of their
 * weights, where the best candidate has weight 1. It is at most the number of candidates.
 *
 * @param utilities Utilities of the candidates: at least one, each below 2^62 in absolute value.
 * @param eps_num   Numerator of the factor of utilities, below 2^47. Zero means a uniform choice.
 * @param den       Its denominator, 1 <= den < 2^63.
 */
[[nodiscard]] std::size_t SelectExponential(RandomSource* rng,
                                            common::Span<std::int64_t const> utilities,
                                            std::uint64_t eps_num, std::uint64_t den);

/**
 * @brief Exact utilities of candidates in groups of equal size, computed on demand, with a known
 *        upper bound for each group.
 */
class GroupedUtilities {
 public:
  virtual ~GroupedUtilities() = default;
  [[nodiscard]] virtual std::size_t PerGroup() const = 0;
  /** @brief Upper bound on the utilities of each group. There is at least one group. */
  [[nodiscard]] virtual common::Span<std::int64_t const> Bounds() const = 0;
  [[nodiscard]] virtual std::int64_t At(std::size_t group, std::size_t i) = 0;
  /** @brief The largest utility of each of these groups. */
  virtual void Largest(common::Span<std::size_t const> groups, std::int64_t* out) = 0;
};

/**
 * @brief Select from the candidates of all groups by the exponential mechanism. Few utilities are
 *        computed if the bounds are close to each other on the scale of the mechanism.
 *
 * @return The index group * PerGroup() + i.
 */
[[nodiscard]] std::size_t SelectExponential(RandomSource* rng, GroupedUtilities* utilities,
                                            std::uint64_t eps_num, std::uint64_t den);

/** @brief The first index of the largest utility. Not private: for tests. */
[[nodiscard]] std::size_t SelectArgmax(common::Span<std::int64_t const> utilities);
[[nodiscard]] std::size_t SelectArgmax(GroupedUtilities* utilities);
}  // namespace xgboost::dp
