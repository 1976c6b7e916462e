#include "plugin_cpp/rows/node_histograms.h"

#include <algorithm>  // for clamp, copy_n, find, max, min
#include <mutex>      // for mutex, lock_guard
#include <utility>    // for move, swap

#include "common/threading_utils.h"     // for ParallelFor, Sched
#include "plugin_cpp/release/workers.h"     // for SumOverWorkers
#include "plugin_cpp/rows/row_sets.h"  // for RowSets
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::size_t kRowsOfBlock = 8192;
// Bins of the features that are summed together: their words fit the first-level cache.
constexpr std::size_t kBinsOfTile = 4096;
constexpr std::size_t kRowsAhead = 12;

/** @brief Rows of one node in one page. */
struct Block {
  std::size_t node;  // position in the level
  common::Span<std::uint32_t const> rows;
};

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
      codes.Prefetch(next, tile.begin);
    }
    auto pair = gpair[rows[i]];
    auto const* row = codes.codes + rows[i] * codes.n_features;
    for (auto f = tile.begin; f < tile.end; ++f) {
      words[begins[f] + row[f]] += pair;
    }
  }
}

void SumSparse(BinPage const& page, common::Span<std::uint32_t const> rows,
               PackedPair const* gpair, PackedPair* words) {
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
              common::Span<std::uint32_t const> rows, PackedPair const* gpair,
              PackedPair* words) {
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

NodeHistograms::NodeHistograms(Context const* ctx, Masking const& masking, BinPlaces const& places,
                               std::int64_t largest)
    : ctx_{ctx},
      masking_{masking},
      places_{places},
      tiles_{MakeTiles(places)},
      n_bins_{places.Size() - places.NumFeatures()},
      rows_of_block_{std::clamp<std::size_t>(PackedPair::kLimit / std::max<std::int64_t>(largest, 1),
                                             1, kRowsOfBlock)} {
  CHECK_LE(largest, PackedPair::kLimit);
}

void NodeHistograms::BeginRoot() {
  families_.clear();
  next_.nodes = {RegTree::kRoot};
  n_summed_ = 1;
  next_.sums.assign(n_bins_, GradientSum{});
}

void NodeHistograms::BeginLevel(std::vector<Siblings> families) {
  families_ = std::move(families);
  next_.nodes.clear();
  for (auto const& family : families_) {
    for (std::size_t i = 0; i < family.nodes.size(); ++i) {
      if (i != family.heaviest) {
        next_.nodes.push_back(family.nodes[i]);
      }
    }
  }
  n_summed_ = next_.nodes.size();
  next_.sums.assign((n_summed_ + families_.size()) * n_bins_, GradientSum{});
}

void NodeHistograms::Add(std::size_t p, BinPage const& page, RowSets const& rows,
                         std::vector<PackedPair> const& gpair) {
  std::vector<Block> blocks;
  for (std::size_t k = 0; k < n_summed_; ++k) {
    auto set = rows.Rows(p, next_.nodes[k]);
    for (std::size_t begin = 0; begin < set.size(); begin += rows_of_block_) {
      blocks.push_back({k, set.subspan(begin, std::min(rows_of_block_, set.size() - begin))});
    }
  }
  words_.resize(ctx_->Threads());
  std::vector<std::mutex> locks(n_summed_);
  common::ParallelFor(blocks.size(), ctx_->Threads(), common::Sched::Dyn(), [&](auto b) {
    auto& own = words_[omp_get_thread_num()];
    own.assign(places_.Size(), PackedPair{});
    SumBlock(page, places_, tiles_, blocks[b].rows, gpair.data() + page.base_row, own.data());
    // Sums of integers do not depend on which thread is first.
    std::lock_guard<std::mutex> lock{locks[blocks[b].node]};
    auto* sums = next_.sums.data() + blocks[b].node * n_bins_;
    for (std::size_t f = 0; f < places_.NumFeatures(); ++f) {
      auto const* of_feature = own.data() + places_[f];
      for (std::size_t i = 0; i < places_.NumBins(f); ++i) {
        *sums++ += of_feature[i].Sum();
      }
    }
  });
}

void NodeHistograms::End() {
  SumOverWorkers(ctx_, masking_, reinterpret_cast<std::int64_t*>(next_.sums.data()),
                 2 * n_summed_ * n_bins_);
  std::size_t sibling = 0;
  for (auto const& family : families_) {
    auto* rest = next_.sums.data() + next_.nodes.size() * n_bins_;
    next_.nodes.push_back(family.nodes[family.heaviest]);
    std::copy_n(this->Find(family.parent), n_bins_, rest);
    for (std::size_t k = 1; k < family.nodes.size(); ++k, ++sibling) {
      auto const* other = next_.sums.data() + sibling * n_bins_;
      for (std::size_t i = 0; i < n_bins_; ++i) {
        rest[i] = rest[i] - other[i];
      }
    }
  }
  std::swap(level_, next_);
}

GradientSum const* NodeHistograms::Find(bst_node_t nidx) const {
  auto it = std::find(level_.nodes.cbegin(), level_.nodes.cend(), nidx);
  CHECK(it != level_.nodes.cend());
  return level_.sums.data() + (it - level_.nodes.cbegin()) * n_bins_;
}

HistogramRow NodeHistograms::operator[](bst_node_t nidx) const {
  return {this->Find(nidx), n_bins_};
}
}  // namespace xgboost::dp
