/**
 * What compilers and processors have for fast loops: instructions that are wider than those that
 * all of a kind have, early transfers to the caches, and memory in large pages.
 *
 * Results are the same: every operation is rounded on its own (-ffp-contract=off), in an order that
 * the width does not change.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <cstddef>  // for size_t, __GLIBC__: other C libraries choose no functions when they load
#include <cstdint>  // for uintptr_t
#include <vector>   // for vector

#if defined(__linux__)
#include <sys/mman.h>  // for madvise
#endif                 // defined(__linux__)

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define XGB_DP_SIMD __attribute__((target_clones("avx2", "default")))
#else
#define XGB_DP_SIMD
#endif  // defined(__x86_64__)

namespace xgboost::dp {
/** @brief What one transfer to the caches brings. */
inline constexpr std::size_t kCacheLineBytes = 64;

/** @brief Start the transfer of an address to the caches, where the compiler has a way. */
inline void Prefetch([[maybe_unused]] void const* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif  // defined(__GNUC__)
}

/**
 * @brief Ask for large pages of memory that is not used yet: of what is read in no order, beyond
 *        some megabytes most reads from small pages first look for the page.
 */
inline void AskForLargePages([[maybe_unused]] void* address, [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kLarge = std::uintptr_t{1} << 21;
  auto first = reinterpret_cast<std::uintptr_t>(address);
  auto begin = (first + kLarge - 1) / kLarge * kLarge, end = (first + n_bytes) / kLarge * kLarge;
  if (begin < end) {
    // A wish: where it is refused, small pages do.
    static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
  }
#endif  // defined(__linux__) && defined(MADV_HUGEPAGE)
}

/** @brief Resize, and ask for large pages if the memory is new. */
template <typename T>
void ResizeInLargePages(std::size_t n, std::vector<T>* out) {
  if (n > out->capacity()) {
    out->reserve(n);
    AskForLargePages(out->data(), n * sizeof(T));
  }
  out->resize(n);
}
}  // namespace xgboost::dp
