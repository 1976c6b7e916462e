#include "plugin_cpp/mechanisms/candidates/quantile_tree.h"  // for KeyToFloat, FloatKey

#include <cmath>    // for sqrt, ceil, floor, ldexp, fpclassify
#include <limits>   // for numeric_limits
#include <numeric>  // for accumulate
#include <set>      // for set
#include <utility>  // for move

namespace xgboost::dp {
namespace {
/** @brief The walk down all trees. Of its numbers, only the exact counts are private. */
class Walk {
 public:
  Walk(QuantilePlan const& plan, std::vector<KeyCells> const& cells, CellCount const& count,
       CountRelease const& release)
      : plan_{plan}, count_{count}, release_{release}, unit_{std::ldexp(1.0, plan.shift)} {
    std::vector<Node> open;
    for (std::size_t k = 0; k < cells.size(); ++k) {
      trees_.push_back({cells[k], 1.0, 0.0, {}});
      open.push_back({k, 0, 0.0});
    }
    auto totals = this->NoisyCounts(0, open);
    for (auto& root : open) {
      root.estimate = std::max(totals[root.tree], 0.0);
      auto& tree = trees_[root.tree];
      tree.target = std::max(root.estimate / plan.max_bin, 1.0);
      tree.deviation = std::sqrt(variance_) / unit_;
    }
    for (std::int32_t level = 0; !open.empty(); ++level) {
      open = this->Descend(level, open);
    }
    for (auto& tree : trees_) {
      std::sort(tree.leaves.begin(), tree.leaves.end(),
                [](QuantileCell const& a, QuantileCell const& b) { return a.begin < b.begin; });
    }
  }

  [[nodiscard]] std::vector<QuantileTree> const& Trees() const { return trees_; }

 private:
  struct Node {
    std::size_t tree;
    std::uint64_t cell;
    double estimate;
  };

  std::vector<double> NoisyCounts(std::int32_t level, std::vector<Node> const& nodes) {
    std::vector<double> out;
    if (nodes.empty()) {
      return out;
    }
    std::vector<LocalInt> exact;
    for (auto const& node : nodes) {
      exact.emplace_back(count_(node.tree, level, node.cell));
    }
    auto released = release_(exact);
    variance_ = released.variance;
    for (auto noisy : released.values) {
      out.push_back(static_cast<double>(noisy.Value()) / unit_);
    }
    return out;
  }

  /** @brief Close the nodes with small counts. @return The children of the others. */
  std::vector<Node> Descend(std::int32_t level, std::vector<Node> const& nodes) {
    std::vector<Node> children;
    std::vector<double> parents;
    for (auto const& node : nodes) {
      auto& tree = trees_[node.tree];
      auto width = plan_.levels - 1 - level;
      if (width > 0 && node.estimate > std::max(tree.target, 2.0 * tree.deviation)) {
        parents.push_back(node.estimate);
        children.push_back({node.tree, 2 * node.cell, 0.0});
        children.push_back({node.tree, 2 * node.cell + 1, 0.0});
      } else {
        tree.leaves.push_back({tree.cells.Begin(node.cell << width),
                               tree.cells.Begin((node.cell + 1) << width), node.estimate});
      }
    }
    auto noisy = this->NoisyCounts(level + 1, children);
    for (std::size_t i = 0; i < parents.size(); ++i) {
      auto left = noisy[2 * i];
      auto right = noisy[2 * i + 1];
      // Post-processing: children sum to their parent, and no count is negative.
      auto excess = (parents[i] - left - right) / 2;
      left += excess;
      right += excess;
      if (left < 0) {
        left = 0;
        right = parents[i];
      } else if (right < 0) {
        right = 0;
        left = parents[i];
      }
      children[2 * i].estimate = left;
      children[2 * i + 1].estimate = right;
    }
    return children;
  }

  QuantilePlan const& plan_;
  CellCount const& count_;
  CountRelease const& release_;
  double unit_;
  double variance_{0};  // of the noise on a count times 2^shift
  std::vector<QuantileTree> trees_;
};

constexpr std::uint64_t kOctave = std::uint64_t{1} << 23;
constexpr std::uint64_t kMaxPieces = 16;  // of a heavy cell

/**
 * @brief Insert public grid values as cuts, for a cell that contains zero or spans several octaves.
 */
void InsertPublicGrid(QuantileCell const& cell, std::set<std::uint64_t>* cuts) {
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

bool SpansZero(QuantileCell const& cell) {
  std::uint64_t zero = FloatKey(0.0f);
  return cell.begin < zero && cell.end > zero;
}

/**
 * Place cuts by the noisy counts: one after every sufficient number of rows, and some around and
 * inside heavy cells, so that point masses get their own bins.
 */
std::set<std::uint64_t> PlaceCuts(QuantileTree const& tree) {
  auto target = tree.target;
  std::set<std::uint64_t> cuts;
  double passed = 0;
  for (auto const& cell : tree.leaves) {
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
      auto pieces =
          std::min(kMaxPieces, static_cast<std::uint64_t>(std::ceil(cell.count / target)));
      for (std::uint64_t i = 1; i < pieces; ++i) {
        cuts.insert(cell.begin + i * (cell.end - cell.begin) / pieces);
      }
    }
    cuts.insert(cell.end);
  }
  return cuts;
}
}  // namespace

std::vector<float> PlaceTreeCuts(QuantileTree const& tree) {
  std::vector<float> out;
  for (auto key : PlaceCuts(tree)) {
    if (!tree.cells.Parts(key)) {
      continue;
    }
    auto value = KeyToFloat(key);
    auto kind = std::fpclassify(value);
    if (kind == FP_SUBNORMAL && value > 0) {
      // The end of the cell that contains zero: some processors would treat this cut as zero.
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

std::optional<NarrowRange> FindNarrowRange(QuantileTree const& tree) {
  auto const& leaves = tree.leaves;
  auto width = tree.cells.Width();
  auto total =
      std::accumulate(leaves.cbegin(), leaves.cend(), 0.0,
                      [](double sum, QuantileCell const& leaf) { return sum + leaf.count; });
  if (width <= kMaxPieces || total <= 50.0 * tree.deviation) {
    return std::nullopt;
  }
  // On each level, noise moves some of the count to cells beside the path.
  auto few = 0.02 * total + 8.0 * tree.deviation;
  for (std::size_t n : {1, 2}) {
    for (std::size_t i = 0; i + n <= leaves.size(); ++i) {
      auto const &first = leaves[i], &last = leaves[i + n - 1];
      auto mass = first.count + (n == 1 ? 0.0 : last.count);
      if (last.end - first.begin > n * width || total - mass > few) {
        continue;
      }
      NarrowRange out{KeyToFloat(first.begin), KeyToFloat(last.end - 1),
                      KeyToFloat(first.begin + width / kMaxPieces)};
      out.step -= out.low;
      auto n_whole = std::floor(static_cast<double>(out.high)) - std::ceil(out.low) + 1;
      bool is_separated = n_whole >= 1 && n_whole <= static_cast<double>(n);
      return is_separated ? std::nullopt : std::optional{out};
    }
  }
  return std::nullopt;
}

Json NarrowRange::ToJson() const {
  Array out;
  for (auto value : {low, high, step}) {
    out.GetArray().emplace_back(Number{value});
  }
  return Json{std::move(out)};
}

Json ToJson(QuantileTree const& tree) {
  Json out{Object{}};
  Array leaves, cuts;
  for (auto const& leaf : tree.leaves) {
    // Keys have 32 bits; a JSON number would have 24.
    Array cell;
    cell.GetArray().emplace_back(Integer{static_cast<std::int64_t>(leaf.begin)});
    cell.GetArray().emplace_back(Integer{static_cast<std::int64_t>(leaf.end)});
    cell.GetArray().emplace_back(Number{static_cast<float>(leaf.count)});
    leaves.GetArray().emplace_back(std::move(cell));
  }
  for (auto cut : PlaceTreeCuts(tree)) {
    cuts.GetArray().emplace_back(Number{cut});
  }
  out["leaves"] = Json{std::move(leaves)};
  out["cuts"] = Json{std::move(cuts)};
  auto narrow = FindNarrowRange(tree);
  out["narrow"] = narrow ? narrow->ToJson() : Json{Array{}};
  return out;
}

std::vector<QuantileTree> WalkQuantileTrees(QuantilePlan const& plan,
                                            std::vector<KeyCells> const& cells,
                                            CellCount const& count, CountRelease const& release) {
  return Walk{plan, cells, count, release}.Trees();
}
}  // namespace xgboost::dp
