#include "plugin_cpp/releases/candidates/candidates.h"

#include <algorithm>  // for min, max, remove_if, upper_bound
#include <cstddef>    // for size_t
#include <iterator>   // for distance
#include <utility>    // for move

#include "plugin_cpp/grow/bins.h"                           // for MakeCuts
#include "plugin_cpp/plan/draws.h"                          // for CandidateEvent
#include "plugin_cpp/releases/candidates/cell_sums.h"       // for CellSums
#include "plugin_cpp/releases/candidates/float_key.h"       // for FloatKey
#include "plugin_cpp/releases/candidates/histogram_cuts.h"  // for EqualMassCuts, RefineEdges
#include "plugin_cpp/releases/candidates/quantile_tree.h"   // for QuantileCuts
#include "plugin_cpp/rows/raw_pages.h"                      // for ForEachPage

namespace xgboost::dp {
namespace {
// Cells that one pass over the rows may count: 512 features at 16 key bits, and 256 MiB if a row
// fell in every chunk; in practice it is a tenth.
constexpr std::size_t kCellsOfPass = std::size_t{1} << 25;

/** @brief Cuts between the public ends of a feature; all of them where it has none. */
std::vector<float> CutsWithin(std::vector<float> const& ends, std::vector<float> cuts) {
  if (!ends.empty()) {
    auto is_beyond = [&](float cut) { return cut <= ends.front() || cut > ends.back(); };
    cuts.erase(std::remove_if(cuts.begin(), cuts.end(), is_beyond), cuts.end());
  }
  return cuts;
}
}  // namespace

CandidateRelease::CandidateRelease(Context const* ctx, Plan const& plan, Release* release)
    : ctx_{ctx}, plan_{plan}, release_{release} {
  for (bst_feature_t f = 0; f < plan.features.size(); ++f) {
    if (plan.features[f].kind == FeaturePlan::Kind::kPrivate) {
      features_.push_back(f);
      edges_.push_back(plan.features[f].grid);
    }
  }
}

template <typename CellFn>
void CandidateRelease::AddRows(SparsePage const& page, CellFn&& cell, Weights const& weights,
                               CellSums* sums) const {
  auto one = std::int64_t{1} << plan_.candidates.shift;
  if (plan_.candidates.hessian) {
    sums->Add(page, cell, [&](auto i) { return weights.gpair[i].Sum().hess; });
  } else if (auto const* persons = weights.persons) {
    // Rounded downwards, so that all rows of a person count at most one.
    sums->Add(page, cell, [&](auto i) { return one / persons->RowsOf(i); });
  } else {
    sums->Add(page, cell, [&](auto) { return one; });
  }
}

std::vector<std::vector<float>> CandidateRelease::FromTrees(DMatrix* p_fmat,
                                                            Weights const& weights) {
  auto key_bits = plan_.candidates.levels - 1;
  auto n_cells = std::size_t{1} << key_bits;
  auto features_of_pass = kCellsOfPass / n_cells;
  // All levels of all trees are one release, of which each exchange is a part.
  std::size_t part = 0;
  auto noise = [&](std::vector<LocalInt> const& exact) {
    return release_->AddNoise(CandidateEvent(plan_), exact, part++);
  };
  std::vector<std::vector<float>> out;
  for (std::size_t begin = 0; begin < features_.size(); begin += features_of_pass) {
    auto end = std::min(features_.size(), begin + features_of_pass);
    std::vector<bst_feature_t> block(features_.begin() + begin, features_.begin() + end);
    auto n_block = block.size();
    CellSums sums{ctx_, std::move(block), std::vector<std::size_t>(n_block, n_cells)};
    ForEachPage(ctx_, p_fmat, [&](SparsePage const& page) {
      auto cell = [=](std::size_t, float value) { return FloatKey(value) >> (32 - key_bits); };
      this->AddRows(page, cell, weights, &sums);
    });
    auto count = [&](std::size_t k, std::int32_t level, std::uint64_t cell) {
      auto width = key_bits - level;
      return sums.Sum(k, cell << width, (cell + 1) << width);
    };
    auto cuts = QuantileCuts(plan_.candidates, n_block, count, noise);
    for (std::size_t k = 0; k < n_block; ++k) {
      out.push_back(CutsWithin(edges_[begin + k], cuts[k]));
    }
  }
  return out;
}

std::vector<std::vector<float>> CandidateRelease::FromHistograms(DMatrix* p_fmat,
                                                                 Weights const& weights) {
  auto const& plan = plan_.candidates;
  std::vector<std::size_t> n_cells;
  for (auto const& edges : edges_) {
    n_cells.push_back(edges.size() - 1);
  }
  CellSums sums{ctx_, features_, n_cells};
  ForEachPage(ctx_, p_fmat, [&](SparsePage const& page) {
    // Values beyond the public edges belong to the first and the last cell.
    auto cell = [&](std::size_t k, float value) {
      auto const& edges = edges_[k];
      auto it = std::upper_bound(edges.cbegin() + 1, edges.cend() - 1, value);
      return static_cast<std::size_t>(std::distance(edges.cbegin() + 1, it));
    };
    this->AddRows(page, cell, weights, &sums);
  });
  std::vector<LocalInt> exact;
  for (std::size_t k = 0; k < features_.size(); ++k) {
    for (std::size_t c = 0; c < n_cells[k]; ++c) {
      exact.emplace_back(sums.Sum(k, c, c + 1));
    }
  }
  auto all = release_->AddNoise(CandidateEvent(plan_), exact).values;
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

common::HistogramCuts CandidateRelease::MakeCuts(DMatrix* p_fmat, Persons const* persons,
                                                 std::vector<PackedPair> const& gpair) {
  std::vector<std::vector<float>> cuts;
  if (!features_.empty()) {
    cuts = plan_.candidates.kind == CandidateKind::kQuantileTree
               ? this->FromTrees(p_fmat, {gpair, persons})
               : this->FromHistograms(p_fmat, {gpair, persons});
  }
  return dp::MakeCuts(plan_, cuts);
}
}  // namespace xgboost::dp
