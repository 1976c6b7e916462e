/**
 * Whole numbers made from rows, by who may see them: this worker's own, those over all workers, and
 * those with noise. Each is a type of its own and none turns into another by itself, so that a slip
 * does not compile. Only the release (release.h) makes noisy numbers of exact ones.
 *
 * Proof: docs/proofs/distributed.md
 */
#pragma once

#include <cstdint>      // for int64_t
#include <type_traits>  // for is_same_v

namespace xgboost::dp {
/** @brief An exact number, not private. */
template <typename Owner>
struct ExactInt {
  static constexpr bool kIsLocal = std::is_same_v<Owner, struct OfThisWorker>;
  std::int64_t value{0};

  ExactInt() = default;
  explicit ExactInt(std::int64_t v) : value{v} {}
};

/** @brief Exact sums of the integers of a set of rows, not private. */
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

/** @brief Over the rows of this worker alone. */
using LocalInt = ExactInt<struct OfThisWorker>;
using LocalSum = ExactSum<struct OfThisWorker>;
/** @brief Over the rows of all workers; there are none where sums are masked. */
using GlobalInt = ExactInt<struct OfAllWorkers>;
using GlobalSum = ExactSum<struct OfAllWorkers>;

/** @brief A released number over all workers, the same on every worker. */
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

/** @brief Released sums over cells, and how many cells there are: each has noise of its own. */
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
