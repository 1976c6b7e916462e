#include <algorithm>  // for any_of
#include <string>     // for string
#include <vector>     // for vector

#include "plugin_cpp/checks.h"
#include "plugin_cpp/json_reader.h"      // for JsonReader, KnownNoise
#include "plugin_cpp/release/digests.h"  // for PlanDigest
#include "plugin_cpp/release/ledger.h"   // for Attributes, kLedgerAttribute, UseClaim
#include "plugin_cpp/rows/persons.h"     // for Persons
#include "xgboost/json.h"                // for Json, String
#include "xgboost/logging.h"             // for CHECK
#include "xgboost/string_view.h"         // for StringView

namespace xgboost::dp {
namespace {
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

std::string TakeClaim(Attributes const& attributes, KnownNoise const& known,
                      std::string const& plan_text, DMatrix const* train) {
  auto it = attributes.find(kLedgerAttribute);
  CHECK(it != attributes.cend() && IsClaimed(it->second, known, plan_text))
      << "The booster's privacy ledger does not account for this training: call `xgboost.train` "
         "with `dp_epsilon` and `dp_delta`.";
  CHECK(UseClaim(it->second, train, Persons::Of(*train)))
      << "The privacy budget of this training is spent, and a checkpoint or a copy of it cannot go "
         "on, and neither can a training with other ids of persons: call `xgboost.train` to start "
         "a new training.";
  return it->second;
}
}  // namespace xgboost::dp
