#include "plugin_cpp/mechanisms/candidates/candidates.h"

#include <algorithm>  // for max, max_element, min, upper_bound
#include <cmath>      // for abs
#include <iterator>   // for distance
#include <limits>     // for numeric_limits
#include <string>     // for to_string

#include "plugin_cpp/grow/bins.h"                            // for MakeCuts
#include "plugin_cpp/mechanisms/candidates/quantile_tree.h"  // for PlaceTreeCuts, FindNarrowRange, KeyCells

namespace xgboost::dp {
namespace {
/** @brief Inner edges with about 1 / max_bin of the total mass between neighbours. */
std::vector<float> EqualMassCuts(std::vector<float> const& edges, std::vector<NoisyInt> const& mass,
                                 std::int32_t max_bin) {
  std::int64_t total{0};
  for (auto m : mass) {
    total += std::max<std::int64_t>(m.Value(), 0);
  }
  std::int64_t passed{0};
  std::vector<float> cuts;
  for (std::size_t i = 0; i + 1 < mass.size(); ++i) {
    passed += std::max<std::int64_t>(mass[i].Value(), 0);
    if (passed > 0 && static_cast<double>(passed) * max_bin >= static_cast<double>(total)) {
      cuts.push_back(edges[i + 1]);
      passed = 0;
    }
  }
  return cuts;
}

/** @brief A bin, or several light neighbours merged, and the number of pieces to split it into. */
struct Merged {
  float begin, end;
  double mass;
  std::int32_t pieces;
};

std::vector<Merged> MergeLight(std::vector<float> const& edges, std::vector<NoisyInt> const& mass,
                               double target) {
  std::vector<Merged> out;
  float begin = edges.front();
  double passed{0};
  auto close = [&](float end) {
    out.push_back({begin, end, passed, 1});
    begin = end;
    passed = 0;
  };
  for (std::size_t i = 0; i < mass.size(); ++i) {
    auto m = static_cast<double>(mass[i].Value());
    if (m >= target && begin < edges[i]) {
      close(edges[i]);  // a heavy bin is not merged
    }
    passed += m;
    if (passed >= target || i + 1 == mass.size()) {
      close(edges[i + 1]);
    }
  }
  return out;
}

/**
 * @brief Edges of at most max_bin bins, after merging light neighbours and splitting heavy bins.
 */
std::vector<float> RefineEdges(std::vector<float> const& edges, std::vector<NoisyInt> const& mass,
                               std::int32_t max_bin) {
  double total{0};
  for (auto m : mass) {
    total += static_cast<double>(m.Value());
  }
  auto bins = MergeLight(edges, mass, std::max(total / max_bin, 1.0));
  // Split the heaviest pieces, one by one.
  auto n_left = max_bin - static_cast<std::int32_t>(bins.size());
  for (; n_left > 0; --n_left) {
    auto it = std::max_element(bins.begin(), bins.end(), [](Merged const& a, Merged const& b) {
      return a.mass / a.pieces < b.mass / b.pieces;
    });
    if (!(it->mass > 0)) {
      break;
    }
    ++it->pieces;
  }
  std::vector<float> out{bins.front().begin};
  for (auto const& bin : bins) {
    double width = static_cast<double>(bin.end) - bin.begin;
    for (std::int32_t k = 1; k <= bin.pieces; ++k) {
      auto edge =
          k == bin.pieces ? bin.end : static_cast<float>(bin.begin + width * k / bin.pieces);
      if (std::abs(edge) < std::numeric_limits<float>::min()) {
        edge = 0.0f;  // no subnormal cuts, and no -0
      }
      if (edge > out.back()) {
        out.push_back(edge);
      }
    }
  }
  return out;
}
}  // namespace

Candidates::Candidates(CandidateParts const& parts) : parts_{parts} {
  auto const& all = parts.plan.features;
  for (bst_feature_t f = 0; f < all.size(); ++f) {
    if (all[f].kind == FeaturePlan::Kind::kPrivate) {
      features_.push_back(f);
      edges_.push_back(all[f].grid);
    }
  }
}

std::vector<std::vector<float>> Candidates::ReleaseQuantileTrees(CandidateRows const& rows) {
  // Cells counted in one pass over the rows: 512 features at 16 key bits, and at most 256 MiB,
  // usually a tenth.
  constexpr std::size_t kCellsPerPass = std::size_t{1} << 25;
  auto const& plan = parts_.plan.candidates;
  auto key_bits = plan.levels - 1;
  auto n_cells = std::size_t{1} << key_bits;
  auto features_per_pass = kCellsPerPass / n_cells;
  // All levels of all trees are one release; an exchange is a part.
  std::size_t part = 0;
  auto noise = [&](std::vector<LocalInt> const& exact) {
    return parts_.release->AddNoise(CandidateEvent(parts_.plan), exact, part++);
  };
  std::vector<std::vector<float>> out;
  for (std::size_t begin = 0; begin < features_.size(); begin += features_per_pass) {
    auto end = std::min(features_.size(), begin + features_per_pass);
    std::vector<bst_feature_t> block(features_.begin() + begin, features_.begin() + end);
    std::vector<KeyCells> cells;
    for (auto f : block) {
      cells.emplace_back(plan.levels, parts_.plan.features[f].grid);
    }
    CellSums sums{parts_.ctx, std::move(block), std::vector<std::size_t>(cells.size(), n_cells)};
    AddRows(parts_, rows, [&](std::size_t k, float value) { return cells[k](value); }, &sums);
    auto count = [&](std::size_t k, std::int32_t level, std::uint64_t cell) {
      auto width = key_bits - level;
      return sums.Sum(k, cell << width, (cell + 1) << width);
    };
    for (auto const& tree : WalkQuantileTrees(plan, cells, count, noise)) {
      if (auto narrow = FindNarrowRange(tree)) {
        narrow_[std::to_string(features_[out.size()])] = narrow->ToJson();
      }
      out.push_back(PlaceTreeCuts(tree));
    }
  }
  return out;
}

/**
 * Cuts from noisy histograms on public edges: with equal mass (Sarus' DP-XGBoost; DP-EBM), or with
 * edges that adapt to the mass (iterative Hessian splitting; the DP-TR paper, algorithm 2).
 */
std::vector<std::vector<float>> Candidates::ReleaseHistograms(CandidateRows const& rows) {
  auto const& plan = parts_.plan.candidates;
  std::vector<std::size_t> n_cells;
  for (auto const& feature_edges : edges_) {
    n_cells.push_back(feature_edges.size() - 1);
  }
  CellSums sums{parts_.ctx, features_, n_cells};
  // Values beyond the edges belong to the first and the last cell.
  auto cell = [&](std::size_t k, float value) {
    auto it = std::upper_bound(edges_[k].cbegin() + 1, edges_[k].cend() - 1, value);
    return static_cast<std::size_t>(std::distance(edges_[k].cbegin() + 1, it));
  };
  AddRows(parts_, rows, cell, &sums);
  std::vector<LocalInt> exact;
  for (std::size_t k = 0; k < features_.size(); ++k) {
    for (std::size_t c = 0; c < n_cells[k]; ++c) {
      exact.emplace_back(sums.Sum(k, c, c + 1));
    }
  }
  auto all = parts_.release->AddNoise(CandidateEvent(parts_.plan), exact).values;
  std::vector<std::vector<float>> out;
  auto next = all.cbegin();
  for (std::size_t k = 0; k < features_.size(); ++k) {
    std::vector<NoisyInt> noisy(next, next + n_cells[k]);
    next += n_cells[k];
    if (plan.kind == CandidateKind::kHistogram) {
      out.push_back(EqualMassCuts(edges_[k], noisy, plan.max_bin));
    } else {
      edges_[k] = RefineEdges(edges_[k], noisy, plan.max_bin);
      out.emplace_back(edges_[k].cbegin() + 1, edges_[k].cend() - 1);
    }
  }
  return out;
}

common::HistogramCuts Candidates::MakeCuts(CandidateRows const& rows) {
  std::vector<std::vector<float>> cuts;
  if (!features_.empty()) {
    cuts = parts_.plan.candidates.kind == CandidateKind::kQuantileTree
               ? this->ReleaseQuantileTrees(rows)
               : this->ReleaseHistograms(rows);
  }
  return dp::MakeCuts(parts_.plan, cuts);
}
}  // namespace xgboost::dp
