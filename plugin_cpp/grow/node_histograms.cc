#include "plugin_cpp/grow/node_histograms.h"

#include <algorithm>    // for copy, copy_n
#include <mutex>        // for mutex, lock_guard
#include <type_traits>  // for is_same_v
#include <utility>      // for move, swap

#include "common/threading_utils.h"    // for ParallelFor, Sched
#include "plugin_cpp/grow/row_sets.h"  // for RowSets

namespace xgboost::dp {
namespace {
// Bins of the features that are summed together: their words fit the first-level cache.
constexpr std::size_t kBinsOfTile = 4096;
constexpr std::size_t kRowsAhead = 24;

std::vector<FeatureTile> MakeTiles(BinPlaces const& places) {
  std::vector<FeatureTile> tiles{{0, 0}};
  for (std::size_t f = 0; f < places.NumFeatures(); ++f) {
    if (places[f + 1] - places[tiles.back().begin] > kBinsOfTile && f > tiles.back().begin) {
      tiles.push_back({f, f});
    }
    tiles.back().end = f + 1;
  }
  return tiles;
}

/** @param gpair Pairs of the rows of the page. */
template <typename CodeT>
void SumDense(DenseCodes<CodeT> const& codes, BinPlaces const& places,
              common::Span<std::uint32_t const> rows, FeatureTile tile, PackedPair const* gpair,
              PackedPair* words) {
  auto const* begins = places.data();
  auto n = rows.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (i + kRowsAhead < n) {
      auto next = rows[i + kRowsAhead];
      Prefetch(gpair + next);
      codes.Prefetch(next, tile.begin, tile.end);
    }
    auto pair = gpair[rows[i]];
    auto const* row = codes.codes + rows[i] * codes.n_features;
    for (auto f = tile.begin; f < tile.end; ++f) {
      words[begins[f] + row[f]] += pair;
    }
  }
}

void SumSparse(BinPage const& page, common::Span<std::uint32_t const> rows, PackedPair const* gpair,
               PackedPair* words) {
  auto const* row_ptr = page.RowPtr();
  auto const* entries = page.Entries();
  for (auto row : rows) {
    auto pair = gpair[row];
    auto end = row_ptr[row + 1];
    for (auto i = row_ptr[row]; i < end; ++i) {
      words[entries[i]] += pair;
    }
  }
}

void SumBlock(BinPage const& page, BinPlaces const& places, std::vector<FeatureTile> const& tiles,
              common::Span<std::uint32_t const> rows, PackedPair const* gpair, PackedPair* words) {
  if (!page.IsDense()) {
    SumSparse(page, rows, gpair, words);
    return;
  }
  WithDenseCodes(page, [&](auto const& codes) {
    for (auto const& tile : tiles) {
      SumDense(codes, places, rows, tile, gpair, words);
    }
  });
}
}  // namespace

template <typename Sum>
NodeHistograms<Sum>::NodeHistograms(Context const* ctx, Release const& release,
                                    BinPlaces const& places, std::int64_t largest)
    : ctx_{ctx},
      release_{release},
      places_{places},
      tiles_{MakeTiles(places)},
      n_bins_{places.Size() - places.NumFeatures()},
      rows_of_block_{RowsOfBlock(largest)} {}

template <typename Sum>
void NodeHistograms<Sum>::BeginRoot() {
  families_.clear();
  summed_ = {RegTree::kRoot};
  local_.assign(n_bins_, LocalSum{});
}

template <typename Sum>
void NodeHistograms<Sum>::BeginLevel(std::vector<Siblings> families) {
  families_ = std::move(families);
  summed_ = SummedNodes(families_);
  local_.assign(summed_.size() * n_bins_, LocalSum{});
}

template <typename Sum>
void NodeHistograms<Sum>::Add(std::size_t p, BinPage const& page, RowSets const& rows,
                              std::vector<PackedPair> const& gpair) {
  auto blocks = BlocksOf(p, rows, summed_, rows_of_block_);
  words_.resize(ctx_->Threads());
  std::vector<std::mutex> locks(summed_.size());
  common::ParallelFor(blocks.size(), ctx_->Threads(), common::Sched::Dyn(), [&](auto b) {
    auto& own = words_[omp_get_thread_num()];
    own.assign(places_.Size(), PackedPair{});
    SumBlock(page, places_, tiles_, blocks[b].rows, gpair.data() + page.base_row, own.data());
    // Sums of integers do not depend on which thread is first.
    std::lock_guard<std::mutex> lock{locks[blocks[b].node]};
    auto* sums = local_.data() + blocks[b].node * n_bins_;
    for (std::size_t f = 0; f < places_.NumFeatures(); ++f) {
      auto const* of_feature = own.data() + places_[f];
      for (std::size_t i = 0; i < places_.NumBins(f); ++i) {
        *sums++ += of_feature[i].Sum();
      }
    }
  });
}

template <typename Sum>
void NodeHistograms<Sum>::End() {
  // The level above is still needed. Both keep their memory from tree to tree.
  auto nodes = summed_;
  below_.resize((nodes.size() + families_.size()) * n_bins_);
  if constexpr (std::is_same_v<Sum, GlobalSum>) {
    release_.SumOverWorkers(&local_, below_.data());
  } else {
    std::copy(local_.cbegin(), local_.cend(), below_.begin());
  }
  auto const* others = below_.data();
  for (auto const& family : families_) {
    auto* rest = below_.data() + nodes.size() * n_bins_;
    nodes.push_back(family.nodes[family.heaviest]);
    std::copy_n(this->Find(family.parent), n_bins_, rest);
    for (std::size_t k = 1; k < family.nodes.size(); ++k, others += n_bins_) {
      for (std::size_t i = 0; i < n_bins_; ++i) {
        rest[i] = rest[i] - others[i];
      }
    }
  }
  nodes_ = std::move(nodes);
  std::swap(sums_, below_);
}

template <typename Sum>
Sum const* NodeHistograms<Sum>::Find(bst_node_t nidx) const {
  return sums_.data() + IndexOf(nidx, nodes_) * n_bins_;
}

template class NodeHistograms<LocalSum>;
template class NodeHistograms<GlobalSum>;
}  // namespace xgboost::dp
