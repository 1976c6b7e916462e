#include "plugin_cpp/claim.h"

#include <algorithm>  // for all_of, any_of
#include <cmath>      // for abs
#include <cstdint>    // for int64_t, uint64_t
#include <string>     // for string
#include <utility>    // for pair
#include <variant>    // for visit
#include <vector>     // for vector

#include "plugin_cpp/plan/draws.h"      // for EventOfRound, CandidateEvent, CorrectionEvent
#include "plugin_cpp/release/ledger.h"  // for LedgerEntry, ToJson
#include "xgboost/json.h"               // for Json
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
namespace {
/** @brief The fields of a JSON object, compared with what is true. */
class Fields {
 public:
  explicit Fields(Json const& json)
      : object_{IsA<Object>(json) ? &get<Object const>(json) : nullptr} {}

  [[nodiscard]] Json const* Find(std::string const& key) const {
    if (!object_) {
      return nullptr;
    }
    auto it = object_->find(key);
    return it == object_->cend() ? nullptr : &it->second;
  }
  [[nodiscard]] bool Is(std::string const& key, std::int64_t value) const {
    auto const* json = this->Find(key);
    return json && IsA<Integer>(*json) && get<Integer const>(*json) == value;
  }
  /** @brief JSON keeps real numbers as 32-bit floats. */
  [[nodiscard]] bool IsReal(std::string const& key, double value) const {
    auto const* json = this->Find(key);
    if (!json || !(IsA<Integer>(*json) || IsA<Number>(*json))) {
      return false;
    }
    double read = IsA<Integer>(*json) ? static_cast<double>(get<Integer const>(*json))
                                      : static_cast<double>(get<Number const>(*json));
    return std::abs(read - value) <= 1e-6 * std::abs(value);
  }
  [[nodiscard]] bool Is(std::string const& key, char const* value) const {
    auto const* json = this->Find(key);
    return json && IsA<String>(*json) && get<String const>(*json) == value;
  }
  [[nodiscard]] bool IsTrue(std::string const& key, bool value) const {
    auto const* json = this->Find(key);
    return json && IsA<Boolean>(*json) && get<Boolean const>(*json) == value;
  }

 private:
  Object::Map const* object_;
};

bool IsBound(Json const& json, RowBound const& bound) {
  Fields in{json};
  std::vector<std::pair<char const*, double>> reals{
      {"gradient_bound", bound.gradient_bound},   {"hessian_weight", bound.hessian_weight},
      {"hessian_bound", bound.hessian_bound},     {"max_weight", bound.max_weight},
      {"rows_per_person", bound.rows_per_person}, {"output_gradient", bound.output_gradient},
      {"output_hessian", bound.output_hessian}};
  return in.Is("mode", RowBound::kModes[static_cast<int>(bound.mode)]) &&
         in.IsTrue("unit_hessian", bound.unit_hessian) && in.IsTrue("of_person", bound.of_person) &&
         std::all_of(reals.cbegin(), reals.cend(),
                     [&](auto const& field) { return in.IsReal(field.first, field.second); });
}

bool AreCandidates(Json const& json, Plan const& plan) {
  if (plan.NumPrivateFeatures() == 0) {
    return IsA<Null>(json);
  }
  auto const& counts = plan.candidates;
  bool tree = counts.kind == CandidateKind::kQuantileTree;
  Fields in{json};
  return in.Is("features", plan.NumPrivateFeatures()) &&
         in.Is("levels", std::int64_t{tree ? counts.levels : 1}) &&
         in.Is("shift", std::int64_t{counts.shift}) && in.IsTrue("hessian", counts.hessian);
}

/** @brief Whether these are the figures of the plan on which its sensitivities rest. */
bool AreEnforced(Json const& json, Plan const& plan) {
  Fields in{json};
  auto const* bound = in.Find("bound");
  auto const* candidates = in.Find("candidates");
  std::vector<std::pair<char const*, std::int64_t>> wholes{
      {"grid_bits", plan.row_bound.grid_bits},
      {"trees", plan.num_class},
      {"depth", plan.depth},
      {"columns", plan.n_features},
      {"features_per_tree", plan.features_per_tree},
      {"score_range", static_cast<std::int64_t>(plan.score_range)}};
  return bound && IsBound(*bound, plan.row_bound) && candidates &&
         AreCandidates(*candidates, plan) && in.Is("unit", plan.IsOfPersons() ? "person" : "row") &&
         in.Is("split", kSplits[static_cast<int>(plan.split)]) &&
         in.Is("score", kScores[static_cast<int>(plan.score)]) &&
         in.Is("leaf_noise", kLeafNoises[static_cast<int>(plan.leaf.noise)]) &&
         in.IsReal("score_clip", plan.score_clip) && in.IsTrue("joint", plan.SharesSplits()) &&
         in.IsTrue("spread", plan.leaf.spread) && in.IsTrue("corrects", plan.correction.is_on) &&
         std::all_of(wholes.cbegin(), wholes.cend(),
                     [&](auto const& field) { return in.Is(field.first, field.second); });
}

/** @brief A draw, and how often it is made: in a round, and in all of them. */
struct Planned {
  DrawEvent event;
  std::uint64_t of_round, of_all;
};

std::vector<Planned> DrawsOf(Plan const& plan) {
  std::vector<Planned> out;
  for (auto const& entry : EventOfRound(plan, 0).entries) {
    out.push_back({entry.event, entry.count, entry.count * plan.rounds});
  }
  bool in_rounds = plan.candidates.hessian && plan.candidates.rounds == plan.rounds;
  if (plan.NumPrivateFeatures() > 0 && !in_rounds) {
    auto times = static_cast<std::uint64_t>(plan.candidates.rounds);
    if (plan.candidates.hessian) {
      out.erase(out.begin());  // of the first rounds only
    }
    out.push_back({LedgerEntry{CandidateEvent(plan), 1}.event, times, times});
  }
  if (plan.correction.is_on) {
    out.push_back(
        {DrawEvent{CorrectionEvent(plan)}, CorrectionPlan::kTimes, CorrectionPlan::kTimes});
  }
  return out;
}

/** @brief Whether events, or those inside them, name a draw with its noise, as often. */
bool AccountFor(Json const& json, Planned const& draw, bool of_persons, bool in_round) {
  if (IsA<Array>(json)) {
    auto const& list = get<Array const>(json);
    return std::any_of(list.cbegin(), list.cend(), [&](auto const& one) {
      return AccountFor(one, draw, of_persons, in_round);
    });
  }
  Fields in{json};
  for (auto const* inner : {"first", "options"}) {
    if (auto const* events = in.Find(inner);
        events && AccountFor(*events, draw, of_persons, in_round)) {
      return true;
    }
  }
  if (auto const* events = in.Find("events")) {
    return AccountFor(*events, draw, of_persons, true);
  }
  auto told = ToJson({draw.event, in_round ? draw.of_round : draw.of_all}, of_persons);
  auto const& wanted = get<Object const>(told);
  return std::all_of(wanted.cbegin(), wanted.cend(), [&](auto const& field) {
    auto const* json = in.Find(field.first);
    // The range of a selection is a figure of the plan.
    return field.first == "range" || (json && *json == field.second);
  });
}

bool AccountsFor(Json const& training, Plan const& plan) {
  Fields in{training};
  auto const* enforced = in.Find("enforced");
  auto const* events = in.Find("events");
  if (!in.Is("plan_digest", plan.id.c_str()) || !in.IsTrue("complete", false) ||
      !in.Is("rounds", std::int64_t{plan.rounds}) || !enforced || !IsA<Array>(*enforced) ||
      !events) {
    return false;
  }
  auto const& ways = get<Array const>(*enforced);
  auto draws = DrawsOf(plan);
  return std::any_of(ways.cbegin(), ways.cend(),
                     [&](auto const& way) { return AreEnforced(way, plan); }) &&
         std::all_of(draws.cbegin(), draws.cend(), [&](auto const& draw) {
           return AccountFor(*events, draw, plan.IsOfPersons(), false);
         });
}
}  // namespace

void CheckClaim(Attributes const& attributes, Plan const& plan) {
  bool claimed = false;
  auto it = attributes.find(kLedgerAttribute);
  if (it != attributes.cend()) {
    auto ledger = Json::Load(StringView{it->second});
    auto const& trainings = get<Array const>(ledger["trainings"]);
    claimed = !trainings.empty() && AccountsFor(trainings.back(), plan);
  }
  CHECK(claimed) << "The booster's privacy ledger does not account for this training: call "
                 << "`xgboost.train` with `dp_epsilon` and `dp_delta`.";
}
}  // namespace xgboost::dp
