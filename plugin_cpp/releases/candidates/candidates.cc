#include "plugin_cpp/releases/candidates/candidates.h"

#include <algorithm>  // for remove_if
#include <cstddef>    // for size_t
#include <utility>    // for move

#include "plugin_cpp/grow/bins.h"                          // for MakeCuts
#include "plugin_cpp/plan/plan.h"                          // for CandidateEvent
#include "plugin_cpp/releases/candidates/quantile_tree.h"  // for CutsOf

namespace xgboost::dp {
namespace {
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
    auto add_rows = [&](auto&& cell, CellSums* sums) { this->AddRows(rows, cell, sums); };
    auto trees = ReleaseTrees({ctx_, plan_.candidates, CandidateEvent(plan_), release_}, features_,
                              add_rows);
    std::vector<std::vector<float>> out;
    for (std::size_t k = 0; k < features_.size(); ++k) {
      out.push_back(CutsWithin(plan_.features[features_[k]].grid, CutsOf(trees[k])));
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
