/** @brief The exponential mechanism by rejection. */
#include "plugin_cpp/random/exponential.h"

#include <algorithm>  // for max_element, minmax_element

#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
std::size_t SelectExponential(RandomSource* rng, common::Span<std::int64_t const> utilities,
                              std::uint64_t eps_num, std::uint64_t den) {
  CHECK(!utilities.empty()) << "There is no candidate to choose from.";
  CHECK_LT(eps_num, kMaxEpsNum);
  CHECK(den >= 1 && den < kMaxSelectionDen) << "den must be in [1, 2^63).";
  auto const* u = utilities.data();
  auto const n = utilities.size();
  auto const [lowest, highest] = std::minmax_element(u, u + n);
  CHECK(*lowest > -kMaxUtility && *highest < kMaxUtility) << "|utility| must be below 2^62.";
  auto const best = *highest;

  while (true) {
    auto const c = UniformBelow(rng, n);
    auto const deficit = static_cast<std::uint64_t>(best - u[c]);
    auto const numerator = u128{deficit} * eps_num;
    auto const quotient = numerator / den;
    // The quotient may be huge: the coin stops at its first failure.
    if (BernoulliExp(rng, quotient, numerator - quotient * den, den)) {
      return c;
    }
  }
}

std::size_t SelectArgmax(common::Span<std::int64_t const> utilities) {
  CHECK(!utilities.empty()) << "There is no candidate to choose from.";
  auto const* u = utilities.data();
  // The first one of several.
  return static_cast<std::size_t>(std::max_element(u, u + utilities.size()) - u);
}
}  // namespace xgboost::dp
