#include "plugin_cpp/round_events.h"

#include <cstdint>  // for int32_t, uint64_t
#include <vector>   // for vector

#include "plugin_cpp/candidates/candidates.h"  // for CandidateEvent
#include "plugin_cpp/leaf/release.h"           // for LeafEvent

namespace xgboost::dp {
namespace {
/** @brief Whether the releases of a round are recorded as one, with the rows that it reads. */
bool ReadsPart(Plan const& plan) { return plan.IsSampled() || plan.parts > 1; }

/** @brief The selections that one row takes part in, in all trees of one round. */
LedgerEvent SelectionsOfRound(Plan const& plan) {
  auto event = ExponentialEvent("splits", plan.eps_num);
  event.count =
      static_cast<std::uint64_t>(plan.SelectionsOfTree()) * plan.n_groups * plan.parallel_trees;
  return event;
}
}  // namespace

void RecordRound(Plan const& plan, std::int32_t round, Ledger* ledger) {
  std::vector<LedgerEvent> events;
  if (plan.NumPrivateFeatures() > 0 && round < plan.candidates.rounds) {
    auto candidates = CandidateEvent(plan);
    if (plan.candidates.hessian) {
      events.push_back(candidates);  // reads gradients, hence the rows of the round only
    } else {
      ledger->Record(candidates);
    }
  }
  auto leaves = LeafEvent(plan);
  if (!ReadsPart(plan)) {
    events.push_back(leaves);
    for (auto const& event : events) {
      ledger->Record(event);
    }
    return;
  }
  if (plan.split == SplitChoice::kExponential) {
    events.push_back(SelectionsOfRound(plan));
  }
  events.push_back(leaves);
  if (plan.IsSampled()) {
    ledger->Record(SampledEvent(plan.sampling_num, events));
  } else if (round % plan.parts == 0) {
    ledger->Record(ParallelEvent(plan.parts, events));
  }
}

Ledger EventsOfPlan(Plan const& plan) {
  Ledger ledger;
  bool selects = plan.split == SplitChoice::kExponential && plan.SelectionsOfTree() > 0;
  for (std::int32_t round = 0; round < plan.rounds; ++round) {
    RecordRound(plan, round, &ledger);
    if (selects && !ReadsPart(plan)) {
      ledger.Record(SelectionsOfRound(plan));
    }
  }
  return ledger;
}
}  // namespace xgboost::dp
