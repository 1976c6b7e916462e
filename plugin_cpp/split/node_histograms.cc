#include "plugin_cpp/split/node_histograms.h"

#include <algorithm>  // for clamp, copy_n, find, max, min
#include <mutex>      // for mutex, lock_guard
#include <utility>    // for move

#include "common/hist_util.h"        // for DispatchBinType
#include "common/threading_utils.h"  // for ParallelFor, Sched
#include "plugin_cpp/distributed.h"  // for SumOverWorkers
#include "xgboost/logging.h"         // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::size_t kRowsOfBlock = 8192;
// Bins of the features that are summed together: their words fit the first-level cache.
constexpr std::size_t kBinsOfTile = 4096;
constexpr std::size_t kPrefetch = 12;  // rows ahead

void Prefetch([[maybe_unused]] void const* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif  // defined(__GNUC__)
}

/** @brief Rows of one node in one page. */
struct Block {
  std::size_t node;  // position in the level
  common::Span<bst_idx_t const> rows;
};

/** @brief Consecutive features of a dense page. */
struct Tile {
  std::size_t begin;
  std::size_t end;
};

std::vector<Tile> MakeTiles(std::vector<std::uint32_t> const& ptrs) {
  std::vector<Tile> tiles{{0, 0}};
  for (std::size_t f = 0; f + 1 < ptrs.size(); ++f) {
    if (ptrs[f + 1] - ptrs[tiles.back().begin] > kBinsOfTile && f > tiles.back().begin) {
      tiles.push_back({f, f});
    }
    tiles.back().end = f + 1;
  }
  return tiles;
}

template <typename BinT>
void SumDense(GHistIndexMatrix const& page, common::Span<bst_idx_t const> rows, Tile tile,
              std::vector<PackedPair> const& gpair, PackedPair* words) {
  auto n_features = page.Features();
  auto const* bins = page.index.data<BinT>();
  auto const* offsets = page.index.Offset();
  auto n = rows.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (i + kPrefetch < n) {
      auto next = rows[i + kPrefetch];
      Prefetch(gpair.data() + next);
      Prefetch(bins + (next - page.base_rowid) * n_features + tile.begin);
    }
    auto pair = gpair[rows[i]];
    auto const* row = bins + (rows[i] - page.base_rowid) * n_features;
    for (auto f = tile.begin; f < tile.end; ++f) {
      words[offsets[f] + row[f]] += pair;
    }
  }
}

template <typename BinT>
void SumSparse(GHistIndexMatrix const& page, common::Span<bst_idx_t const> rows,
               std::vector<PackedPair> const& gpair, PackedPair* words) {
  auto const* bins = page.index.data<BinT>();
  for (auto row : rows) {
    auto pair = gpair[row];
    auto end = page.row_ptr[row - page.base_rowid + 1];
    for (auto i = page.row_ptr[row - page.base_rowid]; i < end; ++i) {
      words[bins[i]] += pair;
    }
  }
}

void SumBlock(GHistIndexMatrix const& page, std::vector<Tile> const& tiles,
              common::Span<bst_idx_t const> rows, std::vector<PackedPair> const& gpair,
              PackedPair* words) {
  common::DispatchBinType(page.index.GetBinTypeSize(), [&](auto t) {
    using BinT = decltype(t);
    if (!page.IsDense()) {
      SumSparse<BinT>(page, rows, gpair, words);
      return;
    }
    for (auto const& tile : tiles) {
      SumDense<BinT>(page, rows, tile, gpair, words);
    }
  });
}
}  // namespace

NodeHistograms::NodeHistograms(Context const* ctx, Masking const& masking, std::size_t n_bins,
                               std::int64_t largest)
    : ctx_{ctx},
      masking_{masking},
      n_bins_{n_bins},
      rows_of_block_{std::clamp<std::size_t>(PackedPair::kLimit / std::max<std::int64_t>(largest, 1),
                                             1, kRowsOfBlock)} {
  CHECK_LE(largest, PackedPair::kLimit);
}

void NodeHistograms::SumRows(BinnedPages const& pages,
                             std::vector<tree::CommonRowPartitioner> const& partitioners,
                             std::vector<PackedPair> const& gpair, std::size_t n_built,
                             Level* level) const {
  std::vector<std::mutex> locks(n_built);
  std::vector<std::vector<PackedPair>> words(ctx_->Threads());
  for (std::size_t p = 0; p < pages.size(); ++p) {
    std::vector<Block> blocks;
    for (std::size_t k = 0; k < n_built; ++k) {
      auto const& set = partitioners[p].Partitions()[level->nodes[k]];
      for (std::size_t begin = 0; begin < set.Size(); begin += rows_of_block_) {
        auto size = std::min(rows_of_block_, set.Size() - begin);
        blocks.push_back({k, {set.begin() + begin, size}});
      }
    }
    auto tiles = MakeTiles(pages[p]->cut.Ptrs());
    common::ParallelFor(blocks.size(), ctx_->Threads(), common::Sched::Dyn(), [&](auto b) {
      auto& own = words[omp_get_thread_num()];
      own.assign(n_bins_, PackedPair{});
      SumBlock(*pages[p], tiles, blocks[b].rows, gpair, own.data());
      // Sums of integers do not depend on which thread is first.
      std::lock_guard<std::mutex> lock{locks[blocks[b].node]};
      auto* sums = level->sums.data() + blocks[b].node * n_bins_;
      for (std::size_t i = 0; i < n_bins_; ++i) {
        sums[i] += own[i].Sum();
      }
    });
  }
  SumOverWorkers(ctx_, masking_, reinterpret_cast<std::int64_t*>(level->sums.data()),
                 2 * n_built * n_bins_);
}

void NodeHistograms::BuildRoot(BinnedPages const& pages,
                               std::vector<tree::CommonRowPartitioner> const& partitioners,
                               std::vector<PackedPair> const& gpair) {
  level_.nodes = {RegTree::kRoot};
  level_.sums.assign(n_bins_, GradientSum{});
  this->SumRows(pages, partitioners, gpair, 1, &level_);
}

void NodeHistograms::BuildLevel(BinnedPages const& pages,
                                std::vector<tree::CommonRowPartitioner> const& partitioners,
                                std::vector<PackedPair> const& gpair,
                                std::vector<Siblings> const& families) {
  Level next;
  for (auto const& family : families) {
    for (std::size_t i = 0; i < family.nodes.size(); ++i) {
      if (i != family.heaviest) {
        next.nodes.push_back(family.nodes[i]);
      }
    }
  }
  auto n_built = next.nodes.size();
  next.sums.resize((n_built + families.size()) * n_bins_);
  this->SumRows(pages, partitioners, gpair, n_built, &next);

  std::size_t sibling = 0;
  for (auto const& family : families) {
    auto* rest = next.sums.data() + next.nodes.size() * n_bins_;
    next.nodes.push_back(family.nodes[family.heaviest]);
    std::copy_n(this->Find(family.parent), n_bins_, rest);
    for (std::size_t k = 1; k < family.nodes.size(); ++k, ++sibling) {
      auto const* other = next.sums.data() + sibling * n_bins_;
      for (std::size_t i = 0; i < n_bins_; ++i) {
        rest[i] = rest[i] - other[i];
      }
    }
  }
  level_ = std::move(next);
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
