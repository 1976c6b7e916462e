/**
 * Candidates from noisy histograms on public edges: with equal mass (Sarus' DP-XGBoost; DP-EBM), or
 * with edges that adapt to the mass (iterative Hessian splitting; the DP-TR paper, algorithm 2).
 * Both are post-processing of the released sums.
 *
 * Proof: docs/proofs/candidates.md
 */
#include <algorithm>  // for max, max_element, upper_bound
#include <cmath>      // for abs
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t
#include <iterator>   // for distance
#include <limits>     // for numeric_limits
#include <vector>     // for vector

#include "plugin_cpp/mechanisms/candidates/candidates.h"  // for CellSums, ReleaseHistogramCuts
#include "plugin_cpp/plan/plan.h"                         // for CandidateEvent

namespace xgboost::dp {
namespace {
/** @brief Inner edges with about 1 / max_bin of the mass between neighbours. */
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

/** @brief A bin, or merged light neighbours, and its number of pieces. */
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

/** @brief Edges of at most max_bin bins: light neighbours are merged, heavy bins are split. */
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

std::vector<std::vector<float>> ReleaseHistogramCuts(CandidateParts const& parts,
                                                     CandidateRows const& rows,
                                                     std::vector<bst_feature_t> const& features,
                                                     std::vector<std::vector<float>>* p_edges) {
  auto& edges = *p_edges;
  auto const& plan = parts.plan.candidates;
  std::vector<std::size_t> n_cells;
  for (auto const& of_feature : edges) {
    n_cells.push_back(of_feature.size() - 1);
  }
  CellSums sums{parts.ctx, features, n_cells};
  // Values beyond the public edges belong to the first and the last cell.
  auto cell = [&](std::size_t k, float value) {
    auto it = std::upper_bound(edges[k].cbegin() + 1, edges[k].cend() - 1, value);
    return static_cast<std::size_t>(std::distance(edges[k].cbegin() + 1, it));
  };
  AddRows(parts, rows, cell, &sums);
  std::vector<LocalInt> exact;
  for (std::size_t k = 0; k < features.size(); ++k) {
    for (std::size_t c = 0; c < n_cells[k]; ++c) {
      exact.emplace_back(sums.Sum(k, c, c + 1));
    }
  }
  auto all = parts.release->AddNoise(CandidateEvent(parts.plan), exact).values;
  std::vector<std::vector<float>> out;
  auto next = all.cbegin();
  for (std::size_t k = 0; k < features.size(); ++k) {
    std::vector<NoisyInt> noisy(next, next + n_cells[k]);
    next += n_cells[k];
    if (plan.kind == CandidateKind::kHistogram) {
      out.push_back(EqualMassCuts(edges[k], noisy, plan.max_bin));
    } else {
      edges[k] = RefineEdges(edges[k], noisy, plan.max_bin);
      out.emplace_back(edges[k].cbegin() + 1, edges[k].cend() - 1);
    }
  }
  return out;
}
}  // namespace xgboost::dp
