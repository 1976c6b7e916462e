#include "plugin_cpp/candidates/quantile_tree.h"

#include <algorithm>  // for max, min
#include <cmath>      // for sqrt, ceil, ldexp, fpclassify
#include <cstdint>    // for uint64_t, int32_t, int64_t
#include <limits>     // for numeric_limits
#include <set>        // for set
#include <utility>    // for move
#include <vector>     // for vector

#include "plugin_cpp/candidates/float_key.h"  // for KeyToFloat, FloatKey, kKeyEnd

namespace xgboost::dp {
namespace {
/** @brief A leaf of the walk: an interval of keys and its estimated count. */
struct Cell {
  std::uint64_t begin;
  std::uint64_t end;
  double count;
};

/** @brief Everything in this class up to the noisy counts is the private part. */
class Walk {
 public:
  Walk(CandidatePlan const& plan, CellCount const& count, CountRelease const& release,
       double variance)
      : plan_{plan}, count_{count}, release_{release}, unit_{std::ldexp(1.0, plan.shift)} {
    auto total = std::max(this->NoisyCounts(0, {0}).front(), 0.0);
    target_ = std::max(total / plan.max_bin, 1.0);
    threshold_ = std::max(target_, 2.0 * std::sqrt(variance) / unit_);
    this->Visit(0, 0, total);
  }

  [[nodiscard]] std::vector<Cell> const& Leaves() const { return leaves_; }
  [[nodiscard]] double Target() const { return target_; }

 private:
  std::vector<double> NoisyCounts(std::int32_t level, std::vector<std::uint64_t> const& cells) {
    std::vector<std::int64_t> exact;
    for (auto cell : cells) {
      exact.push_back(count_(level, cell) << plan_.shift);
    }
    std::vector<double> out;
    for (auto noisy : release_(std::move(exact))) {
      out.push_back(static_cast<double>(noisy) / unit_);
    }
    return out;
  }

  void Visit(std::int32_t level, std::uint64_t cell, double estimate) {
    if (level < plan_.levels - 1 && estimate > threshold_) {
      auto children = this->NoisyCounts(level + 1, {2 * cell, 2 * cell + 1});
      auto left = children[0];
      auto right = children[1];
      // Free post-processing: children consistent with their parent, no negative counts.
      auto excess = (estimate - left - right) / 2;
      left += excess;
      right += excess;
      if (left < 0) {
        left = 0;
        right = estimate;
      } else if (right < 0) {
        right = 0;
        left = estimate;
      }
      this->Visit(level + 1, 2 * cell, left);
      this->Visit(level + 1, 2 * cell + 1, right);
      return;
    }
    auto width = 32 - level;
    leaves_.push_back({cell << width, (cell + 1) << width, estimate});
  }

  CandidatePlan const& plan_;
  CellCount const& count_;
  CountRelease const& release_;
  double unit_;
  double target_{1};
  double threshold_{1};
  std::vector<Cell> leaves_;
};

constexpr std::uint64_t kOctave = std::uint64_t{1} << 23;

/** @brief Public grid values inside a cell that spans zero or several octaves. */
void InsertPublicGrid(Cell const& cell, std::set<std::uint64_t>* cuts) {
  auto insert = [&](double value) {
    std::uint64_t key = FloatKey(static_cast<float>(value));
    if (key > cell.begin && key < cell.end) {
      cuts->insert(key);
    }
  };
  insert(0.0);
  for (std::int32_t k = -6; k <= 17; ++k) {
    for (double mantissa : {1.0, 1.5}) {
      insert(std::ldexp(mantissa, k));
      insert(-std::ldexp(mantissa, k));
    }
  }
}

bool SpansZero(Cell const& cell) {
  std::uint64_t zero = FloatKey(0.0f);
  return cell.begin < zero && cell.end > zero;
}

/**
 * Cuts from the noisy counts. Reads no data: a cut where enough rows have passed, cuts around and,
 * without further budget, inside heavy cells, so that point masses stand alone.
 */
std::set<std::uint64_t> PlaceCuts(std::vector<Cell> const& leaves, double target) {
  std::set<std::uint64_t> cuts;
  double passed = 0;
  for (auto const& cell : leaves) {
    bool heavy = cell.count >= 1.5 * target;
    if (passed >= target || heavy) {
      cuts.insert(cell.begin);
      passed = 0;
    }
    if (!heavy) {
      passed += cell.count;
      continue;
    }
    if (SpansZero(cell) || cell.end - cell.begin > kOctave) {
      InsertPublicGrid(cell, &cuts);
    } else {
      auto pieces = static_cast<std::uint64_t>(std::min(16.0, std::ceil(cell.count / target)));
      for (std::uint64_t i = 1; i < pieces; ++i) {
        cuts.insert(cell.begin + i * (cell.end - cell.begin) / pieces);
      }
    }
    cuts.insert(cell.end);
  }
  return cuts;
}
}  // namespace

std::vector<float> QuantileCuts(CandidatePlan const& plan, CellCount const& count,
                                CountRelease const& release, double variance) {
  Walk walk{plan, count, release, variance};
  std::vector<float> out;
  for (auto key : PlaceCuts(walk.Leaves(), walk.Target())) {
    if (key == 0 || key >= kKeyEnd) {
      continue;
    }
    auto value = KeyToFloat(key);
    auto kind = std::fpclassify(value);
    if (kind == FP_SUBNORMAL && value > 0) {
      // The end of the cell of zero: a cut there would be treated as zero by some processors.
      value = std::numeric_limits<float>::min();
      kind = FP_NORMAL;
    }
    bool repeated = !out.empty() && out.back() == value;
    if ((kind == FP_NORMAL || kind == FP_ZERO) && !repeated &&
        value < std::numeric_limits<float>::max()) {
      out.push_back(value);
    }
  }
  return out;
}
}  // namespace xgboost::dp
