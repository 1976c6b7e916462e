#include "plugin_cpp/releases/candidates/candidates.h"

#include <cstddef>  // for size_t
#include <string>   // for to_string
#include <utility>  // for move

#include "plugin_cpp/grow/bins.h"                          // for MakeCuts
#include "plugin_cpp/plan/plan.h"                          // for CandidateEvent, CandidatePlan
#include "plugin_cpp/release/source.h"                     // for kDiscoveryStream
#include "plugin_cpp/releases/candidates/quantile_tree.h"  // for CutsOf, FindNarrowRange, ToJson
#include "plugin_cpp/releases/intercept.h"                 // for Request, AddKind
#include "plugin_cpp/rows/raw_pages.h"                     // for ForEachPage
#include "xgboost/json.h"                                  // for Json
#include "xgboost/logging.h"                               // for CHECK

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

/** @brief Before the first tree: quantile trees of columns; a row or person counts one in each. */
Json ReleaseCandidates(Request const& asked) {
  CHECK(asked.in.Has("again")) << "A linear start follows an intercept.";
  CandidatePlan plan{asked.in.Part("candidates"), asked.event.parameter == 0};
  CHECK(plan.kind == CandidateKind::kQuantileTree && !plan.hessian && !plan.laplace);
  CHECK(plan.sigma2 == asked.event.parameter && plan.shift == asked.shift);
  auto features = ReadFeatures(asked.in);
  CHECK(!PrivateFeatures(features).empty());
  auto const* persons = asked.persons;
  auto add_rows = [&, one = asked.One()](auto&& cell, CellSums* sums) {
    ForEachPage(asked.ctx, asked.matrix, [&](SparsePage const& page) {
      sums->Add(page, cell, [&](auto i) { return persons ? one / persons->RowsOf(i) : one; });
    });
  };
  Array out;
  auto trees = ReleaseTrees({asked.ctx, plan, asked.event, asked.release}, features, add_rows);
  for (auto const& tree : trees) {
    out.GetArray().emplace_back(ToJson(tree));
  }
  return Json{std::move(out)};
}

CandidateKinds::Add<QuantileTrees> const kAdded{CandidateKind::kQuantileTree};
AddKind const kBefore{"candidates", {ReleaseCandidates, "candidates", kDiscoveryStream, false}};
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
