#include "plugin_cpp/checks.h"

#include <algorithm>  // for all_of, find_if, max, min
#include <cstddef>    // for size_t
#include <cstdlib>    // for strtod
#include <limits>     // for numeric_limits
#include <set>        // for set
#include <utility>    // for pair

#include "collective/communicator-inl.h"  // for IsDistributed
#include "plugin_cpp/grow/disk_space.h"   // for BinnedSize, CheckDiskSpace
#include "plugin_cpp/json_reader.h"       // for JsonReader, KnownNoise, Require
#include "plugin_cpp/plan/row_bound.h"    // for kMaxRows
#include "plugin_cpp/release/digests.h"   // for PlanDigest
#include "plugin_cpp/rows/raw_pages.h"    // for CheckFeatures, CheckNumRows, ForEachPage
#include "xgboost/json.h"                 // for Json, String
#include "xgboost/logging.h"              // for CHECK
#include "xgboost/string_view.h"          // for StringView

namespace xgboost::dp {
namespace {
template <typename Info>
auto IsColumnSplit(Info const* info) -> decltype(info->IsColumnSplit()) {
  return info->IsColumnSplit();
}
// XGBoost 3.4 and later have no such matrices.
[[maybe_unused]] bool IsColumnSplit(void const*) { return false; }

bool IsClaimed(std::string const& text, KnownNoise const& known, std::string const& plan_text) {
  auto json = Json::Load(StringView{text});
  JsonReader ledger{json, "ledger."};
  auto const& trainings = ledger.List("trainings");
  if (trainings.empty()) {
    return false;
  }
  JsonReader training{trainings.back(), "ledger.trainings."};
  if (training.Bool("complete")) {
    return false;
  }
  if (!known.IsPrivate() && (ledger.Bool("private") || ledger.Text("noise") != known.Source())) {
    return false;
  }
  Json name{String{PlanDigest(plan_text)}};
  auto const& plans = training.List("plans");
  return std::any_of(plans.cbegin(), plans.cend(), [&](auto const& one) { return one == name; });
}
}  // namespace

RowLimits& Limits() {
  static RowLimits limits{kMaxRows, std::numeric_limits<std::uint32_t>::max()};
  return limits;
}

void CheckTrainParam(tree::TrainParam const& param) {
  CHECK_EQ(param.subsample, 1.0f)
      << "The updater's `subsample` must be 1, because XGBoost's row sample is not secret. Pass it "
         "to `xgboost.train`, which includes secret sampling in the plan.";
  CHECK_EQ(param.colsample_bytree, 1.0f) << "The updater's `colsample_bytree` must be 1. Pass it "
                                            "to `xgboost.train`, which includes it in the plan.";
  for (auto [name, share] : {std::pair{"colsample_bylevel", param.colsample_bylevel},
                             {"colsample_bynode", param.colsample_bynode}}) {
    CHECK_EQ(share, 1.0f)
        << "`" << name
        << "` is not available with `dp_hist`. Remove it, or use `colsample_bytree`.";
  }
  CHECK_EQ(param.grow_policy, tree::TrainParam::kDepthWise)
      << "`grow_policy=lossguide` orders nodes by exact gains, which is not private. Remove it.";
  CHECK_EQ(param.max_leaves, 0)
      << "`max_leaves` is not available with `dp_hist`. Remove it, or use `max_depth`.";
  CHECK(param.reg_alpha == 0.0f && param.monotone_constraints.empty() &&
        param.interaction_constraints.empty())
      << "The updater must not have `alpha` or constraints. Pass them to `xgboost.train`, which "
         "includes them in the plan.";
}

void CheckMatrix(DMatrix* p_fmat, Plan const& plan, Persons const* persons) {
  auto const& info = p_fmat->Info();
  CHECK((persons != nullptr) == plan.IsPersonLevel())
      << "The plan and the DMatrix have different privacy units. Pass `dp_privacy_id` to "
         "`xgboost.train`, which sets both.";
  // Not CHECK_EQ, which would print the number of rows.
  CHECK(!persons || persons->NumRows() == info.num_row_)
      << "The number of rows of the DMatrix has changed since its privacy ids were set. Set the "
         "ids after the last change.";
  CHECK(!IsColumnSplit(&info)) << "The data are split by columns, but `dp_hist` needs data split "
                                  "by rows. Give each worker complete rows.";
  // A matrix without rows has no base margin and no labels.
  CHECK(info.num_row_ == 0 || !info.base_margin_.Empty() == plan.base_margin)
      << "Only one of the plan and the DMatrix has a `base_margin`. Set `dp_base_margin` if rows "
         "have margins; otherwise remove them.";
  bool is_interval = plan.loss && plan.loss->IsInterval();
  CHECK(info.num_row_ == 0 || is_interval || info.labels.Shape(1) == plan.NumLabels())
      << "The plan was calibrated for another number of targets. Train on the DMatrix that was "
         "passed to `xgboost.train`.";
  CHECK(is_interval ? info.labels_lower_bound_.Size() == info.num_row_ &&
                          info.labels_upper_bound_.Size() == info.num_row_
                    : info.num_row_ == 0 || info.labels.Shape(0) == info.num_row_)
      << "Some rows of the DMatrix have no label. Set the labels of all rows.";
  CHECK(info.group_ptr_.empty())
      << "Query groups are not available with `dp_hist`, because they couple rows. Remove them.";
  CHECK(p_fmat->PageExists<SparsePage>()) << "`dp_hist` refuses a QuantileDMatrix, because its "
                                             "bins are exact quantiles. Pass an xgboost.DMatrix.";
  if (collective::IsDistributed() && info.num_row_ == 0 && info.num_col_ == 0) {
    return;  // the matrix of a worker without data
  }
  CHECK_EQ(info.num_col_, static_cast<std::uint64_t>(plan.n_features))
      << "The plan was calibrated for another number of features. Train on the DMatrix that was "
         "passed to `xgboost.train`.";
  auto types = info.feature_types.ConstHostSpan();
  for (std::size_t f = 0; f < plan.features.size(); ++f) {
    auto is_cat = !types.empty() && types[f] == FeatureType::kCategorical;
    CHECK_EQ(is_cat, plan.features[f].kind == FeaturePlan::Kind::kCategorical)
        << "Feature " << f
        << " is categorical in only one of the plan and the DMatrix. Declare every categorical "
           "feature in `dp_categories`.";
  }
  auto weights = info.weights_.ConstHostSpan();
  CHECK(
      (plan.score != Score::kGain && plan.leaf.noise != LeafNoise::kOutput) ||
      std::all_of(weights.data(), weights.data() + weights.size(), [](float w) { return w == 1; }))
      << "The score 'gain' and output perturbation are proved for unit weights only. Remove the "
         "weights, or set another `dp_score` or `dp_leaf_noise`.";
}

void CheckRows(Context const* ctx, Plan const& plan, DMatrix* p_fmat) {
  auto const& labels = p_fmat->Info().labels.Data()->ConstHostVector();
  CHECK(!plan.IsLogistic() || std::all_of(labels.cbegin(), labels.cend(), [](float y) {
    return y == 0.0f || y == 1.0f;
  })) << "Labels of two classes must be 0 or 1.";
  std::uint64_t n_bytes = 0;
  ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
    CheckFeatures(ctx, plan, page);
    CHECK(page.Size() <= Limits().batch)  // CHECK_LE would print the number of rows
        << "A batch has too many rows. A batch must have fewer than 2^32 rows: pass smaller "
           "batches with a `DataIter`.";
    n_bytes += BinnedSize(plan, page);
  });
  CheckDiskSpace(p_fmat, n_bytes);
}

void CheckSums(Context const* ctx, Plan const& plan, std::uint64_t n_rows) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  auto largest = std::max(plan.row_bound.Unit(), plan.row_bound.MaxHessian());
  CheckNumRows(ctx, plan.masking, n_rows,
               std::min(static_cast<std::int64_t>(Limits().total), kExact / largest));
}

std::string const* Find(Args const& args, std::string const& key) {
  auto is_key = [&](auto const& kv) { return kv.first == key; };
  auto it = std::find_if(args.cbegin(), args.cend(), is_key);
  return it == args.cend() ? nullptr : &it->second;
}

void CheckFirstArgs(Args const& args, Plan const& plan) {
  // The row bound is proved for this objective; others may couple rows.
  auto objective = Find(args, "objective");
  CHECK(objective && *objective == plan.objective)
      << "The plan was calibrated for another objective. Set `objective` to `" << plan.objective
      << "`.";
  auto classes = Find(args, "num_class");
  CHECK(!plan.IsMulticlass() || (classes && *classes == std::to_string(plan.num_class)))
      << "The plan was calibrated for another number of classes. Set `num_class` to the value in "
         "the plan.";
  auto scale = Find(args, "scale_pos_weight");
  CHECK(!scale || plan.IsBinary() || std::strtod(scale->c_str(), nullptr) == 1.0)
      << "`scale_pos_weight` is for binary classification only. Remove it.";
  auto const& bound = plan.row_bound;
  CHECK(bound.mode != RowBound::Mode::kPrediction ||
        (scale ? std::strtod(scale->c_str(), nullptr) : 1.0) == bound.positive_weight)
      << "The plan was calibrated for another `scale_pos_weight`. Pass it to `xgboost.train`.";
}

void CheckLaterArgs(Args const& args, Plan const& plan) {
  // The plan was calibrated and recorded with the settings at the start of the training.
  static std::set<std::string> const kHarmless{"nthread",
                                               "n_jobs",
                                               "verbosity",
                                               "eval_metric",
                                               "disable_default_eval_metric",
                                               "validate_parameters",
                                               "seed",
                                               "random_state",
                                               kPlanKey,
                                               kStateKey};
  for (auto const& kv : args) {
    // The learner repeats the number of classes at each configuration; one class may be 0.
    if (kv.first == "num_class" && (kv.second == std::to_string(plan.num_class) ||
                                    (!plan.IsMulticlass() && kv.second == "0"))) {
      continue;
    }
    CHECK(kHarmless.count(kv.first) == 1)
        << "`" << kv.first
        << "` cannot change during a private training. Set it before the training.";
  }
}

std::string TakeClaim(Attributes const& attributes, KnownNoise const& known,
                      std::string const& plan_text, DMatrix const* train) {
  auto it = attributes.find(kLedgerAttribute);
  CHECK(it != attributes.cend() && IsClaimed(it->second, known, plan_text))
      << "The booster's privacy ledger does not account for this training. Call `xgboost.train` "
         "with `dp_epsilon` and `dp_delta`.";
  CHECK(UseClaim(it->second, train, Persons::Of(*train)))
      << "The privacy budget of this training is spent. A training cannot be continued from a "
         "checkpoint or a copy, or with other privacy ids. Call `xgboost.train` to start a new "
         "training.";
  return it->second;
}
}  // namespace xgboost::dp
