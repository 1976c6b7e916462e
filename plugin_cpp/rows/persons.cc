#include "plugin_cpp/rows/persons.h"

#include <algorithm>  // for count, lower_bound, sort, stable_sort, unique
#include <cstring>    // for memcpy
#include <iterator>   // for next
#include <limits>     // for numeric_limits
#include <map>        // for map
#include <mutex>      // for mutex, lock_guard

#include "plugin_cpp/random/public_words.h"  // for Scatter, kGoldenStep
#include "plugin_cpp/rows/raw_pages.h"       // for ForEachPage

namespace xgboost::dp {
namespace {
/** @brief With a weak pointer, so that a new matrix at the same address has no persons. */
struct MatrixEntry {
  std::weak_ptr<DMatrix const> matrix;
  std::shared_ptr<Persons const> persons;
};

struct PlanEntry {
  std::weak_ptr<DMatrix const> matrix;
  std::weak_ptr<Persons const> persons;
  bool any;

  [[nodiscard]] bool Are(std::shared_ptr<Persons const> const& now) const {
    return any == (now != nullptr) && persons.lock() == now;
  }
};

std::mutex& Mutex() {
  static std::mutex mutex;
  return mutex;
}

std::map<DMatrix const*, MatrixEntry>& Table() {
  static std::map<DMatrix const*, MatrixEntry> table;
  return table;
}

std::map<std::pair<DMatrix const*, std::string>, PlanEntry>& KeptTable() {
  static std::map<std::pair<DMatrix const*, std::string>, PlanEntry> table;
  return table;
}

template <typename Map>
void Prune(Map* table) {
  for (auto it = table->begin(); it != table->end();) {
    it = it->second.matrix.expired() ? table->erase(it) : std::next(it);
  }
}

std::uint64_t Word(std::uint32_t place, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return (std::uint64_t{place} << 32) | bits;
}

void Mix(std::uint32_t place, float value, std::uint64_t* key) {
  *key = Scatter(*key + Word(place, value) + kGoldenStep);
}

/** @brief Call a function with each number of a row except its features. */
template <typename Each>
void ForEachOwn(MetaInfo const& info, std::size_t row, Each&& each) {
  auto labels = info.labels.HostView(), margins = info.base_margin_.HostView();
  for (auto const& values : {labels, margins}) {
    for (std::size_t k = 0; row < values.Shape(0) && k < values.Shape(1); ++k) {
      each(values(row, k));
    }
  }
  for (auto const* values :
       {&info.weights_, &info.labels_lower_bound_, &info.labels_upper_bound_}) {
    if (row < values->Size()) {
      each(values->ConstHostSpan()[row]);
    }
  }
}

/** @brief A hash of each row: labels, margins, weight and features. */
std::vector<std::uint64_t> HashRows(DMatrix* p_fmat) {
  auto const* ctx = p_fmat->Ctx();
  auto const& info = p_fmat->Info();
  std::vector<std::uint64_t> keys(info.num_row_);
  common::ParallelFor(keys.size(), ctx->Threads(), [&](auto i) {
    ForEachOwn(info, i, [&](float value) { Mix(0, value, &keys[i]); });
  });
  if (!p_fmat->PageExists<SparsePage>()) {
    return keys;  // CheckMatrix refuses it
  }
  ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
    auto view = page.GetView();
    common::ParallelFor(view.Size(), ctx->Threads(), [&](auto i) {
      for (auto const& entry : view[i]) {
        Mix(entry.index + 1, entry.fvalue, &keys[page.base_rowid + i]);
      }
    });
  });
  return keys;
}

/** @brief The full contents of some rows. Two are equal if and only if the rows are. */
class Contents {
 public:
  Contents(DMatrix* p_fmat, std::vector<std::uint32_t> rows) : rows_(std::move(rows)) {
    std::sort(rows_.begin(), rows_.end());
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
    words_.resize(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      ForEachOwn(p_fmat->Info(), rows_[i],
                 [&](float value) { words_[i].push_back(Word(0, value)); });
    }
    if (rows_.empty() || !p_fmat->PageExists<SparsePage>()) {
      return;
    }
    ForEachPage(p_fmat->Ctx(), p_fmat, [&](SparsePage const& page) {
      auto view = page.GetView();
      auto first = std::lower_bound(rows_.cbegin(), rows_.cend(), page.base_rowid);
      for (auto it = first; it != rows_.cend() && *it < page.base_rowid + view.Size(); ++it) {
        for (auto const& entry : view[*it - page.base_rowid]) {
          words_[it - rows_.cbegin()].push_back(Word(entry.index + 1, entry.fvalue));
        }
      }
    });
  }

  [[nodiscard]] std::vector<std::uint64_t> const& operator[](std::uint32_t row) const {
    return words_[std::lower_bound(rows_.cbegin(), rows_.cend(), row) - rows_.cbegin()];
  }

 private:
  std::vector<std::uint32_t> rows_;
  std::vector<std::vector<std::uint64_t>> words_;
};
}  // namespace

Persons::Persons(common::Span<std::uint32_t const> codes, std::size_t n_persons)
    : codes_(codes.data(), codes.data() + codes.size()), counts_(n_persons) {
  // Numbers of rows and persons are private: they must not be in a message.
  CHECK(codes.size() < std::numeric_limits<std::uint32_t>::max() && n_persons <= codes.size())
      << "With privacy ids, a worker must have fewer than 2^32 rows, and every person at least "
         "one.";
  for (auto code : codes_) {
    CHECK(code < n_persons) << "The code of a person is out of range.";
    ++counts_[code];
  }
  CHECK(std::count(counts_.cbegin(), counts_.cend(), 0U) == 0) << "A person has no row.";
  // In the order of their first rows.
  std::vector<std::uint32_t> several;  // codes
  std::vector<std::uint8_t> is_seen(n_persons);
  for (auto code : codes_) {
    if (counts_[code] > 1 && !is_seen[code]) {
      is_seen[code] = 1;
      several.push_back(code);
    }
  }
  std::stable_sort(several.begin(), several.end(),
                   [&](auto a, auto b) { return counts_[a] < counts_[b]; });
  constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> next(n_persons, kNone);  // position of the next row of a person
  std::vector<std::uint8_t> steps(n_persons);
  std::size_t n_rows = 0;
  for (std::size_t first = 0; first < several.size();) {
    auto rows = counts_[several[first]];
    PersonGroup group{n_rows, rows, 1};
    while (rows <= PersonGroup::kMaxRows && group.persons < PersonGroup::kMaxPersons &&
           first + group.persons < several.size() &&
           counts_[several[first + group.persons]] == rows) {
      ++group.persons;
    }
    for (std::uint32_t lane = 0; lane < group.persons; ++lane) {
      next[several[first + lane]] = static_cast<std::uint32_t>(n_rows + lane);
      steps[several[first + lane]] = static_cast<std::uint8_t>(group.persons);
    }
    n_rows += group.Size();
    first += group.persons;
    groups_.push_back(group);
  }
  rows_.resize(n_rows);
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    if (auto& place = next[codes_[i]]; place != kNone) {
      rows_[place] = static_cast<std::uint32_t>(i);
      place += steps[codes_[i]];
    } else {
      singles_.push_back(static_cast<std::uint32_t>(i));
    }
  }
}

void Persons::SortRows(DMatrix* p_fmat) {
  if (rows_.empty()) {
    return;
  }
  auto const* ctx = p_fmat->Ctx();
  auto keys = HashRows(p_fmat);
  std::vector<std::uint8_t> has_ties(groups_.size());
  auto sort = [&](std::size_t i, auto&& is_before) {
    auto const& group = groups_[i];
    std::vector<std::uint32_t> rows(group.rows);
    for (std::size_t l = 0; l < group.persons; ++l) {
      for (std::size_t j = 0; j < rows.size(); ++j) {
        rows[j] = rows_[group.At(j, l)];
      }
      std::sort(rows.begin(), rows.end(), is_before);
      for (std::size_t j = 0; j < rows.size(); ++j) {
        rows_[group.At(j, l)] = rows[j];
        has_ties[i] |= j > 0 && keys[rows[j]] == keys[rows[j - 1]];
      }
    }
  };
  common::ParallelFor(groups_.size(), ctx->Threads(),
                      [&](auto i) { sort(i, [&](auto a, auto b) { return keys[a] < keys[b]; }); });
  // Rows with equal keys are nearly always equal, but collisions can be constructed.
  std::vector<std::uint32_t> tied;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    auto const& group = groups_[i];
    for (auto at = group.begin + group.persons; has_ties[i] && at < group.begin + group.Size();
         ++at) {
      if (keys[rows_[at]] == keys[rows_[at - group.persons]]) {
        tied.push_back(rows_[at]);
        tied.push_back(rows_[at - group.persons]);
      }
    }
  }
  if (tied.empty()) {
    return;
  }
  Contents contents{p_fmat, std::move(tied)};
  common::ParallelFor(groups_.size(), ctx->Threads(), [&](auto i) {
    if (has_ties[i]) {
      sort(i, [&](auto a, auto b) {
        return keys[a] != keys[b] ? keys[a] < keys[b] : a != b && contents[a] < contents[b];
      });
    }
  });
}

void Persons::Set(std::shared_ptr<DMatrix> const& p_fmat, std::shared_ptr<Persons> persons) {
  CHECK(p_fmat);
  // Not CHECK_EQ, which would print the number of rows.
  CHECK(!persons || persons->NumRows() == p_fmat->Info().num_row_)
      << "`dp_privacy_id` must have one id per row of the DMatrix. If its rows have changed, set "
         "the ids again.";
  if (persons) {
    persons->SortRows(p_fmat.get());
  }
  std::lock_guard guard{Mutex()};
  auto& table = Table();
  Prune(&table);
  if (persons) {
    table[p_fmat.get()] = {p_fmat, std::move(persons)};
  } else {
    table.erase(p_fmat.get());
  }
}

std::shared_ptr<Persons const> Persons::Of(DMatrix const& fmat) {
  std::lock_guard guard{Mutex()};
  auto it = Table().find(&fmat);
  return it == Table().end() || it->second.matrix.expired() ? nullptr : it->second.persons;
}

void Persons::Keep(std::shared_ptr<DMatrix> const& p_fmat, std::string const& plan_id,
                   std::shared_ptr<Persons const> const& persons, bool again) {
  std::lock_guard guard{Mutex()};
  auto& table = KeptTable();
  Prune(&table);
  auto it = table.find({p_fmat.get(), plan_id});
  CHECK(!again || (it != table.end() && it->second.Are(persons)))
      << "The privacy ids have changed between two releases before the first tree of a private "
         "training, or there was no first release. Set the ids once, before both releases.";
  table[{p_fmat.get(), plan_id}] = {p_fmat, persons, persons != nullptr};
}

void Persons::CheckKept(DMatrix const& fmat, std::string const& plan_id,
                        std::shared_ptr<Persons const> const& persons) {
  std::lock_guard guard{Mutex()};
  auto& table = KeptTable();
  auto it = table.find({&fmat, plan_id});
  if (it == table.end() || it->second.matrix.expired()) {
    return;
  }
  CHECK(it->second.Are(persons))
      << "The privacy ids have changed between the intercept and the first tree of a private "
         "training. Set the ids once, and release the intercept afterwards.";
  // Keep the entry: another thread may be between its two releases for the same plan.
}
}  // namespace xgboost::dp
