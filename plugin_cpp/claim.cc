#include "plugin_cpp/checks.h"

#include <algorithm>  // for all_of, any_of, max
#include <cmath>      // for abs
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint64_t
#include <string>     // for string
#include <utility>    // for pair
#include <variant>    // for visit
#include <vector>     // for vector

#include "plugin_cpp/plan/plan.h"       // for EventOfRound, CandidateEvent, CorrectionEvent
#include "plugin_cpp/release/ledger.h"  // for LedgerEntry, ToJson, UseClaim
#include "xgboost/json.h"               // for Json
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
namespace {
/**
 * @brief Whether a value of a ledger is the wanted one; an object may have other fields besides.
 *        JSON keeps real numbers as 32-bit floats.
 */
bool Has(Json const& json, Json const& wanted) {
  if (IsA<Object>(wanted) && IsA<Object>(json)) {
    auto const& fields = get<Object const>(json);
    auto const& all = get<Object const>(wanted);
    return std::all_of(all.cbegin(), all.cend(), [&](auto const& field) {
      auto it = fields.find(field.first);
      return it != fields.cend() && Has(it->second, field.second);
    });
  }
  if (IsA<Number>(wanted) && (IsA<Integer>(json) || IsA<Number>(json))) {
    double value = get<Number const>(wanted);
    double read = IsA<Integer>(json) ? static_cast<double>(get<Integer const>(json))
                                     : static_cast<double>(get<Number const>(json));
    return std::abs(read - value) <= 1e-6 * std::abs(value);
  }
  return json == wanted;
}

Json Whole(std::int64_t value) { return Json{Integer{value}}; }
Json Real(double value) { return Json{Number{static_cast<float>(value)}}; }
Json Truth(bool value) { return Json{Boolean{value}}; }
template <typename T>
Json Name(char const* const* names, T value) {
  return Json{String{names[static_cast<int>(value)]}};
}

Json FiguresOf(RowBound const& bound) {
  Json out{Object{}};
  out["mode"] = Name(RowBound::kModes, bound.mode);
  out["unit_hessian"] = Truth(bound.unit_hessian);
  out["of_person"] = Truth(bound.of_person);
  out["gradient_bound"] = Real(bound.gradient_bound);
  out["hessian_weight"] = Real(bound.hessian_weight);
  out["hessian_bound"] = Real(bound.hessian_bound);
  out["max_weight"] = Real(bound.max_weight);
  out["rows_per_person"] = Real(bound.rows_per_person);
  out["output_gradient"] = Real(bound.output_gradient);
  out["output_hessian"] = Real(bound.output_hessian);
  return out;
}

/** @brief The figures of a plan on which its sensitivities rest, as ledgers have them. */
Json FiguresOf(Plan const& plan) {
  Json out{Object{}};
  out["candidates"] = Json{};
  if (plan.NumPrivateFeatures() > 0) {
    auto const& counts = plan.candidates;
    bool tree = counts.kind == CandidateKind::kQuantileTree;
    Json candidates{Object{}};
    candidates["features"] = Whole(plan.NumPrivateFeatures());
    candidates["levels"] = Whole(tree ? counts.levels : 1);
    candidates["shift"] = Whole(counts.shift);
    candidates["hessian"] = Truth(counts.hessian);
    out["candidates"] = candidates;
  }
  out["bound"] = FiguresOf(plan.row_bound);
  out["unit"] = Json{String{plan.IsOfPersons() ? "person" : "row"}};
  out["grid_bits"] = Whole(plan.row_bound.grid_bits);
  out["trees"] = Whole(plan.num_class);
  out["depth"] = Whole(plan.depth);
  out["columns"] = Whole(plan.n_features);
  out["features_per_tree"] = Whole(plan.features_per_tree);
  out["split"] = Name(kSplits, plan.split);
  out["score"] = Name(kScores, plan.score);
  out["score_clip"] = Real(plan.score_clip);
  out["score_range"] = Whole(plan.score_range);
  out["joint"] = Truth(plan.SharesSplits());
  out["leaf_noise"] = Name(kLeafNoises, plan.leaf.noise);
  out["spread"] = Truth(plan.leaf.spread);
  out["corrects"] = Truth(plan.correction.is_on);
  return out;
}

/** @brief A draw, and how often it is made: in each round that pays for it, or 0; and in all. */
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
    out.push_back({CandidateEvent(plan), 0, times});
  }
  if (plan.correction.is_on) {
    out.push_back({CorrectionEvent(plan), 0, CorrectionPlan::kTimes});
  }
  return out;
}

/** @brief Whether an event, or one inside it, is a draw with its noise, as often. */
bool IsOf(Json const& event, Planned const& draw, Plan const& plan, bool in_round) {
  if (!IsA<Object>(event)) {
    return false;
  }
  auto const& in = get<Object const>(event);
  if (auto events = in.find("events"); events != in.cend()) {
    // A round is cheaper than what it releases: it must be the one that is planned.
    auto counted = (plan.rounds + plan.ensemble - 1) / plan.ensemble;
    if (in_round || draw.of_round == 0 || !plan.ReadsSomeRows() ||
        !Has(event, ToJson(EventOfRound(plan, 0), counted, plan.IsOfPersons()))) {
      return false;
    }
    auto const& list = get<Array const>(events->second);
    return std::any_of(list.cbegin(), list.cend(),
                       [&](auto const& one) { return IsOf(one, draw, plan, true); });
  }
  auto wanted = ToJson({draw.event, in_round ? draw.of_round : draw.of_all}, plan.IsOfPersons());
  get<Object>(wanted).erase("range");  // of a selection: a figure of the plan
  return Has(event, wanted);
}

/** @brief All events of a ledger, with those of each plan that might have been taken. */
std::vector<std::vector<Json>> WaysOf(std::vector<Json> const& events) {
  std::vector<Json> always;
  std::vector<std::vector<Json>> ways;
  for (auto const& event : events) {
    auto const& in = get<Object const>(event);
    auto options = in.find("options");
    if (options == in.cend()) {
      always.push_back(event);
      continue;
    }
    for (auto const& option : get<Array const>(options->second)) {
      ways.push_back(get<Array const>(option));
    }
  }
  ways.resize(std::max(ways.size(), std::size_t{1}));
  for (auto& way : ways) {
    way.insert(way.end(), always.cbegin(), always.cend());
  }
  return ways;
}

bool AccountsFor(Json const& ledger, Plan const& plan) {
  auto const& trainings = get<Array const>(ledger["trainings"]);
  if (trainings.empty()) {
    return false;
  }
  auto const& training = trainings.back();
  Json wanted{Object{}};
  wanted["plan_digest"] = Json{String{plan.id}};
  wanted["complete"] = Truth(false);
  wanted["rounds"] = Whole(plan.rounds);
  if (!Has(training, wanted)) {
    return false;
  }
  if (!plan.known.IsPrivate()) {
    Json marked{Object{}};
    marked["private"] = Truth(false);
    marked["noise"] = Json{String{plan.known.Source()}};
    return Has(ledger, marked);
  }
  if (!IsA<Array>(training["enforced"])) {
    return false;
  }
  auto const& enforced = get<Array const>(training["enforced"]);
  auto figures = FiguresOf(plan);
  auto draws = DrawsOf(plan);
  auto ways = WaysOf(get<Array const>(training["events"]));
  if (enforced.size() != ways.size()) {
    return false;
  }
  // Figures and draws have to be those of the same plan.
  for (std::size_t i = 0; i < ways.size(); ++i) {
    auto accounts = [&](auto const& draw) {
      return std::any_of(ways[i].cbegin(), ways[i].cend(),
                         [&](auto const& event) { return IsOf(event, draw, plan, false); });
    };
    if (Has(enforced[i], figures) && std::all_of(draws.cbegin(), draws.cend(), accounts)) {
      return true;
    }
  }
  return false;
}
}  // namespace

std::string TakeClaim(Attributes const& attributes, Plan const& plan, DMatrix const* train) {
  auto it = attributes.find(kLedgerAttribute);
  bool covered = it != attributes.cend() && AccountsFor(Json::Load(StringView{it->second}), plan);
  CHECK(covered) << "The booster's privacy ledger does not account for this training: call "
                 << "`xgboost.train` with `dp_epsilon` and `dp_delta`.";
  CHECK(UseClaim(it->second, train))
      << "The privacy budget of this training is spent, and a checkpoint or a copy of it cannot go "
         "on: call `xgboost.train` to start a new training.";
  return it->second;
}
}  // namespace xgboost::dp
