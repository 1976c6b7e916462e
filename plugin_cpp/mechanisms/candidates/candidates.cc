#include "plugin_cpp/mechanisms/candidates/candidates.h"

#include <string>  // for to_string

#include "plugin_cpp/grow/bins.h"                            // for MakeCuts
#include "plugin_cpp/mechanisms/candidates/quantile_tree.h"  // for PlaceTreeCuts, FindNarrowRange, KeyCells

namespace xgboost::dp {
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
  // Cells counted in one pass over the rows: 512 features at 16 key bits, and at most 256 MiB, in
  // practice a tenth of it.
  constexpr std::size_t kCellsPerPass = std::size_t{1} << 25;
  auto const& plan = parts_.plan.candidates;
  auto key_bits = plan.levels - 1;
  auto n_cells = std::size_t{1} << key_bits;
  auto features_per_pass = kCellsPerPass / n_cells;
  // All levels of all trees are one release; each exchange is a part of it.
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

common::HistogramCuts Candidates::MakeCuts(CandidateRows const& rows) {
  std::vector<std::vector<float>> cuts;
  if (!features_.empty()) {
    cuts = parts_.plan.candidates.kind == CandidateKind::kQuantileTree
               ? this->ReleaseQuantileTrees(rows)
               : ReleaseHistogramCuts(parts_, rows, features_, &edges_);
  }
  return dp::MakeCuts(parts_.plan, cuts);
}
}  // namespace xgboost::dp
