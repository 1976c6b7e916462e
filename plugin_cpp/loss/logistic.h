/**
 * The logistic function, for loops with vector instructions.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstdint>  // for uint64_t
#include <cstring>  // for memcpy

namespace xgboost::dp {
/**
 * @brief 1 / (1 + exp(-margin)), with a relative error below 1e-9; NaN for NaN.
 *
 * Unlike std::exp it has no branches, so vector instructions apply, and its basic operations are
 * rounded in the same way on every platform.
 */
inline double Logistic(double margin) {
  constexpr double kLimit = 700.0;  // exp(700) is finite
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2 = 0.6931471805599453;
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: rounds a sum to an integer
  // The order of the comparisons keeps NaN.
  auto x = -margin < -kLimit ? -kLimit : -margin;
  x = x > kLimit ? kLimit : x;
  // exp(x) = 2^k exp(r), |r| <= ln(2) / 2. The lowest bits of the shifted number are k.
  auto shifted = x * kLog2E + kShift;
  auto r = x - (shifted - kShift) * kLn2;
  auto rest = 1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040 + r * (1.0 / 40320))));
  auto exp_r = 1.0 + r * (1.0 + r * (1.0 / 2 + r * (1.0 / 6 + r * rest)));
  std::uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 1023) << 52;  // the exponent of 2^k
  double power;
  std::memcpy(&power, &bits, sizeof(power));
  return 1.0 / (1.0 + power * exp_r);
}
}  // namespace xgboost::dp
