#include "plugin_cpp/grow/stored_histograms.h"

#include <algorithm>  // for min
#include <cstring>    // for memcpy
#include <limits>     // for numeric_limits
#include <mutex>      // for mutex, lock_guard
#include <utility>    // for move, swap

#include "common/threading_utils.h"    // for ParallelFor, Sched
#include "plugin_cpp/grow/row_sets.h"  // for RowSets

namespace xgboost::dp {
namespace {
constexpr std::size_t kPlacesOfLine = kBytesOfLine / sizeof(PackedPair);
constexpr std::size_t kLinesAtOnce = sizeof(std::uint64_t);

/**
 * @brief Two ascending lists as one; places of both get fn(sum, sum), and those of the second alone
 *        fn(0, sum). What comes out as 0 is left out.
 */
template <typename PlacesA, typename SumT, typename ListB, typename Fn>
void Zip(PlacesA const& places, std::vector<SumT> const& sums, ListB const& other, Fn&& fn,
         std::vector<std::uint32_t>* out_places, std::vector<SumT>* out_sums) {
  auto n_a = places.size(), n_b = other.places.size();
  out_places->resize(n_a + n_b);
  out_sums->resize(n_a + n_b);
  std::size_t i = 0, j = 0, n = 0;
  while (i < n_a || j < n_b) {
    auto a = i < n_a ? places[i] : std::numeric_limits<std::uint32_t>::max();
    auto b = j < n_b ? other.places[j] : std::numeric_limits<std::uint32_t>::max();
    auto place = std::min(a, b);
    SumT sum = a == place ? sums[i++] : SumT{};
    if (b == place) {
      sum = fn(sum, other.sums[j++]);
    }
    (*out_places)[n] = place;
    (*out_sums)[n] = sum;
    n += sum.grad != 0 || sum.hess != 0 ? 1 : 0;
  }
  out_places->resize(n);
  out_sums->resize(n);
}
}  // namespace

StoredHistograms::StoredHistograms(Context const* ctx, Release const& release,
                                   BinPlaces const& places, std::int64_t largest)
    : ctx_{ctx}, release_{release}, places_{places}, rows_of_block_{RowsOfBlock(largest)} {}

void StoredHistograms::BeginRoot() {
  families_.clear();
  summed_ = {RegTree::kRoot};
  lists_.assign(1, List{});
}

void StoredHistograms::BeginLevel(std::vector<Siblings> families) {
  families_ = std::move(families);
  summed_ = SummedNodes(families_);
  lists_.assign(summed_.size(), List{});
}

void StoredHistograms::TakeList(Table* table) {
  auto& [places, sums] = table->list;
  places.clear();
  sums.clear();
  for (std::size_t first = 0; first < table->is_set.size(); first += kLinesAtOnce) {
    std::uint64_t any;
    std::memcpy(&any, table->is_set.data() + first, sizeof(any));
    if (any == 0) {
      continue;
    }
    for (auto line = first; line < first + kLinesAtOnce; ++line) {
      if (table->is_set[line] == 0) {
        continue;
      }
      table->is_set[line] = 0;
      auto* words = table->words.data() + line * kPlacesOfLine;
      for (std::size_t i = 0; i < kPlacesOfLine; ++i) {
        auto sum = words[i].Sum();
        words[i] = {};
        if (sum.grad != 0 || sum.hess != 0) {
          places.push_back(static_cast<std::uint32_t>(line * kPlacesOfLine + i));
          sums.push_back(sum);
        }
      }
    }
  }
}

void StoredHistograms::Merge(List const& list, List* into, List* scratch) {
  if (into->places.empty()) {
    *into = list;
    return;
  }
  Zip(
      into->places, into->sums, list, [](LocalSum a, LocalSum b) { return a + b; },
      &scratch->places, &scratch->sums);
  std::swap(*into, *scratch);
}

void StoredHistograms::Add(std::size_t p, BinPage const& page, RowSets const& rows,
                           std::vector<PackedPair> const& gpair) {
  auto blocks = BlocksOf(p, rows, summed_, rows_of_block_);
  auto const* row_ptr = page.RowPtr();
  auto const* entries = page.Entries();
  auto const* pairs = gpair.data() + page.base_row;
  auto n_lines = places_.Size() / kPlacesOfLine + 1;
  n_lines = (n_lines + kLinesAtOnce - 1) / kLinesAtOnce * kLinesAtOnce;
  tables_.resize(ctx_->Threads());
  std::vector<std::mutex> locks(summed_.size());
  common::ParallelFor(blocks.size(), ctx_->Threads(), common::Sched::Dyn(), [&](auto b) {
    auto& table = tables_[omp_get_thread_num()];
    if (table.is_set.empty()) {
      table.is_set.resize(n_lines);
      table.words.resize(n_lines * kPlacesOfLine);
    }
    auto* words = table.words.data();
    auto* is_set = table.is_set.data();
    for (auto row : blocks[b].rows) {
      auto pair = pairs[row];
      auto end = row_ptr[row + 1];
      for (auto i = row_ptr[row]; i < end; ++i) {
        words[entries[i]] += pair;
        is_set[entries[i] / kPlacesOfLine] = 1;
      }
    }
    TakeList(&table);
    // Sums of integers do not depend on which thread is first.
    std::lock_guard<std::mutex> lock{locks[blocks[b].node]};
    Merge(table.list, &lists_[blocks[b].node], &table.merged);
  });
}

StoredBins<GlobalSum> StoredHistograms::Finish(List* list) const {
  StoredBins<GlobalSum> out;
  out.places = std::move(list->places);
  out.sums.resize(list->sums.size());
  release_.SumOverWorkers(&list->sums, out.sums.data());
  *list = {};
  return out;
}

void StoredHistograms::End() {
  std::vector<StoredBins<GlobalSum>> below;
  for (auto& list : lists_) {
    below.push_back(this->Finish(&list));
  }
  auto nodes = summed_;
  std::size_t other = 0;
  for (auto const& family : families_) {
    auto const& parent = (*this)[family.parent];
    StoredBins<GlobalSum> rest, scratch;
    rest.places = parent.places;
    rest.sums = parent.sums;
    for (std::size_t k = 1; k < family.nodes.size(); ++k) {
      Zip(
          rest.places, rest.sums, below[other++],
          [](GlobalSum a, GlobalSum const& b) { return a - b; }, &scratch.places, &scratch.sums);
      std::swap(rest, scratch);
    }
    rest.places.shrink_to_fit();
    rest.sums.shrink_to_fit();
    nodes.push_back(family.nodes[family.heaviest]);
    below.push_back(std::move(rest));
  }
  for (auto& of_node : below) {
    of_node.begins.assign(1, 0);
    std::uint32_t i = 0;
    for (bst_feature_t f = 0; f < places_.NumFeatures(); ++f) {
      while (i < of_node.places.size() && of_node.places[i] < places_[f + 1]) {
        ++i;
      }
      of_node.begins.push_back(i);
    }
  }
  nodes_ = std::move(nodes);
  bins_ = std::move(below);
}

StoredBins<GlobalSum> const& StoredHistograms::operator[](bst_node_t nidx) const {
  return bins_[IndexOf(nidx, nodes_)];
}
}  // namespace xgboost::dp
