/**
 * Types of integer sums over rows: exact on this worker, exact over all workers, and noisy. There
 * are no implicit conversions between them, so code that leaks exact sums does not compile. Only
 * Release turns exact numbers into noisy ones.
 *
 * Proof: docs/proofs/distributed.md
 */
#pragma once

#include <cstdint>      // for int64_t
#include <type_traits>  // for is_same_v

namespace xgboost::dp {
template <typename Owner>
struct ExactInt {
  static constexpr bool kIsLocal = std::is_same_v<Owner, struct OfThisWorker>;
  std::int64_t value{0};

  ExactInt() = default;
  explicit ExactInt(std::int64_t v) : value{v} {}
};

template <typename Owner>
struct ExactSum {
  static constexpr bool kIsLocal = std::is_same_v<Owner, struct OfThisWorker>;
  std::int64_t grad{0};
  std::int64_t hess{0};

  ExactSum() = default;
  explicit ExactSum(std::int64_t g, std::int64_t h) : grad{g}, hess{h} {}

  ExactSum& operator+=(ExactSum const& that) {
    grad += that.grad;
    hess += that.hess;
    return *this;
  }
  friend ExactSum operator+(ExactSum a, ExactSum const& b) { return a += b; }
  friend ExactSum operator-(ExactSum a, ExactSum const& b) {
    a.grad -= b.grad;
    a.hess -= b.hess;
    return a;
  }
};

/** @brief Exact, over the rows of this worker. */
using LocalInt = ExactInt<struct OfThisWorker>;
using LocalSum = ExactSum<struct OfThisWorker>;
/** @brief Exact, over the rows of all workers; not available with masked sums. */
using GlobalInt = ExactInt<struct OfAllWorkers>;
using GlobalSum = ExactSum<struct OfAllWorkers>;

/** @brief A released number, the same on every worker. */
class NoisyInt {
 public:
  NoisyInt() = default;
  [[nodiscard]] std::int64_t Value() const { return value_; }

  friend NoisyInt operator+(NoisyInt a, NoisyInt b) { return NoisyInt{a.value_ + b.value_}; }
  friend NoisyInt operator-(NoisyInt a, NoisyInt b) { return NoisyInt{a.value_ - b.value_}; }

 private:
  friend class Release;
  explicit NoisyInt(std::int64_t value) : value_{value} {}

  std::int64_t value_{0};
};

/**
 * @brief Released sums over one or more cells with independent noise, and the number of these
 *        cells.
 */
struct NoisySum {
  NoisyInt grad, hess;
  std::int64_t cells{0};

  NoisySum& operator+=(NoisySum const& that) { return *this = *this + that; }
  friend NoisySum operator+(NoisySum const& a, NoisySum const& b) {
    return {a.grad + b.grad, a.hess + b.hess, a.cells + b.cells};
  }
  friend NoisySum operator-(NoisySum const& a, NoisySum const& b) {
    return {a.grad - b.grad, a.hess - b.hess, a.cells - b.cells};
  }
};
}  // namespace xgboost::dp
