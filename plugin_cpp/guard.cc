#include "plugin_cpp/guard.h"

#include "gbm/gbtree.h"            // for GBTree, TreeMethod
#include "plugin_cpp/checks.h"     // for Find
#include "plugin_cpp/plan/plan.h"  // for kPlanKey, kStateKey
#include "xgboost/logging.h"       // for CHECK

namespace xgboost::dp {
namespace {
bool StartsWithDp(std::string const& s) { return s.rfind("dp_", 0) == 0; }

PrivateUpdater& GetUpdater(GradientBooster const& gbm) {
  auto const& updaters = dynamic_cast<gbm::GBTree const&>(gbm).Updaters();
  CHECK_EQ(updaters.size(), 1)
      << "`dp_hist` cannot be combined with other updaters. Remove `updater`.";
  auto updater = dynamic_cast<PrivateUpdater*>(updaters.front().get());
  CHECK(updater) << "`tree_method=dp_hist` was set, but another updater would run. Remove "
                    "`updater` and `process_type`.";
  return *updater;
}
}  // namespace

bool IsPrivate(GradientBooster const& gbm) {
  auto tree_booster = dynamic_cast<gbm::GBTree const*>(&gbm);
  if (!tree_booster) {
    return false;
  }
  // A loaded booster has no parameters before it is configured, not even default ones.
  auto const& param = tree_booster->GetTrainParam();
  return param.GetInitialised() && param.tree_method == TreeMethod::kDpHist;
}

void CheckArgs(Args const& args, std::string const& booster, GradientBooster const* gbm) {
  auto tree_method = Find(args, "tree_method");
  bool is_private = tree_method ? StartsWithDp(*tree_method) : (gbm && IsPrivate(*gbm));
  CHECK(is_private || !gbm || !IsPrivate(*gbm) || !gbm->ModelFitted())
      << "`tree_method` cannot change from `dp_hist` to `" << *tree_method
      << "`: the model has private trees, and adding trees without privacy would void its "
         "guarantee. Train a new model.";
  for (auto const& kv : args) {
    if (!StartsWithDp(kv.first)) {
      continue;
    }
    CHECK(is_private) << "`" << kv.first
                      << "` was set, but `tree_method` is not `dp_hist`, so the training would not "
                         "be private. Set `tree_method=dp_hist`, or remove the dp_* parameters.";
    CHECK(kv.first == kPlanKey || kv.first == kStateKey)
        << "`" << kv.first
        << "` reached the trainer uncalibrated. Calibrating the noise requires the number of "
           "rounds. Call `xgboost.train` (or use the scikit-learn interface) instead of "
           "`Booster.update`.";
  }
  if (!is_private) {
    return;
  }
  CHECK_EQ(booster, "gbtree")
      << "`tree_method=dp_hist` requires `booster=gbtree`: `" << booster
      << "` ignores `tree_method` or has no privacy proof. Remove `booster`.";
  for (auto key : {"updater", "updater_seq", "process_type"}) {
    auto value = Find(args, key);
    CHECK(!value || *value == "default")
        << "`" << key
        << "` cannot be combined with `tree_method=dp_hist`, because it would replace the private "
           "updater. Remove it.";
  }
  // Since 3.4 the tree booster can drop trees.
  for (auto key : {"rate_drop", "one_drop", "skip_drop"}) {
    CHECK(!Find(args, key)) << "`" << key
                            << "` cannot be combined with `tree_method=dp_hist`, because dropping "
                               "trees would change the tree weights in the plan. Remove it.";
  }
}

void CheckPredict(Attributes const& attributes, DMatrix const& data) {
  CHECK(attributes.find(kLedgerAttribute) == attributes.cend() || data.PageExists<SparsePage>())
      << "A private model cannot predict for a QuantileDMatrix, because its bins may be exact "
         "quantiles of the training rows (`ref`). Pass an xgboost.DMatrix.";
}

void CheckUpdate(GradientBooster const& gbm, Attributes const& attributes,
                 std::shared_ptr<DMatrix> const& train, bool estimate_intercept,
                 bool custom_gradient) {
  if (!IsPrivate(gbm)) {
    CHECK(attributes.find(kLedgerAttribute) == attributes.cend())
        << "This model has a privacy ledger, which would not account for trees grown without "
           "privacy. Continue with `xgboost.train` and `tree_method=dp_hist`, or train a new "
           "model.";
    return;
  }
  CHECK(!custom_gradient) << "`tree_method=dp_hist` refuses custom gradients: there is no bound on "
                             "how much one row changes the gradients of other rows. Use an "
                             "objective that supports private training, or `dp_objective`.";
  CHECK(!estimate_intercept || gbm.ModelFitted())
      << "`base_score` is missing, so XGBoost would publish the exact mean of the labels. Call "
         "`xgboost.train`, which releases a private intercept, or set a public `base_score`.";
  GetUpdater(gbm).BeforeIteration(attributes, train);
}

bool NeedsGradients(GradientBooster const& gbm, HostDeviceVector<float> const& margins,
                    GradientContainer* gpair) {
  return !IsPrivate(gbm) || GetUpdater(gbm).TakeMargins(margins, gpair);
}
}  // namespace xgboost::dp
