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
#define XGB_DP_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define XGB_DP_WIDE
#endif  // defined(__x86_64__)

namespace xgboost::dp {
/** @brief What one transfer to the caches brings. */
inline constexpr std::size_t kBytesOfLine = 64;

/** @brief Start the transfer of an address to the caches, where the compiler has a way. */
inline void Prefetch([[maybe_unused]] void const* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif  // defined(__GNUC__)
}

/**
 * @brief Resize, and ask for large pages before the memory is used if it is new: of what is read in
 *        no order, beyond some megabytes most reads from small pages first look for the page.
 */
template <typename T>
void ResizeInLargePages(std::size_t n, std::vector<T>* out) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (n > out->capacity()) {
    out->reserve(n);
    constexpr std::uintptr_t kLarge = std::uintptr_t{1} << 21;
    auto begin = (reinterpret_cast<std::uintptr_t>(out->data()) + kLarge - 1) / kLarge * kLarge;
    auto end = (reinterpret_cast<std::uintptr_t>(out->data() + n)) / kLarge * kLarge;
    if (begin < end) {
      // A wish: where it is refused, small pages do.
      static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
    }
  }
#endif  // defined(__linux__) && defined(MADV_HUGEPAGE)
  out->resize(n);
}
}  // namespace xgboost::dp
