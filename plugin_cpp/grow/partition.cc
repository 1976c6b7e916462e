#include "plugin_cpp/grow/partition.h"

#include "plugin_cpp/simd.h"  // for XGB_DP_SIMD

namespace xgboost::dp {
namespace {
/** @brief Set the subset name of every category that has reached this split. */
XGB_DP_SIMD void NameSubsets(std::uint64_t split, std::uint64_t subset, std::size_t n,
                             std::uint64_t const* at, std::uint64_t* names) {
  for (std::size_t b = 0; b < n; ++b) {
    names[b] = at[b] == split ? subset : names[b];
  }
}

/** @brief Move each category to a child of its split. */
XGB_DP_SIMD void Descend(std::uint64_t const* names, std::size_t n, std::uint64_t* at) {
  for (std::size_t b = 0; b < n; ++b) {
    auto right = Scatter(names[b] + kGoldenStep * (static_cast<std::uint64_t>(b) + 1)) & 1;
    at[b] = 2 * at[b] + 1 + (names[b] == 0 ? 0 : right);
  }
}
}  // namespace

void CategoryLeaves::Find(Partition partition, std::size_t n_categories) {
  auto const* splits = partition.data();
  at_.assign(n_categories, 0);
  names_.resize(n_categories);
  for (std::size_t begin = 0; begin < partition.size(); begin = 2 * begin + 1) {
    for (auto s = begin; s <= 2 * begin; ++s) {
      NameSubsets(s, splits[s].subset, n_categories, at_.data(), names_.data());
    }
    Descend(names_.data(), n_categories, at_.data());
    for (auto s = begin; s <= 2 * begin; ++s) {
      auto& at = at_[splits[s].bin];
      at = (at - 1) / 2 == s ? 2 * s + 2 : at;
    }
  }
}
}  // namespace xgboost::dp
