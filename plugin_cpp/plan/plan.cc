#include "plugin_cpp/plan/plan.h"

#include <cmath>       // for isfinite
#include <functional>  // for greater_equal
#include <utility>     // for move

#include "xgboost/json.h"         // for Json, get, Integer, Number
#include "xgboost/string_view.h"  // for StringView

namespace xgboost::dp {
namespace {
std::vector<std::string> const kStateFields{"scale", "weight_unit", "alpha",
                                            "rows",  "loss",        "offered"};

std::vector<float> ReadCuts(JsonReader const& in, std::string const& key) {
  std::vector<float> cuts;
  for (auto const& v : in.List(key)) {
    cuts.push_back(IsA<Integer>(v) ? static_cast<float>(get<Integer const>(v))
                                   : get<Number const>(v));
    Require(std::isfinite(cuts.back()), "a cut is not finite.");
  }
  Require(std::adjacent_find(cuts.cbegin(), cuts.cend(), std::greater_equal<>{}) == cuts.cend(),
          "cuts must be strictly increasing.");
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
    out.push_back(ParseInts<bst_feature_t>(set, "interactions", 0, n_features - 1));
  }
  return out;
}

void Plan::Apply(JsonReader const& state) {
  if (state.Has("scale")) {
    row_bound.scale = state.Real("scale", 1e-30, 1e38);
  }
  if (state.Has("weight_unit")) {
    row_bound.weight_unit = state.Real("weight_unit", 1e-3, 1e9);
  }
  if (state.Has("alpha")) {
    leaf.alpha = state.Real("alpha", 0.0, 1e12);
  }
  if (state.Has("rows")) {
    correction.rows = state.Real("rows", 0.0, 1e15);
  }
  if (state.Has("loss")) {
    auto in = state.Part("loss");
    Require(loss && in.Text("name") == this->Part("loss").Text("name"),
            "the state belongs to another loss.");
    loss = ReadLoss(in, objective, {row_bound.target_lower, row_bound.target_upper});
  }
  if (state.Has("offered")) {
    auto columns = state.Ints<bst_feature_t>("offered", 0, n_features - 1);
    Require(columns.size() == offered.size(), "the state has another number of `offered` columns.");
    offered = std::move(columns);
  }
  if (this->Has("offered")) {
    Require(!offered.empty(), "`offered` is empty.");
    this->LimitCandidates();
  }
}

void Plan::LimitCandidates() {
  auto is_offered = [&](std::size_t f) {
    return std::binary_search(offered.cbegin(), offered.cend(), static_cast<bst_feature_t>(f));
  };
  std::size_t left = std::min<std::size_t>(this->NumPrivateFeatures(), offered.size());
  for (bool first : {true, false}) {
    for (std::size_t f = 0; f < features.size(); ++f) {
      if (features[f].kind != FeaturePlan::Kind::kPrivate || is_offered(f) != first) {
        continue;
      }
      if (left > 0) {
        --left;
      } else {
        // PRESENT of xgb_dp/mechanisms/column_sums.py: a cell above 0
        features[f] = {FeaturePlan::Kind::kCuts, {std::numeric_limits<float>::min()}, {}, 0};
      }
    }
  }
}

Plan ParsePlan(std::string const& plan_text, std::string const& state_text) {
  auto json = Json::Load(StringView{plan_text}), state = Json::Load(StringView{state_text});
  JsonReader in{json, ""}, state_reader{state, "state."};
  static_cast<void>(in.Int("version", 1, 1));
  for (auto const& [name, _] : get<Object const>(state)) {
    Require(std::count(kStateFields.cbegin(), kStateFields.cend(), name) == 1,
            "`" + name + "` is not a field of the state.");
  }
  Plan plan{in, state_reader};
  CheckPlan(plan);
  return plan;
}

RoundEvent MakeRoundEvent(Plan const& plan, std::int32_t round) {
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
    out.entries.emplace_back(SplitEvent(plan), plan.SelectionsPerTree() * chosen * trees);
  }
  if (plan.HasNoisySums()) {
    out.entries.emplace_back(HistogramEvent(plan), trees * plan.depth);
  } else {
    out.entries.emplace_back(LeafEvent(plan), trees);
  }
  return out;
}
}  // namespace xgboost::dp
