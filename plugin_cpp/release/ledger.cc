#include "plugin_cpp/release/ledger.h"

#include <algorithm>  // for find_if, equal
#include <string>     // for string
#include <utility>    // for move
#include <vector>     // for vector

#include "plugin_cpp/plan/plan.h"  // for Plan

namespace xgboost::dp {
LedgerEvent GaussianEvent(std::string release, std::uint64_t sensitivity2, std::uint64_t sigma2,
                          std::uint64_t coordinates) {
  LedgerEvent event;
  event.mechanism = "gaussian";
  event.release = std::move(release);
  event.sensitivity2 = sensitivity2;
  event.sigma2 = sigma2;
  event.coordinates = coordinates;
  event.count = 1;
  return event;
}

LedgerEvent LaplaceEvent(std::string release, std::uint64_t sensitivity, std::uint64_t scale) {
  LedgerEvent event;
  event.mechanism = "laplace";
  event.release = std::move(release);
  event.sensitivity = sensitivity;
  event.scale = scale;
  event.count = 1;
  return event;
}

LedgerEvent ExponentialEvent(std::string release, std::uint64_t eps_num) {
  LedgerEvent event;
  event.mechanism = "exponential";
  event.release = std::move(release);
  event.eps_num = eps_num;
  event.count = 1;
  return event;
}

LedgerEvent SampledEvent(std::uint64_t rate_num, std::vector<LedgerEvent> events) {
  LedgerEvent event;
  event.mechanism = "poisson";
  event.rate_num = rate_num;
  event.count = 1;
  event.events = std::move(events);
  return event;
}

LedgerEvent ParallelEvent(std::uint64_t parts, std::vector<LedgerEvent> events) {
  LedgerEvent event;
  event.mechanism = "parallel";
  event.parts = parts;
  event.count = 1;
  event.events = std::move(events);
  return event;
}

bool LedgerEvent::SameMechanism(LedgerEvent const& that) const {
  return mechanism == that.mechanism && release == that.release &&
         sensitivity2 == that.sensitivity2 && sigma2 == that.sigma2 &&
         coordinates == that.coordinates && sensitivity == that.sensitivity &&
         scale == that.scale && eps_num == that.eps_num && rate_num == that.rate_num &&
         parts == that.parts &&
         std::equal(events.cbegin(), events.cend(), that.events.cbegin(), that.events.cend(),
                    [](auto const& a, auto const& b) {
                      return a.count == b.count && a.SameMechanism(b);
                    });
}

namespace {
Json ToJson(std::vector<LedgerEvent> const& events) {
  Array out;
  for (auto const& e : events) {
    out.GetArray().push_back(ToJson(e));
  }
  return Json{std::move(out)};
}
}  // namespace

Json ToJson(LedgerEvent const& event) {
  auto integer = [](std::uint64_t v) { return Integer{static_cast<Integer::Int>(v)}; };
  Json out{Object{}};
  out["mechanism"] = String{event.mechanism};
  out["count"] = integer(event.count);
  if (event.mechanism == "poisson") {
    out["rate_num"] = integer(event.rate_num);
    out["rate_bits"] = Integer{Plan::kSampleBits};
    out["events"] = ToJson(event.events);
    return out;
  }
  if (event.mechanism == "parallel") {
    out["parts"] = integer(event.parts);
    out["events"] = ToJson(event.events);
    return out;
  }
  out["release"] = String{event.release};
  if (event.mechanism == "gaussian") {
    out["sensitivity2"] = integer(event.sensitivity2);
    out["sigma2"] = integer(event.sigma2);
    out["coordinates"] = integer(event.coordinates);
  } else if (event.mechanism == "laplace") {
    out["sensitivity"] = integer(event.sensitivity);
    out["scale"] = integer(event.scale);
  } else {
    out["eps_num"] = integer(event.eps_num);
    out["eps_bits"] = Integer{Plan::kEpsBits};
  }
  return out;
}

void Ledger::Record(LedgerEvent const& event) {
  auto it = std::find_if(events_.begin(), events_.end(),
                         [&](auto const& e) { return e.SameMechanism(event); });
  if (it == events_.end()) {
    events_.push_back(event);
  } else {
    it->count += event.count;
  }
}

Json Ledger::SaveEvents() const { return ToJson(events_); }
}  // namespace xgboost::dp
