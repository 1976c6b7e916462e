#include "plugin_cpp/releases/candidates/candidates.h"

#include <algorithm>  // for min, remove_if
#include <cstddef>    // for size_t
#include <utility>    // for move

#include "plugin_cpp/grow/bins.h"                          // for MakeCuts
#include "plugin_cpp/plan/plan.h"                          // for CandidateEvent
#include "plugin_cpp/releases/candidates/quantile_tree.h"  // for FloatKey, QuantileCuts

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

class QuantileTrees : public Candidates {
 public:
  using Candidates::Candidates;

 protected:
  [[nodiscard]] std::vector<std::vector<float>> ReleaseCuts(CandidateRows const& rows) override {
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
      this->AddRows(
          rows, [=](std::size_t, float value) { return FloatKey(value) >> (32 - key_bits); },
          &sums);
      auto count = [&](std::size_t k, std::int32_t level, std::uint64_t cell) {
        auto width = key_bits - level;
        return sums.Sum(k, cell << width, (cell + 1) << width);
      };
      auto cuts = QuantileCuts(plan_.candidates, n_block, count, noise);
      for (std::size_t k = 0; k < n_block; ++k) {
        out.push_back(CutsWithin(plan_.features[features_[begin + k]].grid, cuts[k]));
      }
    }
    return out;
  }
};

CandidateKinds::Add<QuantileTrees> const kAdded{CandidateKind::kQuantileTree};
}  // namespace

Candidates::Candidates(CandidateParts const& parts)
    : ctx_{parts.ctx}, plan_{parts.plan}, release_{parts.release} {
  for (bst_feature_t f = 0; f < plan_.features.size(); ++f) {
    if (plan_.features[f].kind == FeaturePlan::Kind::kPrivate) {
      features_.push_back(f);
    }
  }
}

common::HistogramCuts Candidates::MakeCuts(CandidateRows const& rows) {
  std::vector<std::vector<float>> cuts;
  if (!features_.empty()) {
    cuts = this->ReleaseCuts(rows);
  }
  return dp::MakeCuts(plan_, cuts);
}
}  // namespace xgboost::dp
