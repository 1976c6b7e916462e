#include "plugin_cpp/rows/persons.h"

#include <iterator>  // for next
#include <limits>    // for numeric_limits
#include <map>       // for map
#include <mutex>     // for mutex, lock_guard
#include <utility>   // for move

#include "xgboost/logging.h"  // for CHECK

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
}  // namespace

Persons::Persons(common::Span<std::uint32_t const> codes, std::size_t n_persons)
    : codes_(codes.data(), codes.data() + codes.size()), counts_(n_persons), begins_(1) {
  // Numbers of rows and of persons are private: no message has one.
  CHECK(codes.size() < std::numeric_limits<std::uint32_t>::max() && n_persons <= codes.size())
      << "A worker takes less than 2^32 rows where the unit of privacy is a person, and each "
      << "person has a row.";
  for (auto code : codes_) {
    CHECK(code < n_persons) << "The code of a person is out of range.";
    ++counts_[code];
  }
  constexpr auto kOne = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> places(n_persons, kOne);  // among those with several rows
  for (std::size_t code = 0; code < n_persons; ++code) {
    CHECK(counts_[code] > 0) << "A person has no row.";
    if (counts_[code] > 1) {
      places[code] = static_cast<std::uint32_t>(begins_.size() - 1);
      begins_.push_back(begins_.back() + counts_[code]);
    }
  }
  rows_.resize(begins_.back());
  auto next = begins_;
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    if (auto place = places[codes_[i]]; place != kOne) {
      rows_[next[place]++] = static_cast<std::uint32_t>(i);
    }
  }
}

void Persons::Set(std::shared_ptr<DMatrix> const& p_fmat, std::shared_ptr<Persons const> persons) {
  CHECK(p_fmat);
  // Not CHECK_EQ, which would print the number of rows.
  CHECK(!persons || persons->NumRows() == p_fmat->Info().num_row_)
      << "There must be one id of a person for each row of the DMatrix.";
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
