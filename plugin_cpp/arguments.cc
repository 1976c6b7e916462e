#include "plugin_cpp/arguments.h"

#include <cstdlib>  // for strtod
#include <set>      // for set
#include <string>   // for to_string

#include "plugin_cpp/guard.h"        // for Find, kPlanKey
#include "plugin_cpp/json_reader.h"  // for Require
#include "xgboost/json.h"            // for Json
#include "xgboost/logging.h"         // for CHECK

namespace xgboost::dp {
std::string IdOf(std::string const& plan_text) {
  if (plan_text.empty()) {
    return plan_text;
  }
  auto json = Json::Load(StringView{plan_text});
  Require(IsA<Object>(json), "it is not an object.");
  auto const& plan = get<Object const>(json);
  auto id = plan.find("id");
  return id != plan.cend() && IsA<String>(id->second) ? get<String const>(id->second) : plan_text;
}

void CheckFirstArgs(Args const& args, Plan const& plan) {
  // The row bound was proved for this objective. Others may couple rows.
  auto objective = Find(args, "objective");
  CHECK(objective && *objective == plan.objective)
      << "The plan was calibrated for another objective: set `" << plan.objective << "`.";
  auto classes = Find(args, "num_class");
  CHECK(!plan.IsMulticlass() || (classes && *classes == std::to_string(plan.num_class)))
      << "The plan was calibrated for another number of classes: set `num_class` of the plan.";
  auto scale = Find(args, "scale_pos_weight");
  CHECK(!scale || plan.IsBinary() || std::strtod(scale->c_str(), nullptr) == 1.0)
      << "`scale_pos_weight` is for binary classification only: leave it out.";
  auto const& bound = plan.row_bound;
  CHECK(bound.mode != RowBound::Mode::kPrediction ||
        (scale ? std::strtod(scale->c_str(), nullptr) : 1.0) == bound.positive_weight)
      << "The plan was calibrated for another `scale_pos_weight`: give it to `xgboost.train`.";
}

void CheckLaterArgs(Args const& args, Plan const& plan) {
  // The plan was calibrated and recorded with the settings of its start.
  static std::set<std::string> const kHarmless{"nthread",
                                               "n_jobs",
                                               "verbosity",
                                               "eval_metric",
                                               "disable_default_eval_metric",
                                               "validate_parameters",
                                               "seed",
                                               "random_state",
                                               kPlanKey};
  for (auto const& kv : args) {
    // The learner repeats the number of classes at each configuration; one class is 0 or 1 for
    // it.
    if (kv.first == "num_class" && (kv.second == std::to_string(plan.num_class) ||
                                    (!plan.IsMulticlass() && kv.second == "0"))) {
      continue;
    }
    CHECK(kHarmless.count(kv.first) == 1)
        << "`" << kv.first
        << "` cannot change in the middle of a private training: set it before the training.";
  }
}
}  // namespace xgboost::dp
