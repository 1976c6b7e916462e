#include "plugin_cpp/rows/persons.h"

#include <algorithm>  // for count, stable_sort
#include <cstring>    // for memcpy
#include <iterator>   // for next
#include <limits>     // for numeric_limits
#include <map>        // for map
#include <mutex>      // for mutex, lock_guard
#include <utility>    // for move

#include "common/threading_utils.h"     // for ParallelFor
#include "plugin_cpp/rows/raw_pages.h"  // for ForEachPage
#include "xgboost/context.h"            // for Context
#include "xgboost/linalg.h"             // for MatrixView
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
namespace {
/** @brief A weak pointer: another matrix at the address of one that is gone has no persons. */
struct Entry {
  std::weak_ptr<DMatrix const> matrix;
  std::shared_ptr<Persons const> persons;
};

std::mutex& Mutex() {
  static std::mutex mutex;
  return mutex;
}

std::map<DMatrix const*, Entry>& Table() {
  static std::map<DMatrix const*, Entry> table;
  return table;
}

/** @brief One more word of what a row holds (Steele, Lea and Flood 2014, the mixer of splitmix). */
void Mix(std::uint64_t word, std::uint64_t* key) {
  auto z = *key + word + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  *key = z ^ (z >> 31);
}

void Mix(std::uint32_t place, float value, std::uint64_t* key) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  Mix((std::uint64_t{place} << 32) | bits, key);
}

/** @brief A number for what each row holds: label or its bounds, weight, margins and features. */
std::vector<std::uint64_t> KeysOfRows(DMatrix* p_fmat) {
  auto const* ctx = p_fmat->Ctx();
  auto const& info = p_fmat->Info();
  std::vector<std::uint64_t> keys(info.num_row_);
  auto weights = info.weights_.ConstHostSpan();
  auto lower = info.labels_lower_bound_.ConstHostSpan();
  auto upper = info.labels_upper_bound_.ConstHostSpan();
  auto labels = info.labels.HostView(), margins = info.base_margin_.HostView();
  common::ParallelFor(keys.size(), ctx->Threads(), [&](auto i) {
    for (auto const& values : {labels, margins}) {
      for (std::size_t k = 0; i < values.Shape(0) && k < values.Shape(1); ++k) {
        Mix(0, values(i, k), &keys[i]);
      }
    }
    for (auto const& values : {weights, lower, upper}) {
      if (i < values.size()) {
        Mix(0, values[i], &keys[i]);
      }
    }
  });
  if (!p_fmat->PageExists<SparsePage>()) {
    return keys;  // such a matrix is refused elsewhere
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
}  // namespace

Persons::Persons(common::Span<std::uint32_t const> codes, std::size_t n_persons)
    : codes_(codes.data(), codes.data() + codes.size()), counts_(n_persons) {
  // Numbers of rows and of persons are private: no message has one.
  CHECK(codes.size() < std::numeric_limits<std::uint32_t>::max() && n_persons <= codes.size())
      << "A worker takes less than 2^32 rows where the unit of privacy is a person, and each "
      << "person has a row.";
  for (auto code : codes_) {
    CHECK(code < n_persons) << "The code of a person is out of range.";
    ++counts_[code];
  }
  CHECK(std::count(counts_.cbegin(), counts_.cend(), 0U) == 0) << "A person has no row.";
  // By their first rows, so that these at least are read in their order.
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
  std::vector<std::uint32_t> next(n_persons, kNone);  // place of the next row of a person
  std::vector<std::uint8_t> steps(n_persons);
  std::size_t n_rows = 0;
  for (std::size_t first = 0; first < several.size();) {
    auto rows = counts_[several[first]];
    PersonGroup group{n_rows, rows, 1};
    while (rows <= PersonGroup::kShort && group.persons < PersonGroup::kMost &&
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
    }
  }
}

void Persons::Arrange(DMatrix* p_fmat) {
  if (rows_.empty()) {
    return;
  }
  auto keys = KeysOfRows(p_fmat);
  common::ParallelFor(groups_.size(), p_fmat->Ctx()->Threads(), [&](auto i) {
    auto const& group = groups_[i];
    std::vector<std::uint32_t> rows(group.rows);
    for (auto lane = group.begin; lane < group.begin + group.persons; ++lane) {
      for (std::size_t j = 0; j < rows.size(); ++j) {
        rows[j] = rows_[lane + j * group.persons];
      }
      std::stable_sort(rows.begin(), rows.end(), [&](auto a, auto b) { return keys[a] < keys[b]; });
      for (std::size_t j = 0; j < rows.size(); ++j) {
        rows_[lane + j * group.persons] = rows[j];
      }
    }
  });
}

void Persons::Set(std::shared_ptr<DMatrix> const& p_fmat, std::shared_ptr<Persons> persons) {
  CHECK(p_fmat);
  // Not CHECK_EQ, which would print the number of rows.
  CHECK(!persons || persons->NumRows() == p_fmat->Info().num_row_)
      << "There must be one id of a person for each row of the DMatrix.";
  if (persons) {
    persons->Arrange(p_fmat.get());
  }
  std::lock_guard guard{Mutex()};
  auto& table = Table();
  for (auto it = table.begin(); it != table.end();) {
    it = it->second.matrix.expired() ? table.erase(it) : std::next(it);
  }
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
}  // namespace xgboost::dp
