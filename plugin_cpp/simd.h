/**
 * Compiler and operating system support for fast loops: versions of functions for wider vector
 * instructions, prefetching, and memory in large pages.
 *
 * It does not change results: every operation is rounded separately (-ffp-contract=off), in the
 * same order for every vector width.
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
// For loops that compute more than they read.
#define XGB_DP_WIDE_SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define XGB_DP_SIMD
#define XGB_DP_WIDE_SIMD
#endif  // defined(__x86_64__)

namespace xgboost::dp {
inline constexpr std::size_t kCacheLineBytes = 64;

inline void Prefetch([[maybe_unused]] void const* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif  // defined(__GNUC__)
}

/**
 * @brief Request large pages for memory that is not in use yet. They avoid TLB misses when more
 *        than a few megabytes are read at random.
 */
inline void AskForLargePages([[maybe_unused]] void* address, [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kLarge = std::uintptr_t{1} << 21;
  auto first = reinterpret_cast<std::uintptr_t>(address);
  auto begin = (first + kLarge - 1) / kLarge * kLarge, end = (first + n_bytes) / kLarge * kLarge;
  if (begin < end) {
    // A hint only: small pages work too.
    static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
  }
#endif  // defined(__linux__) && defined(MADV_HUGEPAGE)
}

template <typename T>
void ResizeInLargePages(std::size_t n, std::vector<T>* out) {
  if (n > out->capacity()) {
    out->reserve(n);
    AskForLargePages(out->data(), n * sizeof(T));
  }
  out->resize(n);
}
}  // namespace xgboost::dp
