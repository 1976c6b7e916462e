/**
 * Private quantile candidates, with or without public bounds.
 *
 * Each feature has a binary tree over order-preserving integer keys of 32-bit floats: a grid over
 * all floats, or over those between the bounds of the feature, that depends on no data and adapts
 * to any scale. All trees are walked from their roots, level by level; noisy counts are released
 * only below nodes whose estimated count is large. The number of levels is fixed before the walk,
 * so one row touches one node per level and feature: the squared L2 sensitivity of all counts is
 * levels * features (times the square of the counts' integer unit). One release serves a level of
 * all trees, so that workers exchange a few sums once a level.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <algorithm>   // for clamp
#include <cstddef>     // for size_t
#include <cstdint>     // for uint32_t, uint64_t, int32_t, int64_t
#include <cstring>     // for memcpy
#include <functional>  // for function
#include <optional>    // for optional
#include <vector>      // for vector

#include "plugin_cpp/plan/plan.h"        // for QuantilePlan
#include "plugin_cpp/release/release.h"  // for Released, LocalInt, NoisyInt
#include "xgboost/json.h"                // for Json

namespace xgboost::dp {
inline constexpr std::uint32_t kSignBit = 0x80000000U;
/** @brief Exclusive upper end of the key space. */
inline constexpr std::uint64_t kKeyEnd = std::uint64_t{1} << 32;

/** @brief Key of a value that is not missing; -0 and +0 have the same key. */
[[nodiscard]] inline std::uint32_t FloatKey(float value) {
  if (value == 0.0f) {
    value = 0.0f;
  }
  std::uint32_t bits;
  static_assert(sizeof(bits) == sizeof(value));
  std::memcpy(&bits, &value, sizeof(bits));
  return (bits & kSignBit) ? ~bits : (bits | kSignBit);
}

/** @brief Inverse of @ref FloatKey. May be infinite, NaN or subnormal at the ends. */
[[nodiscard]] inline float KeyToFloat(std::uint64_t key) {
  auto k = static_cast<std::uint32_t>(key);
  std::uint32_t bits = (k & kSignBit) ? (k & ~kSignBit) : ~k;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/**
 * @brief The finest cells of a tree: public runs of 2^shift keys, as few keys as the levels allow.
 *
 * Cells begin at multiples of 2^shift, so that one of them begins at zero.
 */
class KeyCells {
 public:
  /**
   * @param levels Of the tree.
   * @param bounds Public, ascending: the first and the last one count. Empty for all floats.
   */
  explicit KeyCells(std::int32_t levels, std::vector<float> const& bounds = {})
      : low_{bounds.empty() ? 0 : FloatKey(bounds.front())},
        high_{bounds.empty() ? kKeyEnd - 1 : FloatKey(bounds.back())} {
    while ((high_ >> shift_) - (low_ >> shift_) >= std::uint64_t{1} << (levels - 1)) {
      ++shift_;
    }
  }
  /** @brief The cell of a value; values beyond the bounds are in the first and the last one. */
  [[nodiscard]] std::size_t operator()(float value) const {
    auto key = std::clamp<std::uint64_t>(FloatKey(value), low_, high_);
    return (key >> shift_) - (low_ >> shift_);
  }
  /** @brief The first key of a cell within the bounds; their end for cells beyond them. */
  [[nodiscard]] std::uint64_t Begin(std::uint64_t cell) const {
    return std::clamp(((low_ >> shift_) + cell) << shift_, low_, high_ + 1);
  }
  /** @brief The keys of a cell. */
  [[nodiscard]] std::uint64_t Width() const { return std::uint64_t{1} << shift_; }
  /** @brief Whether a cut at this key parts values within the bounds. */
  [[nodiscard]] bool Parts(std::uint64_t key) const { return key > low_ && key <= high_; }

 private:
  std::uint64_t low_, high_;  // first and last key
  std::int32_t shift_{0};
};

/** @brief Exact count, times 2^shift, of this worker's part of node `cell` of `level` of a tree. */
using CellCount =
    std::function<std::int64_t(std::size_t tree, std::int32_t level, std::uint64_t cell)>;

/** @brief Such exact counts of this worker to noisy ones over all workers; in order. */
using CountRelease = std::function<Released<NoisyInt>(std::vector<LocalInt> const&)>;

/** @brief A leaf of a walk: an interval of keys and its estimated count, which is not negative. */
struct QuantileCell {
  std::uint64_t begin;
  std::uint64_t end;
  double count;
};

/** @brief What the noisy counts of a tree tell. All of it is public. */
struct QuantileTree {
  KeyCells cells;
  double target{1};                  // of the count of a bin
  double deviation{0};               // of the noise of a count
  std::vector<QuantileCell> leaves;  // ascending
};

/** @brief Walk the trees of some features together. */
[[nodiscard]] std::vector<QuantileTree> WalkQuantileTrees(QuantilePlan const& plan,
                                                          std::vector<KeyCells> const& cells,
                                                          CellCount const& count,
                                                          CountRelease const& release);

/** @brief Cuts from one tree, in ascending order: finite, and normal or zero. Reads no data. */
[[nodiscard]] std::vector<float> CutsOf(QuantileTree const& tree);

/** @brief A range of values that nearly all rows share, and that has few cuts. */
struct NarrowRange {
  float low;
  float high;
  float step;  // from one cut in it to the next, at least

  [[nodiscard]] Json ToJson() const;
};

/**
 * @brief The one or two finest cells of a tree in which nearly all values are, if its counts show
 *        that beyond their noise.
 *
 * None for cells with one whole number each, which is taken for the only value there, and for cells
 * of so few keys that cuts part them all. Reads no data.
 */
[[nodiscard]] std::optional<NarrowRange> FindNarrowRange(QuantileTree const& tree);

/** @brief Its `leaves` as [begin, end, count], its `cuts`, and its `narrow` range, or none. */
[[nodiscard]] Json ToJson(QuantileTree const& tree);
}  // namespace xgboost::dp
