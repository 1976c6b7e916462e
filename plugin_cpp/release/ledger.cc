#include "plugin_cpp/release/ledger.h"

#include <algorithm>  // for find_if, max
#include <mutex>      // for lock_guard, mutex
#include <tuple>      // for tie
#include <utility>    // for move

#include "collective/communicator-inl.h"  // for GetRank, GetWorldSize
#include "plugin_cpp/random/chacha20.h"   // for ForkGeneration, SystemKey
#include "plugin_cpp/release/sha256.h"    // for Digest, Sha256, ToHex

namespace xgboost::dp {
// Not in the unnamed namespace: comparisons of variants and vectors need to find them.
static bool operator==(NoiseEvent const& a, NoiseEvent const& b) {
  return std::tie(a.release, a.is_laplace, a.parameter) ==
         std::tie(b.release, b.is_laplace, b.parameter);
}
static bool operator==(SelectionEvent const& a, SelectionEvent const& b) {
  return std::tie(a.release, a.eps_num, a.range) == std::tie(b.release, b.eps_num, b.range);
}
static bool operator==(LedgerEntry const& a, LedgerEntry const& b) {
  return a.count == b.count && a.event == b.event;
}
static bool operator==(RoundEvent const& a, RoundEvent const& b) {
  return std::tie(a.rate_num, a.ensemble, a.entries) == std::tie(b.rate_num, b.ensemble, b.entries);
}

namespace {
/** @brief Claims that a training of this process may still use. */
struct Claims {
  std::mutex mutex;
  // Shared ownership, so that no other persons get the same address.
  std::map<Digest, std::shared_ptr<void const>> persons;
};

Claims& OpenClaims() {
  static Claims claims;
  return claims;
}

/** @brief A claim is valid for one matrix, one worker, and the process that opened it. */
Digest ClaimKey(std::string const& ledger, DMatrix const* train) {
  Sha256 hash;
  hash.Append(ledger);
  for (auto part : {static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(train)),
                    static_cast<std::uint64_t>(collective::GetRank()),
                    static_cast<std::uint64_t>(collective::GetWorldSize()), ForkGeneration()}) {
    hash.Append(part);
  }
  return hash.Finish();
}

LedgerEntry* Find(std::vector<LedgerEntry>* entries, DrawEvent const& event) {
  auto it = std::find_if(entries->begin(), entries->end(),
                         [&](auto const& entry) { return entry.event == event; });
  return it == entries->end() ? nullptr : &*it;
}

Integer ToInteger(std::uint64_t v) { return Integer{static_cast<Integer::Int>(v)}; }

void Save(NoiseEvent const& event, Json* out) {
  (*out)["mechanism"] = String{event.is_laplace ? "laplace" : "gaussian"};
  (*out)[event.is_laplace ? "scale" : "sigma2"] = ToInteger(event.parameter);
}
void Save(SelectionEvent const& event, Json* out) {
  (*out)["mechanism"] = String{"exponential"};
  (*out)["eps_num"] = ToInteger(event.eps_num);
  (*out)["eps_bits"] = Integer{kEpsBits};
  (*out)["range"] = ToInteger(event.range);
}

/** @brief Add the unit to an event, unless it is a row, the default. */
void NameUnit(bool person_level, Json* out) {
  if (person_level) {
    (*out)["unit"] = String{"person"};
  }
}

Json ToJson(LedgerEntry const& entry, bool person_level) {
  Json out{Object{}};
  std::visit(
      [&](auto const& event) {
        Save(event, &out);
        out["release"] = String{event.release};
      },
      entry.event);
  out["count"] = ToInteger(entry.count);
  NameUnit(person_level, &out);
  return out;
}

/** @brief JSON of `count` equal rounds, without their entries. */
Json ToJson(RoundEvent const& round, std::uint64_t count, bool person_level) {
  Json out{Object{}};
  out["count"] = ToInteger(count);
  if (round.rate_num > 0) {
    out["mechanism"] = String{"poisson"};
    out["rate_num"] = ToInteger(round.rate_num);
    out["rate_bits"] = Integer{kSampleBits};
  } else {
    out["mechanism"] = String{"parallel"};
    out["parts"] = ToInteger(round.ensemble);
  }
  NameUnit(person_level, &out);
  return out;
}

void Append(std::vector<LedgerEntry> const& entries, bool person_level, Array* out) {
  for (auto const& entry : entries) {
    out->GetArray().push_back(ToJson(entry, person_level));
  }
}
}  // namespace

std::string NewTrainingId() {
  constexpr std::size_t kBytes = 16;
  return ToHex(SystemKey().data(), kBytes);
}

void OpenClaim(std::string const& ledger, DMatrix const* train,
               std::shared_ptr<void const> persons) {
  auto digest = ClaimKey(ledger, train);
  auto& open = OpenClaims();
  std::lock_guard lock{open.mutex};
  open.persons[digest] = std::move(persons);
}

bool UseClaim(std::string const& ledger, DMatrix const* train,
              std::shared_ptr<void const> const& persons) {
  auto digest = ClaimKey(ledger, train);
  auto& open = OpenClaims();
  std::lock_guard lock{open.mutex};
  auto it = open.persons.find(digest);
  if (it == open.persons.end() || it->second != persons) {
    return false;
  }
  open.persons.erase(it);
  return true;
}

std::uint64_t LedgerEntry::Draw(std::size_t part) {
  drawn.resize(std::max(drawn.size(), part + 1));
  return ++drawn[part];
}

void Ledger::BeginRound(RoundEvent const& round, bool record) {
  announced_ = round.entries;
  if (!record) {
    return;
  }
  auto it = std::find_if(rounds_.begin(), rounds_.end(),
                         [&](auto const& known) { return known.first == round; });
  if (it == rounds_.end()) {
    rounds_.emplace_back(round, 1);
  } else {
    ++it->second;
  }
}

void Ledger::Record(DrawEvent const& event, std::size_t part) {
  if (auto* entry = Find(&announced_, event); entry && entry->Draw(part) <= entry->count) {
    return;
  }
  auto& entries = std::holds_alternative<SelectionEvent>(event) ? selections_ : noise_;
  auto* known = Find(&entries, event);
  auto& entry = known ? *known : entries.emplace_back(event, 0);
  entry.count = std::max(entry.count, entry.Draw(part));
}

Json Ledger::SaveEvents() const {
  Array out;
  Append(noise_, person_level_, &out);
  Append(selections_, person_level_, &out);
  for (auto const& [round, count] : rounds_) {
    Array entries;
    Append(round.entries, person_level_, &entries);
    auto json = ToJson(round, count, person_level_);
    json["events"] = std::move(entries);
    out.GetArray().push_back(std::move(json));
  }
  return Json{std::move(out)};
}
}  // namespace xgboost::dp
