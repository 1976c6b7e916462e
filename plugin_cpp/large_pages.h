/**
 * Memory in large pages, where the system has them, for what is read in no order: beyond some
 * megabytes most reads from small pages first look for the page.
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for uintptr_t
#include <vector>   // for vector

#if defined(__linux__)
#include <sys/mman.h>  // for madvise
#endif                 // defined(__linux__)

namespace xgboost::dp {
/** @brief Resize, and ask for large pages before the memory is used if it is new. */
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
