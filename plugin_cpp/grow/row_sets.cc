#include "plugin_cpp/grow/row_sets.h"

#include <algorithm>   // for copy_n, max, min, transform
#include <array>       // for array
#include <functional>  // for plus
#include <numeric>     // for iota
#include <utility>     // for move

#include "common/threading_utils.h"  // for ParallelFor
#include "plugin_cpp/simd.h"         // for kCacheLineBytes, Prefetch, ResizeInLargePages
#include "xgboost/logging.h"         // for CHECK_EQ, CHECK_LE

namespace xgboost::dp {
namespace {
constexpr std::size_t kRowsPerBlock = 4096;
constexpr std::size_t kRowsAhead = 16;
constexpr std::size_t kMaxChildren = 16;
constexpr std::size_t kRowsPerPass = 32768;  // fewer take less time than to wake threads

/** @brief Some rows of one node, with counts by child. */
struct Block {
  std::size_t node;   // or its index among the branchings
  std::size_t begin;  // in the page
  std::size_t size;
  std::array<std::size_t, kMaxChildren> at;  // counts, later positions of the rows of each child
};

void AddBlocks(std::size_t node, std::size_t begin, std::size_t size, std::vector<Block>* blocks) {
  for (std::size_t done = 0; done < size; done += kRowsPerBlock) {
    blocks->push_back({node, begin + done, std::min(kRowsPerBlock, size - done), {}});
  }
}

/** @brief Number of threads for one pass over the rows of all blocks. */
std::int32_t NumThreads(Context const* ctx, std::vector<Block> const& blocks) {
  std::size_t n_rows = 0;
  for (auto const& block : blocks) {
    n_rows += block.size;
  }
  return n_rows < kRowsPerPass ? 1 : ctx->Threads();
}

/** @brief The codes of a dense page, feature by feature. */
template <typename CodeT>
struct ColumnCodes {
  CodeT const* codes;
  std::size_t n_rows;

  std::uint32_t operator()(std::size_t row, bst_feature_t f) const {
    return codes[f * n_rows + row];
  }
  void Prefetch(std::size_t row, bst_feature_t f) const { dp::Prefetch(codes + f * n_rows + row); }
};

template <typename CodeT>
ColumnCodes<CodeT> AsColumns(DenseCodes<CodeT> const&, std::uint8_t const* bytes,
                             std::size_t n_rows) {
  return {reinterpret_cast<CodeT const*>(bytes), n_rows};
}

template <typename CodeT>
void WriteColumns(Context const* ctx, DenseCodes<CodeT> const& codes, std::size_t n_rows,
                  std::uint8_t* bytes) {
  auto* out = reinterpret_cast<CodeT*>(bytes);
  common::ParallelFor(
      (n_rows + kCacheLineBytes - 1) / kCacheLineBytes, ctx->Threads(), [&](auto b) {
        auto begin = b * kCacheLineBytes, end = std::min(n_rows, begin + kCacheLineBytes);
        for (bst_feature_t f = 0; f < codes.n_features; ++f) {
          for (auto i = begin; i < end; ++i) {
            out[f * n_rows + i] = codes.codes[i * codes.n_features + f];
          }
        }
      });
}

/** @brief Call fn(i, code) for the rows of a list, in order. */
template <typename Codes, typename Fn>
void ForEachCode(Codes const& codes, bst_feature_t f, std::uint32_t const* rows, std::size_t n,
                 Fn&& fn) {
  for (std::size_t i = 0; i < n; ++i) {
    codes.Prefetch(rows[std::min(i + kRowsAhead, n - 1)], f);
    fn(i, codes(rows[i], f));
  }
}
}  // namespace

Branching::Branching(BinOffsets const& offsets, bst_node_t node, Partition partition,
                     std::vector<bst_node_t> children)
    : node{node}, feature{partition[0].feature}, children{std::move(children)} {
  CHECK_EQ(this->children.size(), partition.size() + 1);
  CHECK_LE(this->children.size(), kMaxChildren);
  auto missing = offsets.MissingCode(feature);
  for (std::uint32_t code = 0; code <= missing; ++code) {
    std::size_t at = 0;
    while (at < partition.size()) {
      at = 2 * at + (partition[at].GoesLeft(code, missing) ? 1 : 2);
    }
    child_of.push_back(static_cast<std::uint8_t>(at - partition.size()));
  }
}

void RowSets::Reset(Context const* ctx, BinnedPages const& pages) {
  for (auto p = columns_.size(); p < pages.Size(); ++p) {
    columns_.emplace_back();
    auto const& page = pages.Head(p);
    if (page.IsDense() && page.bytes) {
      ResizeInLargePages(page.n_bytes, &columns_[p]);
      WithDenseCodes(page, [&](auto const& codes) {
        WriteColumns(ctx, codes, page.n_rows, columns_[p].data());
      });
    }
  }
  ResizeInLargePages(pages.NumRows(), &rows_);
  begins_.clear();
  ranges_.clear();
  std::size_t begin = 0, largest = 0;
  for (std::size_t p = 0; p < pages.Size(); ++p) {
    auto n_rows = pages.Head(p).n_rows;
    std::iota(rows_.begin() + begin, rows_.begin() + begin + n_rows, 0U);
    begins_.push_back(begin);
    ranges_.push_back({{0, n_rows}});
    begin += n_rows;
    largest = std::max(largest, n_rows);
  }
  ResizeInLargePages(largest, &parted_);
  child_.resize(largest);
}

template <typename Fn>
void RowSets::WithCodes(std::size_t p, BinPage const& page, BinOffsets const& offsets,
                        Fn&& fn) const {
  if (columns_[p].empty()) {
    dp::WithCodes(page, offsets, fn);
  } else {
    WithDenseCodes(
        page, [&](auto const& codes) { fn(AsColumns(codes, columns_[p].data(), page.n_rows)); });
  }
}

common::Span<std::uint32_t const> RowSets::Rows(std::size_t p, bst_node_t nidx) const {
  auto const& ranges = ranges_[p];
  if (static_cast<std::size_t>(nidx) >= ranges.size()) {
    return {};
  }
  return {rows_.data() + begins_[p] + ranges[nidx].begin, ranges[nidx].size};
}

void RowSets::Part(Context const* ctx, std::size_t p, BinPage const& page,
                   BinOffsets const& offsets, std::vector<Branching> const& branchings) {
  auto* rows = rows_.data() + begins_[p];
  auto& ranges = ranges_[p];
  std::vector<Block> blocks;
  for (std::size_t k = 0; k < branchings.size(); ++k) {
    auto set = ranges[branchings[k].node];
    AddBlocks(k, set.begin, set.size, &blocks);
  }
  auto n_threads = NumThreads(ctx, blocks);
  this->WithCodes(p, page, offsets, [&](auto const& codes) {
    common::ParallelFor(blocks.size(), n_threads, [&](auto b) {
      auto& block = blocks[b];
      auto const& branching = branchings[block.node];
      // Two counts by turns, as an addition waits for the last one to the same count.
      std::array<std::array<std::size_t, kMaxChildren>, 2> counts{};
      // By value: a store of a byte could alias a captured reference.
      auto to_child = [&counts, child_of = branching.child_of.data(),
                       child = child_.data() + block.begin](auto i, auto code) {
        child[i] = child_of[code];
        ++counts[i % 2][child[i]];
      };
      ForEachCode(codes, branching.feature, rows + block.begin, block.size, to_child);
      std::transform(counts[0].cbegin(), counts[0].cend(), counts[1].cbegin(), block.at.begin(),
                     std::plus<>{});
    });
  });

  // Turn counts into positions, by child and block.
  auto block = blocks.begin();
  for (std::size_t k = 0; k < branchings.size(); ++k) {
    auto const& branching = branchings[k];
    auto set = ranges[branching.node];
    auto end = block;
    while (end != blocks.end() && end->node == k) {
      ++end;
    }
    auto begin = set.begin;
    for (std::size_t c = 0; c < branching.children.size(); ++c) {
      auto next = begin;
      for (auto it = block; it != end; ++it) {
        auto count = it->at[c];
        it->at[c] = next;
        next += count;
      }
      auto nidx = static_cast<std::size_t>(branching.children[c]);
      ranges.resize(std::max(ranges.size(), nidx + 1));
      ranges[nidx] = {begin, next - begin};
      begin = next;
    }
    ranges[branching.node] = {};
    block = end;
  }

  common::ParallelFor(blocks.size(), n_threads, [&](auto b) {
    auto at = blocks[b].at;
    for (auto i = blocks[b].begin; i < blocks[b].begin + blocks[b].size; ++i) {
      parted_[at[child_[i]]++] = rows[i];
    }
  });
  common::ParallelFor(blocks.size(), n_threads, [&](auto b) {
    std::copy_n(parted_.cbegin() + blocks[b].begin, blocks[b].size, rows + blocks[b].begin);
  });
}

void RowSets::Positions(Context const* ctx, BinnedPages const& pages,
                        std::vector<Branching> const& branchings,
                        std::vector<bst_node_t>* positions) const {
  positions->resize(rows_.size());
  for (std::size_t p = 0; p < ranges_.size(); ++p) {
    auto const* rows = rows_.data() + begins_[p];
    auto base_row = pages.Head(p).base_row;
    std::vector<Branching const*> branching_of_node(ranges_[p].size(), nullptr);
    for (auto const& branching : branchings) {
      branching_of_node[branching.node] = &branching;
    }
    std::vector<Block> blocks;
    for (std::size_t nidx = 0; nidx < branching_of_node.size(); ++nidx) {
      AddBlocks(nidx, ranges_[p][nidx].begin, ranges_[p][nidx].size, &blocks);
    }
    BinPage page;
    page.code_bytes = 1;  // not read without branchings
    if (!branchings.empty()) {
      page = pages[p];
    }
    this->WithCodes(p, page, pages.Offsets(), [&](auto const& codes) {
      common::ParallelFor(blocks.size(), NumThreads(ctx, blocks), [&](auto b) {
        auto const& block = blocks[b];
        auto const* members = rows + block.begin;
        auto const* branching = branching_of_node[block.node];
        if (!branching) {
          for (std::size_t i = 0; i < block.size; ++i) {
            (*positions)[base_row + members[i]] = static_cast<bst_node_t>(block.node);
          }
          return;
        }
        ForEachCode(codes, branching->feature, members, block.size, [&](auto i, auto code) {
          (*positions)[base_row + members[i]] = branching->children[branching->child_of[code]];
        });
      });
    });
  }
}
}  // namespace xgboost::dp
