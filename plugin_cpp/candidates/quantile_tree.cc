#include "plugin_cpp/candidates/quantile_tree.h"

#include <algorithm>  // for max, min
#include <cmath>      // for sqrt, ceil, ldexp, fpclassify
#include <cstdint>    // for uint64_t, int32_t
#include <limits>     // for numeric_limits
#include <set>        // for set
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
  Walk(CandidatePlan const& plan, CellCount const& count, RandomSource* rng)
      : plan_{plan}, count_{count}, rng_{rng}, unit_{std::ldexp(1.0, plan.shift)} {
    auto total = std::max(this->NoisyCount(0, 0), 0.0);
    target_ = std::max(total / plan.max_bin, 1.0);
    auto deviation = rng ? std::sqrt(static_cast<double>(plan.sigma2)) / unit_ : 0.0;
    threshold_ = std::max(target_, 2.0 * deviation);
    this->Visit(0, 0, total);
  }

  [[nodiscard]] std::vector<Cell> const& Leaves() const { return leaves_; }
  [[nodiscard]] double Target() const { return target_; }

 private:
  double NoisyCount(std::int32_t level, std::uint64_t cell) {
    auto exact = count_(level, cell) << plan_.shift;
    return static_cast<double>(exact + (rng_ ? DiscreteGaussian(rng_, plan_.sigma2) : 0)) / unit_;
  }

  void Visit(std::int32_t level, std::uint64_t cell, double estimate) {
    if (level < plan_.levels - 1 && estimate > threshold_) {
      auto left = this->NoisyCount(level + 1, 2 * cell);
      auto right = this->NoisyCount(level + 1, 2 * cell + 1);
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
  RandomSource* rng_;
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
                                RandomSource* rng) {
  Walk walk{plan, count, rng};
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
