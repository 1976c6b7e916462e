/**
 * Private quantile candidates, with or without public bounds.
 *
 * Each feature has a binary tree over order-preserving integer keys of 32-bit floats. The keys form
 * a grid over all floats, or between the bounds of the feature; it does not depend on data and
 * adapts to any scale. All trees are walked from their roots, level by level. Noisy counts are
 * released only below nodes with a large estimated count. The number of levels is fixed, so a row
 * is in one node per level and feature: the squared L2 sensitivity of all counts is levels *
 * features (times the square of the integer unit of counts). A level of all trees is one release,
 * so workers exchange few sums.
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
 * @brief The finest cells of a tree: public runs of 2^shift keys, as short as the number of levels
 *        allows.
 *
 * Cells begin at multiples of 2^shift, including zero.
 */
class KeyCells {
 public:
  /**
   * @param levels Number of levels of the tree.
   * @param bounds Public bounds, ascending; only the first and the last are used. Empty for all
   *               floats.
   */
  explicit KeyCells(std::int32_t levels, std::vector<float> const& bounds = {})
      : low_{bounds.empty() ? 0 : FloatKey(bounds.front())},
        high_{bounds.empty() ? kKeyEnd - 1 : FloatKey(bounds.back())} {
    while ((high_ >> shift_) - (low_ >> shift_) >= std::uint64_t{1} << (levels - 1)) {
      ++shift_;
    }
  }
  /** @brief The cell of a value; values beyond the bounds are in the first or last cell. */
  [[nodiscard]] std::size_t operator()(float value) const {
    auto key = std::clamp<std::uint64_t>(FloatKey(value), low_, high_);
    return (key >> shift_) - (low_ >> shift_);
  }
  /** @brief The first key of a cell, clamped to the bounds. */
  [[nodiscard]] std::uint64_t Begin(std::uint64_t cell) const {
    return std::clamp(((low_ >> shift_) + cell) << shift_, low_, high_ + 1);
  }
  /** @brief The number of keys of a cell. */
  [[nodiscard]] std::uint64_t Width() const { return std::uint64_t{1} << shift_; }
  /** @brief Whether a cut at this key separates values within the bounds. */
  [[nodiscard]] bool Parts(std::uint64_t key) const { return key > low_ && key <= high_; }

 private:
  std::uint64_t low_, high_;  // first and last key
  std::int32_t shift_{0};
};

/** @brief Exact local count, times 2^shift, of node `cell` on a level of a tree. */
using CellCount =
    std::function<std::int64_t(std::size_t tree, std::int32_t level, std::uint64_t cell)>;

/** @brief Releases local counts: noisy counts over all workers, in order. */
using CountRelease = std::function<Released<NoisyInt>(std::vector<LocalInt> const&)>;

/** @brief An interval of keys at which the walk of a tree ended, and its estimated count, >= 0. */
struct QuantileCell {
  std::uint64_t begin;
  std::uint64_t end;
  double count;
};

struct QuantileTree {
  KeyCells cells;
  double target{1};                  // count of a bin
  double deviation{0};               // standard deviation of a count
  std::vector<QuantileCell> leaves;  // ascending
};

[[nodiscard]] std::vector<QuantileTree> WalkQuantileTrees(QuantilePlan const& plan,
                                                          std::vector<KeyCells> const& cells,
                                                          CellCount const& count,
                                                          CountRelease const& release);

/** @brief Ascending cuts from a tree: finite, and normal or zero. Reads no data. */
[[nodiscard]] std::vector<float> PlaceTreeCuts(QuantileTree const& tree);

/** @brief A narrow range that contains nearly all values, but few of the cuts. */
struct NarrowRange {
  float low;
  float high;
  float step;  // smallest distance between cuts

  [[nodiscard]] Json ToJson() const;
};

/**
 * @brief Find the one or two finest cells that contain nearly all values, if their counts clearly
 *        exceed the noise. Reads no data.
 *
 * Cells that contain a single integer are ignored, because all values are probably equal to it. So
 * are cells with so few keys that cuts separate them all.
 */
[[nodiscard]] std::optional<NarrowRange> FindNarrowRange(QuantileTree const& tree);

/** @brief `leaves` as [begin, end, count], `cuts`, and the `narrow` range, or an empty list. */
[[nodiscard]] Json ToJson(QuantileTree const& tree);
}  // namespace xgboost::dp
