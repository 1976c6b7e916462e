#include "plugin_cpp/plan/plan.h"

#include <algorithm>   // for count_if, adjacent_find
#include <cmath>       // for isfinite
#include <cstdint>     // for int64_t
#include <functional>  // for greater_equal
#include <limits>      // for numeric_limits
#include <string>      // for string, to_string
#include <vector>      // for vector

#include "plugin_cpp/candidates/candidates.h"  // for CandidateEvent
#include "plugin_cpp/plan/json_reader.h"  // for JsonReader, ReadSigma2, ReadScale
#include "plugin_cpp/split/score.h"  // for ScoreRange
#include "xgboost/json.h"            // for Json, get, Integer, Number, Array
#include "xgboost/logging.h"         // for CHECK, LOG
#include "xgboost/string_view.h"     // for StringView

namespace xgboost::dp {
namespace {
constexpr double kHuge = std::numeric_limits<double>::max();

RowBound ReadRowBound(JsonReader const& in, std::int32_t grid_bits, bool regression) {
  RowBound bound;
  bound.mode = in.Enum<RowBound::Mode>("mode",
      {{"row_weight", RowBound::Mode::kRowWeight},
       {"gradient", RowBound::Mode::kGradient},
       {"filter", RowBound::Mode::kFilter}});
  bound.unit_hessian = in.Bool("unit_hessian");
  // Far from the ends of the range of doubles, so that no product below overflows or vanishes.
  bound.gradient_bound = in.Real("gradient_bound", 1e-6, 1e6);
  bound.hessian_weight = in.Real("hessian_weight", 1e-12, 1e6);
  bound.hessian_bound = in.Real("hessian_bound", 0.0, 1e9);
  bound.max_weight = in.Real("max_weight", 0.0, 1e9);
  bound.scale = in.Real("scale", 1e-30, 1e38);
  bound.grid_bits = grid_bits;
  bound.clamp_target = regression;
  if (regression) {
    bound.target_lower = in.Real("target_lower", -kHuge, kHuge);
    bound.target_upper = in.Real("target_upper", bound.target_lower, kHuge);
  }
  static_cast<void>(bound.MaxHessian());  // throws if it does not fit
  return bound;
}

std::vector<Json> const& List(JsonReader const& in, std::string const& key) {
  auto const& json = in.At(key);
  CHECK(IsA<Array>(json)) << "dp_plan: `" << key << "` is not a list." << JsonReader::kMend;
  return get<Array const>(json);
}

std::vector<float> ReadCuts(JsonReader const& in, std::string const& key) {
  std::vector<float> cuts;
  for (auto const& v : List(in, key)) {
    cuts.push_back(IsA<Integer>(v) ? static_cast<float>(get<Integer const>(v))
                                   : get<Number const>(v));
    CHECK(std::isfinite(cuts.back())) << "dp_plan: a cut is not finite." << JsonReader::kMend;
  }
  CHECK(std::adjacent_find(cuts.cbegin(), cuts.cend(), std::greater_equal<>{}) == cuts.cend())
      << "dp_plan: cuts must increase strictly." << JsonReader::kMend;
  return cuts;
}

FeaturePlan ReadFeature(Json const& json, std::size_t idx) {
  JsonReader in{json, "features[" + std::to_string(idx) + "]."};
  FeaturePlan out;
  out.kind = in.Enum<FeaturePlan::Kind>("kind",
                                         {{"private", FeaturePlan::Kind::kPrivate},
                                          {"cuts", FeaturePlan::Kind::kCuts},
                                          {"categorical", FeaturePlan::Kind::kCategorical}});
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
  out.kind = in.Enum<CandidateKind>("kind", {{"tree", CandidateKind::kTree},
                                             {"histogram", CandidateKind::kHistogram},
                                             {"adaptive", CandidateKind::kAdaptive}});
  out.rounds = in.Int("rounds", 1, plan.rounds);
  out.hessian = in.Bool("hessian");
  out.laplace = in.Bool("laplace");
  out.levels = in.Int("levels", 2, 17);
  out.shift = in.Int("shift", 0, 26);
  out.sigma2 = ReadSigma2(in, plan.noise_free || out.laplace);
  out.scale = ReadScale(in, plan.noise_free || !out.laplace);
  out.max_bin = in.Int("max_bin", 2, 1 << 16);
  bool tree = out.kind == CandidateKind::kTree;
  CHECK(!tree || !out.laplace) << "dp_plan: quantile trees have Gaussian noise." << JsonReader::kMend;
  CHECK(!out.hessian || (plan.n_groups == 1 && out.shift == 0))
      << "dp_plan: Hessian weights are those of one class, on their own grid." << JsonReader::kMend;
  CHECK(!out.hessian || (plan.parts == 1 && !plan.IsSampled()) || out.rounds == plan.rounds)
      << "dp_plan: rounds that read some rows only release candidates always or never."
      << JsonReader::kMend;
  for (auto const& feature : plan.features) {
    CHECK(feature.kind != FeaturePlan::Kind::kPrivate || tree || feature.grid.size() >= 2)
        << "dp_plan: noisy histograms need a public grid." << JsonReader::kMend;
  }
  return out;
}

std::int64_t ListedInt(Json const& json, std::string const& key, std::int64_t lower,
                       std::int64_t upper) {
  CHECK(IsA<Integer>(json) && get<Integer const>(json) >= lower &&
        get<Integer const>(json) <= upper)
      << "dp_plan: an entry of `" << key << "` is not an integer in [" << lower << ", " << upper
      << "]." << JsonReader::kMend;
  return get<Integer const>(json);
}

void ReadConstraints(JsonReader const& in, Plan* plan) {
  for (auto const& json : List(in, "monotone")) {
    plan->monotone.push_back(static_cast<std::int32_t>(ListedInt(json, "monotone", -1, 1)));
  }
  CHECK_EQ(plan->monotone.size(), plan->features.size())
      << "dp_plan: `monotone` needs one entry for each feature." << JsonReader::kMend;
  for (std::size_t f = 0; f < plan->features.size(); ++f) {
    CHECK(plan->monotone[f] == 0 || plan->features[f].kind != FeaturePlan::Kind::kCategorical)
        << "dp_plan: categories have no order to be monotone in." << JsonReader::kMend;
  }
  for (auto const& set : List(in, "interactions")) {
    CHECK(IsA<Array>(set)) << "dp_plan: an interaction is not a list." << JsonReader::kMend;
    plan->interactions.emplace_back();
    for (auto const& json : get<Array const>(set)) {
      plan->interactions.back().push_back(static_cast<bst_feature_t>(
          ListedInt(json, "interactions", 0, plan->n_features - 1)));
    }
  }
}
/** @brief Masked sums are proved for Gaussian noise on sums of all rows, and for nothing else. */
void CheckMasking(Plan const& plan) {
  if (!plan.masking.IsOn()) {
    return;
  }
  bool gaussian = plan.HasNoisySums() || plan.leaf.release == LeafRelease::kGaussian;
  bool laplace = plan.NumPrivateFeatures() > 0 && plan.candidates.laplace;
  CHECK(plan.split != SplitChoice::kExponential && gaussian && !laplace && !plan.IsSampled())
      << "dp_plan: masked sums have Gaussian noise and read all rows; selections need exact sums."
      << JsonReader::kMend;
  if (plan.noise_free) {
    return;
  }
  // Throw if a share does not fit.
  static_cast<void>(
      plan.masking.ShareOf(plan.HasNoisySums() ? plan.histogram_sigma2 : plan.leaf.sigma2));
  if (plan.NumPrivateFeatures() > 0) {
    static_cast<void>(plan.masking.ShareOf(plan.candidates.sigma2));
  }
}
}  // namespace

std::int32_t Plan::NumPrivateFeatures() const {
  return std::count_if(features.cbegin(), features.cend(), [](auto const& f) {
    return f.kind == FeaturePlan::Kind::kPrivate;
  });
}

Plan ParsePlan(std::string const& text) {
  auto json = Json::Load(StringView{text});
  JsonReader in{json, ""};
  CHECK_EQ(in.Int("version", 1, 1), 1);
  Plan plan;
  plan.is_private = in.Bool("private");
  plan.noise_free = in.Bool("noise_free");
  plan.test_key = in.Has("test_key") ? in.Text("test_key") : "";
  // A model without noise, or with noise that somebody knows, must not call itself private.
  CHECK(!(plan.is_private && (plan.noise_free || !plan.test_key.empty())))
      << "dp_plan: fixed or absent noise contradicts `private`." << JsonReader::kMend;
  plan.id = in.Text("id");
  plan.objective = in.Text("objective");
  plan.n_features = in.Int("n_features", 1, std::numeric_limits<std::int32_t>::max());
  plan.n_groups = in.Int("num_class", 1, 1 << 20);
  plan.rounds = in.Int("rounds", 1, 1 << 20);
  plan.depth = in.Int("depth", 1, 10);  // sums of 2^10 utilities stay below 2^62
  plan.shape = in.Enum<TreeShape>("shape",
                                   {{"alternate", TreeShape::kAlternate},
                                    {"per_node", TreeShape::kPerNode},
                                    {"oblivious", TreeShape::kOblivious}});
  plan.parallel_trees = in.Int("parallel_trees", 1, 1 << 20);
  plan.features_per_tree = in.Int("features_per_tree", 1, plan.n_features);
  plan.cyclic_features = in.Bool("cyclic_features");
  plan.split = in.Enum<SplitChoice>("split", {{"exponential", SplitChoice::kExponential},
                                              {"random", SplitChoice::kRandom},
                                              {"histogram", SplitChoice::kHistogram},
                                              {"partial", SplitChoice::kPartial}});
  plan.score = in.Enum<Score>("score", {{"l1", Score::kL1}, {"newton", Score::kNewton}, {"gain", Score::kGain}});
  plan.tau = in.Real("tau", 0.0, 1e6);
  plan.split_levels = in.Int("split_levels", 1, 4);
  plan.split_candidates = in.Int("split_candidates", 1, 1 << 12);
  plan.split_prior = in.Real("split_prior", 0.0, 0.999);
  plan.no_split = in.Bool("no_split");
  plan.gamma = in.Real("gamma", -1e12, 1e12);
  plan.sampling_num = in.Int("sampling_num", 1, Plan::kSampleAll);
  plan.parts = in.Int("parts", 1, Plan::kMaxParts);
  plan.halving = in.Bool("halving");
  CHECK(plan.parts == 1 || !plan.IsSampled())
      << "dp_plan: disjoint parts are not sampled in addition." << JsonReader::kMend;
  plan.base_margin = in.Bool("base_margin");
  plan.masking = ReadMasking(JsonReader{in.At("masking"), "masking."});

  auto regression = plan.objective == "reg:squarederror";
  auto multiclass = plan.objective == "multi:softprob" || plan.objective == "multi:softmax";
  CHECK(regression || multiclass || plan.IsBinary())
      << "dp_plan: objective `" << plan.objective << "` has no proved row bound." << JsonReader::kMend;
  CHECK(multiclass || plan.n_groups == 1) << "dp_plan: `num_class` without softmax." << JsonReader::kMend;

  auto grid_bits = static_cast<std::int32_t>(in.Int("grid_bits", 4, 20));
  plan.row_bound = ReadRowBound(JsonReader{in.At("row_bound"), "row_bound."}, grid_bits, regression);
  CHECK(!multiclass || plan.row_bound.mode == RowBound::Mode::kRowWeight)
      << "dp_plan: softmax needs the row-weight clip." << JsonReader::kMend;
  // The range of the published gain holds where every row has the same Hessian: squared loss or
  // gradient boosting, and a clip that leaves the Hessian alone. The row-weight clip shrinks it for
  // rows with large residuals.
  bool counts = (regression || plan.row_bound.unit_hessian) &&
                plan.row_bound.mode != RowBound::Mode::kRowWeight &&
                (plan.row_bound.max_weight == 0.0 || plan.row_bound.max_weight >= 1.0);
  CHECK(plan.score != Score::kGain || counts)
      << "dp_plan: the published gain is unbounded under Hessians that vary." << JsonReader::kMend;
  CHECK(plan.score != Score::kNewton || plan.tau > 0)
      << "dp_plan: the Newton score needs a weight clip `tau`." << JsonReader::kMend;

  JsonReader selection{in.At("selection"), "selection."};
  plan.eps_num = selection.Int("eps_num", plan.noise_free ? 0 : 1, (std::int64_t{1} << 47) - 1);
  CHECK(plan.split_levels == 1 || (plan.split == SplitChoice::kExponential && !plan.no_split))
      << "dp_plan: only the exponential mechanism fills several levels, and then all of them."
      << JsonReader::kMend;
  CHECK(plan.split == SplitChoice::kExponential || !plan.no_split)
      << "dp_plan: random splits and noisy histograms have no utility to compare with `no_split`."
      << JsonReader::kMend;
  // Leaves are read from the last noisy sums of splits, and have no noise of their own then.
  bool noisy_sums = plan.HasNoisySums();
  plan.histogram_sigma2 =
      ReadSigma2(JsonReader{in.At("histogram"), "histogram."}, plan.noise_free || !noisy_sums);

  JsonReader leaf{in.At("leaf"), "leaf."};
  plan.leaf.release = leaf.Enum<LeafRelease>("release", {{"gaussian", LeafRelease::kGaussian},
                                                         {"laplace", LeafRelease::kLaplace},
                                                         {"output", LeafRelease::kOutput}});
  bool gaussian = plan.leaf.release == LeafRelease::kGaussian;
  CHECK(gaussian || !noisy_sums)
      << "dp_plan: leaves that are read from noisy histograms have no noise of their own."
      << JsonReader::kMend;
  CHECK(plan.leaf.release != LeafRelease::kOutput || counts)
      << "dp_plan: the sensitivity of a leaf value is proved for Hessians that count rows."
      << JsonReader::kMend;
  // Rows are counted by the integer that stands for a Hessian of one.
  CHECK((plan.leaf.release != LeafRelease::kOutput && plan.score != Score::kGain) ||
        RowQuantiser{plan.row_bound}(0.0, 1.0).second >= 1)
      << "dp_plan: `hessian_weight` is too small: on the grid of gradients a row counts nothing."
      << JsonReader::kMend;
  plan.leaf.sigma2 = ReadSigma2(leaf, plan.noise_free || noisy_sums || !gaussian);
  plan.leaf.scale = ReadScale(leaf, plan.noise_free || gaussian);
  plan.leaf.geometric_clip = leaf.Bool("geometric_clip");
  plan.leaf.eta = leaf.Real("eta", 0.0, 1e6);
  plan.leaf.lambda = leaf.Real("lambda", 0.0, 1e12);
  plan.leaf.alpha = leaf.Real("alpha", 0.0, 1e12);
  plan.leaf.max_delta_step = leaf.Real("max_delta_step", 0.0, 1e12);
  plan.leaf.min_child_weight = leaf.Real("min_child_weight", 0.0, 1e12);
  // The arithmetic of output perturbation is exact enough up to here.
  CHECK(plan.leaf.release != LeafRelease::kOutput ||
        plan.leaf.min_child_weight + plan.leaf.lambda <= 1048576.0)
      << "dp_plan: `min_child_weight` or `lambda` is too large for output perturbation."
      << JsonReader::kMend;
  plan.leaf.shrinkage = leaf.Bool("shrinkage");
  plan.leaf.strata = leaf.Bool("strata");
  plan.leaf.prior_max = leaf.Real("prior_max", 1e-9, 1e12);

  auto const& list = List(in, "features");
  CHECK_EQ(list.size(), static_cast<std::size_t>(plan.n_features))
      << "dp_plan: one entry per feature expected." << JsonReader::kMend;
  for (std::size_t i = 0; i < list.size(); ++i) {
    plan.features.push_back(ReadFeature(list[i], i));
  }
  ReadConstraints(in, &plan);
  CHECK_LT(static_cast<double>(plan.features_per_tree) *
               static_cast<double>(plan.row_bound.RoundSensitivity2(plan.n_groups)),
           9e18)
      << "dp_plan: the sensitivity of noisy histograms overflows." << JsonReader::kMend;

  if (plan.NumPrivateFeatures() > 0) {
    plan.candidates = ReadCandidates(JsonReader{in.At("candidates"), "candidates."}, plan);
    static_cast<void>(CandidateEvent(plan));  // throws if it does not fit
  }
  static_cast<void>(ScoreRange(plan));  // throws if it does not fit
  CheckMasking(plan);
  return plan;
}
}  // namespace xgboost::dp
