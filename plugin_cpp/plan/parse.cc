#include "plugin_cpp/plan/plan.h"

#include <algorithm>   // for adjacent_find, max
#include <cmath>       // for isfinite
#include <cstdint>     // for int64_t
#include <functional>  // for greater_equal
#include <limits>      // for numeric_limits
#include <string>      // for string, to_string
#include <vector>      // for vector

#include "plugin_cpp/json_reader.h"  // for JsonReader, ReadKnownNoise, ReadSigma2, ReadScale
#include "xgboost/json.h"            // for Json, get, Integer, Number, Array
#include "xgboost/logging.h"         // for CHECK
#include "xgboost/string_view.h"     // for StringView

namespace xgboost::dp {
namespace {
constexpr double kHuge = std::numeric_limits<double>::max();

RowBound ReadRowBound(JsonReader const& in, std::int64_t grid_bits, bool squared, bool has_range,
                      bool of_person) {
  RowBound bound;
  bound.of_person = of_person;
  bound.rows_per_person = in.Real("rows_per_person", 1.0, of_person ? kMaxRowsPerPerson : 1.0);
  bound.mode = in.Enum<RowBound::Mode>("mode", RowBound::kModes);
  bound.unit_hessian = in.Bool("unit_hessian");
  // Far from the ends of the range of doubles, so that no product below overflows or vanishes.
  bound.gradient_bound = in.Real("gradient_bound", 1e-6, 1e6);
  bound.hessian_weight = in.Real("hessian_weight", 1e-12, 1e6);
  bound.hessian_bound = in.Real("hessian_bound", 0.0, 1e9);
  bound.output_gradient = in.Real("output_gradient", 1e-9, 1.0);
  bound.output_hessian = in.Real("output_hessian", 1e-9, 1.0);
  bound.max_weight = in.Real("max_weight", 0.0, 1e9);
  // The least unit is that of the proof of all classes (docs/proofs/sensitivity.md).
  bound.weight_unit = in.Has("weight_unit") ? in.Real("weight_unit", 1e-3, 1e9) : 1.0;
  bound.scale = in.Real("scale", 1e-30, 1e38);
  bound.grid_bits = static_cast<std::int32_t>(grid_bits);
  bound.clamp_target = squared;
  if (bound.mode == RowBound::Mode::kPrediction) {
    bound.positive_weight = in.Real("positive_weight", 0.0, 1e38);
  }
  if (has_range) {
    bound.target_lower = in.Real("target_lower", -kHuge, kHuge);
    bound.target_upper = in.Real("target_upper", bound.target_lower, kHuge);
  }
  return bound;
}

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

CandidatePlan ReadCandidates(JsonReader const& in, Plan const& plan) {
  CandidatePlan out;
  out.kind = in.Enum<CandidateKind>("kind", kCandidateKinds);
  out.rounds = in.Int("rounds", 1, plan.rounds);
  out.hessian = in.Bool("hessian");
  out.laplace = in.Bool("laplace");
  out.levels = in.Int("levels", 2, 17);
  out.shift = in.Int("shift", 0, 26);
  out.sigma2 = ReadSigma2(in, plan.noise_free || out.laplace);
  out.scale = ReadScale(in, plan.noise_free || !out.laplace);
  out.max_bin = in.Int("max_bin", 2, 1 << 16);
  return out;
}

LeafPlan ReadLeaf(JsonReader const& in, Plan const& plan) {
  LeafPlan out;
  out.noise = in.Enum<LeafNoise>("noise", kLeafNoises);
  bool gaussian = out.noise == LeafNoise::kGaussian;
  // Leaves that are read from the last noisy sums of splits have no noise of their own.
  out.sigma2 = ReadSigma2(in, plan.noise_free || plan.HasNoisySums() || !gaussian);
  out.scale = ReadScale(in, plan.noise_free || gaussian);
  out.geometric_clip = in.Bool("geometric_clip");
  out.eta = in.Real("eta", 0.0, 1e6);
  out.eta_start = in.Real("eta_start", 1e-3, 1.0);
  out.lambda = in.Real("lambda", 0.0, 1e12);
  out.alpha = in.Real("alpha", 0.0, 1e12);
  out.max_delta_step = in.Real("max_delta_step", 0.0, 1e12);
  out.min_child_weight = in.Real("min_child_weight", 0.0, 1e12);
  out.spread = in.Bool("spread");
  out.shrinkage = in.Bool("shrinkage");
  out.strata = in.Bool("strata");
  out.prior_max = in.Real("prior_max", 1e-9, 1e12);
  return out;
}

CorrectionPlan ReadCorrection(JsonReader const& in, Plan const& plan) {
  CorrectionPlan out;
  out.is_on = in.Bool("on");
  out.sigma2 = ReadSigma2(in, plan.noise_free || !out.is_on);
  return out;
}

void ReadSplits(JsonReader const& in, Plan* plan) {
  plan->shape = in.Enum<TreeShape>("shape", kShapes);
  plan->split = in.Enum<SplitChoice>("split", kSplits);
  plan->score = in.Enum<Score>("score", kScores);
  plan->class_trees = in.Enum<ClassTrees>("class_trees", kClassTrees);
  plan->score_clip = in.Real("score_clip", 0.0, 1e6);
  plan->split_levels = in.Int("split_levels", 1, 4);
  plan->split_candidates = in.Int("split_candidates", 1, 1 << 12);
  plan->split_prior = in.Real("split_prior", 0.0, 0.999);
  plan->no_split = in.Bool("no_split");
  plan->gamma = in.Real("gamma", -1e12, 1e12);
  JsonReader selection{in.At("selection"), "selection."};
  plan->eps_num = selection.Int("eps_num", plan->noise_free ? 0 : 1, (std::int64_t{1} << 47) - 1);
  plan->score_range = selection.Int("range", 1, kMaxScoreRange - 1);
  plan->histogram_sigma2 = ReadSigma2(JsonReader{in.At("histogram"), "histogram."},
                                      plan->noise_free || !plan->HasNoisySums());
}

void ReadFeatures(JsonReader const& in, Plan* plan) {
  for (auto const& json : in.List("features")) {
    plan->features.push_back(ReadFeature(json, plan->features.size()));
  }
  plan->monotone = in.Ints<std::int32_t>(in.At("monotone"), "monotone", -1, 1);
  plan->feature_weights = in.Ints<std::int64_t>(in.At("feature_weights"), "feature_weights", 1,
                                                Plan::kMaxFeatureWeight);
  auto last = plan->n_features - 1;
  if (in.Has("offered")) {
    plan->offered = in.Ints<bst_feature_t>(in.At("offered"), "offered", 0, last);
  }
  for (auto const& set : in.List("interactions")) {
    plan->interactions.push_back(in.Ints<bst_feature_t>(set, "interactions", 0, last));
  }
}

/** @brief A public tree from its nodes in preorder: feature and offer of a split, -1 of a leaf. */
PublicTree ReadStructure(Json const& json, Plan const& plan) {
  constexpr std::int32_t kMostOffers = 1 << 20;
  auto list = JsonReader::Ints<std::int32_t>(json, "structures", -1,
                                             std::max(plan.n_features - 1, kMostOffers));
  PublicTree out;
  std::vector<std::size_t> open;  // splits whose right child has not been read
  bool complete = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Require(!complete, "a structure goes on after its last leaf.");
    PublicNode node;
    node.feature = list[i];
    Require(node.feature < plan.n_features, "a structure has an unknown feature.");
    if (!node.IsLeaf()) {
      Require(++i < list.size(), "a structure breaks off.");
      node.offer = list[i];
      Require(node.offer >= 0 && node.offer <= kMostOffers, "a structure has no such offer.");
      Require(open.size() < static_cast<std::size_t>(plan.depth), "a structure is too deep.");
      open.push_back(out.size());
      out.push_back(node);
      continue;
    }
    out.push_back(node);
    // The parents whose right child has just ended have ended, too.
    while (!open.empty() && out[open.back()].right >= 0) {
      open.pop_back();
    }
    complete = open.empty();
    if (!complete) {
      out[open.back()].right = static_cast<std::int32_t>(out.size());
    }
  }
  Require(complete, "a structure breaks off.");
  return out;
}

void ReadStructures(JsonReader const& in, Plan* plan) {
  if (plan->split == SplitChoice::kPublic) {
    for (auto const& json : in.List("structures")) {
      plan->structures.push_back(ReadStructure(json, *plan));
    }
  }
}
}  // namespace

Plan ParsePlan(std::string const& text) {
  auto json = Json::Load(StringView{text});
  JsonReader in{json, ""};
  CHECK_EQ(in.Int("version", 1, 1), 1);
  Plan plan;
  plan.is_private = in.Bool("private");
  auto known = ReadKnownNoise(in);
  plan.noise_free = known.is_none;
  plan.test_key = known.key;
  plan.id = in.Text("id");
  plan.objective = in.Text("objective");
  plan.n_features = in.Int("n_features", 1, std::numeric_limits<std::int32_t>::max());
  plan.num_class = in.Int("num_class", 1, 1 << 16);  // for which the bound of a row is proved
  plan.rounds = in.Int("rounds", 1, 1 << 20);
  plan.depth = in.Int("depth", 1, 10);  // sums of 2^10 utilities stay below 2^62
  plan.parallel_trees = in.Int("parallel_trees", 1, 1 << 20);
  plan.features_per_tree = in.Int("features_per_tree", 1, plan.n_features);
  plan.cyclic_features = in.Bool("cyclic_features");
  plan.sampling_num = in.Int("sampling_num", 1, Plan::kSampleAll);
  plan.ensemble = in.Int("ensemble", 1, Plan::kMaxEnsemble);
  plan.ensemble_halving = in.Bool("ensemble_halving");
  plan.base_margin = in.Bool("base_margin");
  plan.masking = ReadMasking(JsonReader{in.At("masking"), "masking."});
  plan.row_bound =
      ReadRowBound(JsonReader{in.At("row_bound"), "row_bound."}, in.Int("grid_bits", 4, 20),
                   plan.IsSquaredLoss() && !in.Has("loss"), plan.IsSquaredLoss() || in.Has("loss"),
                   in.Enum<bool>("unit", {{"row", false}, {"person", true}}));
  if (in.Has("loss")) {
    plan.loss = ReadLoss(JsonReader{in.At("loss"), "loss."}, plan.objective,
                         {plan.row_bound.target_lower, plan.row_bound.target_upper});
  }
  ReadFeatures(in, &plan);
  ReadSplits(in, &plan);
  ReadStructures(in, &plan);
  plan.leaf = ReadLeaf(JsonReader{in.At("leaf"), "leaf."}, plan);
  plan.correction = ReadCorrection(JsonReader{in.At("correction"), "correction."}, plan);
  if (plan.NumPrivateFeatures() > 0) {
    plan.candidates = ReadCandidates(JsonReader{in.At("candidates"), "candidates."}, plan);
  }
  CheckPlan(plan);
  return plan;
}
}  // namespace xgboost::dp
