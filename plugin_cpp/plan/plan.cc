#include "plugin_cpp/plan/plan.h"

#include <algorithm>   // for adjacent_find
#include <cmath>       // for isfinite
#include <functional>  // for greater_equal
#include <string>      // for string, to_string
#include <vector>      // for vector

#include "xgboost/json.h"         // for Json, get, Integer, Number
#include "xgboost/logging.h"      // for CHECK
#include "xgboost/string_view.h"  // for StringView

namespace xgboost::dp {
namespace {
std::vector<float> ReadCuts(JsonReader const& in, std::string const& key) {
  std::vector<float> cuts;
  for (auto const& v : in.List(key)) {
    cuts.push_back(IsA<Integer>(v) ? static_cast<float>(get<Integer const>(v))
                                   : get<Number const>(v));
    Require(std::isfinite(cuts.back()), "a cut is not finite.");
  }
  Require(std::adjacent_find(cuts.cbegin(), cuts.cend(), std::greater_equal<>{}) == cuts.cend(),
          "cuts must increase strictly.");
  return cuts;
}

FeaturePlan ReadFeature(Json const& json, std::size_t idx) {
  JsonReader in{json, "features[" + std::to_string(idx) + "]."};
  FeaturePlan out;
  out.kind = in.Enum<FeaturePlan::Kind>("kind", FeaturePlan::kKinds);
  if (out.kind == FeaturePlan::Kind::kCategorical) {
    out.n_categories = in.Int("size", 1, 1 << 16);
  } else if (out.kind == FeaturePlan::Kind::kCuts) {
    out.cuts = ReadCuts(in, "cuts");
  } else {
    out.grid = ReadCuts(in, "grid");
  }
  return out;
}

}  // namespace

std::vector<FeaturePlan> ReadFeatures(JsonReader const& in) {
  std::vector<FeaturePlan> out;
  for (auto const& json : in.List("features")) {
    out.push_back(ReadFeature(json, out.size()));
  }
  return out;
}

std::vector<std::vector<bst_feature_t>> Plan::ReadInteractions() const {
  std::vector<std::vector<bst_feature_t>> out;
  for (auto const& set : this->List("interactions")) {
    out.push_back(IntsOf<bst_feature_t>(set, "interactions", 0, n_features - 1));
  }
  return out;
}

Plan ParsePlan(std::string const& text) {
  auto json = Json::Load(StringView{text});
  JsonReader in{json, ""};
  CHECK_EQ(in.Int("version", 1, 1), 1);
  Plan plan{in};
  CheckPlan(plan);
  return plan;
}

RoundEvent EventOfRound(Plan const& plan, std::int32_t round) {
  RoundEvent out;
  if (plan.IsSampled()) {
    out.rate_num = plan.sampling_num;
  } else {
    out.ensemble = plan.ensemble;
  }
  // Candidates with unit weights read all rows.
  if (plan.candidates.hessian && plan.ReleasesCandidates(round)) {
    out.entries.emplace_back(CandidateEvent(plan), 1);
  }
  auto trees = static_cast<std::uint64_t>(plan.parallel_trees);
  if (plan.split == SplitChoice::kExponential) {
    auto chosen = static_cast<std::uint64_t>(plan.SharesSplits() ? 1 : plan.num_class);
    out.entries.emplace_back(SplitEvent(plan), plan.SelectionsOfTree() * chosen * trees);
  }
  if (plan.HasNoisySums()) {
    out.entries.emplace_back(HistogramEvent(plan), trees * plan.depth);
  } else {
    out.entries.emplace_back(LeafEvent(plan), trees);
  }
  return out;
}
}  // namespace xgboost::dp
