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
      << "`dp_hist` cannot be combined with other updaters: leave `updater` out.";
  auto updater = dynamic_cast<PrivateUpdater*>(updaters.front().get());
  CHECK(updater)
      << "`tree_method=dp_hist` was set, but another updater would run: leave `updater` and "
         "`process_type` out.";
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
      << "`tree_method` cannot change from `dp_hist` to `" << *tree_method << "`: the model "
      << "already has private trees, and further ones without privacy would void their "
         "guarantee. Train a new model.";
  for (auto const& kv : args) {
    if (!StartsWithDp(kv.first)) {
      continue;
    }
    CHECK(is_private) << "`" << kv.first << "` was given, but `tree_method` is not `dp_hist`: this "
                      << "would train without privacy. Set `tree_method=dp_hist`, or remove the "
                      << "dp_ parameters.";
    CHECK(kv.first == kPlanKey || kv.first == kStateKey)
        << "`" << kv.first << "` reached the trainer uncalibrated. Private training knows its "
        << "noise only when it knows the number of rounds: call `xgboost.train` (or the "
        << "scikit-learn interface) instead of `Booster.update`.";
  }
  if (!is_private) {
    return;
  }
  CHECK_EQ(booster, "gbtree") << "`tree_method=dp_hist` needs `booster=gbtree`: `" << booster
                              << "` would ignore it or has no privacy proof. Leave `booster` out.";
  for (auto key : {"updater", "updater_seq", "process_type"}) {
    auto value = Find(args, key);
    CHECK(!value || *value == "default")
        << "`" << key << "` cannot be combined with `tree_method=dp_hist`: it would replace the "
        << "private updater. Leave it out.";
  }
  // Since 3.4 the tree booster can drop trees.
  for (auto key : {"rate_drop", "one_drop", "skip_drop"}) {
    CHECK(!Find(args, key))
        << "`" << key << "` cannot be combined with `tree_method=dp_hist`: "
        << "trees would be dropped, and weighted otherwise than the plan says. Leave it out.";
  }
}

void CheckPredict(Attributes const& attributes, DMatrix const& data) {
  CHECK(attributes.find(kLedgerAttribute) == attributes.cend() || data.PageExists<SparsePage>())
      << "A private model predicts for a plain DMatrix only: the bins of a QuantileDMatrix may be "
      << "exact quantiles of the training rows (`ref`). Pass an xgboost.DMatrix.";
}

void CheckUpdate(GradientBooster const& gbm, Attributes const& attributes,
                 std::shared_ptr<DMatrix> const& train, bool estimate_intercept,
                 bool custom_gradient) {
  if (!IsPrivate(gbm)) {
    CHECK(attributes.find(kLedgerAttribute) == attributes.cend())
        << "This model carries a privacy ledger. Trees from a method without privacy would make "
        << "the ledger untrue: continue with `xgboost.train` and `tree_method=dp_hist`, or train "
        << "a new model.";
    return;
  }
  CHECK(!custom_gradient)
      << "`tree_method=dp_hist` refuses custom gradients: nothing bounds how "
      << "much one row changes the gradients of the others. Use an objective of the parameter "
         "table, or `dp_objective`.";
  CHECK(!estimate_intercept || gbm.ModelFitted())
      << "`base_score` is missing: XGBoost would publish the exact mean of the labels. "
      << "`xgboost.train` releases a private one; without it, set a public `base_score`.";
  GetUpdater(gbm).BeforeIteration(attributes, train);
}

void ShowGradients(GradientBooster const& gbm, GradientContainer const& gpair,
                   HostDeviceVector<float> const& margins) {
  if (IsPrivate(gbm)) {
    GetUpdater(gbm).TakeGradients(gpair, margins);
  }
}
}  // namespace xgboost::dp
