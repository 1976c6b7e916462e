#include "plugin_cpp/releases/candidates/candidates.h"

#include <cstddef>  // for size_t
#include <string>   // for to_string
#include <utility>  // for move

#include "plugin_cpp/grow/bins.h"                          // for MakeCuts
#include "plugin_cpp/plan/plan.h"                          // for CandidateEvent
#include "plugin_cpp/releases/candidates/quantile_tree.h"  // for CutsOf, FindNarrowRange

namespace xgboost::dp {
namespace {
class QuantileTrees : public Candidates {
 public:
  using Candidates::Candidates;

 protected:
  [[nodiscard]] std::vector<std::vector<float>> ReleaseCuts(CandidateRows const& rows) override {
    auto add_rows = [&](auto&& cell, CellSums* sums) { this->AddRows(rows, cell, sums); };
    auto trees = ReleaseTrees({ctx_, plan_.candidates, CandidateEvent(plan_), release_},
                              plan_.features, add_rows);
    std::vector<std::vector<float>> out;
    for (std::size_t k = 0; k < trees.size(); ++k) {
      out.push_back(CutsOf(trees[k]));
      if (auto narrow = FindNarrowRange(trees[k])) {
        narrow_[std::to_string(features_[k])] = narrow->ToJson();
      }
    }
    return out;
  }
};

CandidateKinds::Add<QuantileTrees> const kAdded{CandidateKind::kQuantileTree};
}  // namespace

std::vector<bst_feature_t> PrivateFeatures(std::vector<FeaturePlan> const& all) {
  std::vector<bst_feature_t> out;
  for (bst_feature_t f = 0; f < all.size(); ++f) {
    if (all[f].kind == FeaturePlan::Kind::kPrivate) {
      out.push_back(f);
    }
  }
  return out;
}

Candidates::Candidates(CandidateParts const& parts)
    : ctx_{parts.ctx},
      plan_{parts.plan},
      release_{parts.release},
      features_{PrivateFeatures(plan_.features)} {}

common::HistogramCuts Candidates::MakeCuts(CandidateRows const& rows) {
  std::vector<std::vector<float>> cuts;
  if (!features_.empty()) {
    cuts = this->ReleaseCuts(rows);
  }
  return dp::MakeCuts(plan_, cuts);
}
}  // namespace xgboost::dp
