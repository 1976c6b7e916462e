#include "plugin_cpp/random/samplers.h"

#include <cmath>  // for sqrt

#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
namespace {
// A run of successes with probability e^-1 each is longer than this with probability e^-16384. The
// bound only keeps the count within an integer type, and it does not depend on any data.
constexpr std::uint64_t kMaxGeometric = std::uint64_t{1} << 14;

int BitLength(std::uint64_t x) { return x == 0 ? 0 : 64 - __builtin_clzll(x); }

// Uniform on 0, ..., last. Takes the top bits of a word and rejects larger values.
std::uint64_t UniformUpTo(RandomSource* rng, std::uint64_t last) {
  if (last == 0) {
    return 0;
  }
  auto const shift = 64 - BitLength(last);
  while (true) {
    auto const r = rng->Next64() >> shift;
    if (r <= last) {
      return r;
    }
  }
}

u128 UniformUpTo128(RandomSource* rng, u128 last) {
  auto const last_high = static_cast<std::uint64_t>(last >> 64);
  if (last_high == 0) {
    return UniformUpTo(rng, static_cast<std::uint64_t>(last));
  }
  auto const shift = 64 - BitLength(last_high);
  while (true) {
    auto const high = rng->Next64();
    auto const low = rng->Next64();
    auto const r = (u128{high} << 64 | low) >> shift;
    if (r <= last) {
      return r;
    }
  }
}

// True with probability exp(-a / b), 0 <= a <= b.
bool BernoulliExpFrac(RandomSource* rng, u128 a, u128 b) {
  std::uint64_t k = 1;
  while (UniformUpTo128(rng, b - 1) < a && UniformUpTo(rng, k - 1) == 0) {
    ++k;
  }
  return k % 2 == 1;
}

// The same for a = b = 1: the first trial always succeeds and needs no word.
bool BernoulliExpOne(RandomSource* rng) {
  std::uint64_t k = 1;
  while (UniformUpTo(rng, k - 1) == 0) {
    ++k;
  }
  return k % 2 == 1;
}
}  // namespace

std::uint64_t IntegerSqrt(std::uint64_t x) {
  constexpr std::uint64_t kMaxRoot = 0xFFFFFFFF;
  // The floating point root is a first guess only.
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(x)));
  while (root > kMaxRoot || root * root > x) {
    --root;
  }
  while (root < kMaxRoot && (root + 1) * (root + 1) <= x) {
    ++root;
  }
  return root;
}

std::uint64_t IntegerSqrt128(u128 x) {
  // The floating point root is a first guess only; it is off by less than 2^11.
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(x)));
  if (x >> 96 != 0) {
    // A step of Newton's method from either side ends at most one above the root.
    root = static_cast<std::uint64_t>((root + x / root) / 2);
  }
  while (u128{root} * root > x) {
    --root;
  }
  while (u128{root + 1} * (root + 1) <= x) {
    ++root;
  }
  return root;
}

std::uint64_t UniformBelow(RandomSource* rng, std::uint64_t n) {
  CHECK(n >= 1 && n <= kMaxUniform) << "n must be in [1, 2^63].";
  return UniformUpTo(rng, n - 1);
}

u128 UniformBelow128(RandomSource* rng, u128 n) {
  CHECK(n >= 1 && n <= kMaxUniform128) << "n must be in [1, 2^126].";
  return UniformUpTo128(rng, n - 1);
}

bool BernoulliExp(RandomSource* rng, u128 q, u128 a, u128 b) {
  CHECK(b >= 1 && b <= kMaxUniform128 && a <= b) << "a / b must be in [0, 1], b in [1, 2^126].";
  for (u128 i = 0; i < q; ++i) {
    if (!BernoulliExpOne(rng)) {
      return false;
    }
  }
  return a == 0 || BernoulliExpFrac(rng, a, b);
}

std::int64_t DiscreteLaplace(RandomSource* rng, std::uint64_t scale) {
  CHECK(scale >= 1 && scale <= kMaxLaplaceScale) << "The scale must be in [1, 2^48].";
  while (true) {
    auto const remainder = UniformUpTo(rng, scale - 1);
    if (!BernoulliExpFrac(rng, remainder, scale)) {
      continue;
    }
    std::uint64_t quotient = 0;
    while (BernoulliExpOne(rng)) {
      ++quotient;
    }
    CHECK_LT(quotient, kMaxGeometric);
    auto const magnitude = static_cast<std::int64_t>(remainder + scale * quotient);
    bool const negative = UniformUpTo(rng, 1) == 1;
    if (negative && magnitude == 0) {
      continue;  // otherwise zero would be drawn twice as often as it should be
    }
    return negative ? -magnitude : magnitude;
  }
}

std::int64_t DiscreteGaussian(RandomSource* rng, std::uint64_t sigma2) {
  CHECK(sigma2 >= 1 && sigma2 <= kMaxGaussianSigma2) << "sigma2 must be in [1, 2^56].";
  auto const t = IntegerSqrt(sigma2) + 1;
  auto const denominator = u128{2} * sigma2 * t * t;
  while (true) {
    auto const y = DiscreteLaplace(rng, t);
    auto const scaled = u128{static_cast<std::uint64_t>(y < 0 ? -y : y)} * t;
    auto const distance = scaled > sigma2 ? scaled - sigma2 : sigma2 - scaled;
    // Fails with probability below e^-254 (|y| >= 254 t), whatever the data.
    CHECK(distance >> 64 == 0);
    auto const numerator = distance * distance;
    auto const quotient = numerator / denominator;
    if (BernoulliExp(rng, quotient, numerator - quotient * denominator, denominator)) {
      return y;
    }
  }
}
}  // namespace xgboost::dp
