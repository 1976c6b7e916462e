#include "plugin_cpp/grow/node_histograms.h"

#include <algorithm>    // for all_of, clamp, copy, fill_n, find, max, min, transform
#include <cstdlib>      // for abs
#include <cstring>      // for memcpy
#include <limits>       // for numeric_limits
#include <mutex>        // for mutex, lock_guard
#include <type_traits>  // for is_same_v
#include <utility>      // for move, swap

#include "common/threading_utils.h"  // for ParallelFor, Sched
#include "xgboost/logging.h"         // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::size_t kRowsPerBlock = 8192;
// Features summed together: their words fit the L2 cache, and rows are read few times.
constexpr std::size_t kFeaturesPerTile = 64;
constexpr std::size_t kOffsetsPerTile = kFeaturesPerTile * ((1U << 8) + 1);
constexpr std::size_t kFeaturesAtOnce = 4;
constexpr std::size_t kRowsAhead = 24;
constexpr std::size_t kWordsPerLine = kCacheLineBytes / sizeof(PackedPair);
constexpr std::size_t kLinesAtOnce = sizeof(std::uint64_t);

/** @brief Offsets of consecutive features in a table for these features only. */
struct BinTile {
  BinOffsets const& offsets;
  std::size_t begin, end;

  std::size_t operator[](std::size_t f) const { return offsets[f] - offsets[begin]; }
};

/**
 * @brief Offsets at a constant distance, for features with at most 2^kBits entries. An additional
 *        cache line between features avoids cache set conflicts.
 */
template <std::size_t kBits>
struct EvenTile {
  static constexpr std::size_t kApart = (std::size_t{1} << kBits) + kWordsPerLine;
  std::size_t begin, end;

  std::size_t operator[](std::size_t f) const { return (f - begin) * kApart; }
};

template <typename CodeT, typename Fn>
void WithTile(DenseCodes<CodeT> const&, BinTile const& tile, Fn&& fn) {
  if constexpr (sizeof(CodeT) == 1) {
    fn(EvenTile<8>{tile.begin, tile.end});
    return;
  }
  std::size_t most = 0;
  for (auto f = tile.begin; f < tile.end; ++f) {
    most = std::max<std::size_t>(most, tile.offsets.NumBins(f));
  }
  if (most < (1U << 10)) {
    fn(EvenTile<10>{tile.begin, tile.end});
  } else {
    fn(tile);
  }
}

/** @brief Consecutive rows, which the processor prefetches itself. */
struct RowRun {
  std::size_t first;

  std::size_t operator[](std::size_t i) const { return first + i; }
};

template <typename CodeT, typename Tile, typename Rows>
void SumDense(DenseCodes<CodeT> const& codes, Tile const& tile, Rows const& rows, std::size_t n,
              PackedPair const* gpair, PackedPair* words) {
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::is_same_v<Rows, RowRun> && i + kRowsAhead < n) {
      auto next = rows[i + kRowsAhead];
      Prefetch(gpair + next);
      codes.Prefetch(next, tile.begin, tile.end);
    }
    auto pair = gpair[rows[i]];
    auto const* row = codes.codes + rows[i] * codes.n_features;
    auto* first_words = words;
    auto f = tile.begin;
    for (; f + kFeaturesAtOnce <= tile.end; f += kFeaturesAtOnce) {
      for (std::size_t k = 0; k < kFeaturesAtOnce; ++k) {
        first_words[tile[f + k] - tile[f] + row[f + k]] += pair;
      }
      first_words += tile[f + kFeaturesAtOnce] - tile[f];
    }
    // With a constant limit this loop is unrolled too.
    for (std::size_t k = 0; k < kFeaturesAtOnce - 1 && f + k < tile.end; ++k) {
      first_words[tile[f + k] - tile[f] + row[f + k]] += pair;
    }
  }
}

void Take(PackedPair word, LocalSum* sum) { *sum += word.Sum(); }
void Take(PackedPair word, PackedPair* sum) { *sum = word; }  // of all rows of a node

/** @brief Add the words of a table to the sums of its bins, or set them, and reset the words. */
template <typename Tile, typename Out>
void MoveSums(BinOffsets const& offsets, Tile const& tile, PackedPair* words, Out* sums) {
  for (auto f = tile.begin; f < tile.end; ++f) {
    auto* feature_words = words + tile[f];
    auto* out = sums + (offsets[f] - f);
    auto n_bins = offsets.NumBins(f);
    for (std::size_t i = 0; i < n_bins; ++i) {
      Take(feature_words[i], out + i);
    }
    std::fill_n(feature_words, n_bins + 1, PackedPair{});
  }
}

template <typename Sum>
bool FitsWord(Sum const& sum) {
  return std::abs(sum.grad) <= PackedPair::kLimit && sum.hess >= 0 &&
         sum.hess <= PackedPair::kLimit;
}

/** @brief Convert sums to words modulo 2^64, and words that are sums to sums. */
template <typename Out, typename In>
Out Convert(In const& in) {
  if constexpr (std::is_same_v<Out, In>) {
    return in;
  } else if constexpr (std::is_same_v<In, PackedPair>) {
    return UnpackTo<Out>(in);
  } else {
    return Out{in.grad, in.hess};
  }
}

/** @param mark Function to call with the offset of each entry. */
template <typename Fn>
void SumSparse(BinPage const& page, common::Span<std::uint32_t const> rows, PackedPair const* gpair,
               PackedPair* words, Fn&& mark) {
  auto const* row_ptr = page.RowPtr();
  auto const* entries = page.Entries();
  for (auto row : rows) {
    auto pair = gpair[row];
    auto last = row_ptr[row + 1];
    for (auto i = row_ptr[row]; i < last; ++i) {
      words[entries[i]] += pair;
      mark(entries[i]);
    }
  }
}

/**
 * @brief Merge two ascending lists. An offset in both lists gets fn(first, second), and an offset
 *        in the second list alone gets fn(0, second). Zeros are dropped.
 */
template <typename Sum, typename Fn>
void Zip(SparseBins<Sum> const& list, SparseBins<Sum> const& other, Fn&& fn, SparseBins<Sum>* out) {
  auto n_a = list.offsets.size(), n_b = other.offsets.size();
  out->offsets.resize(n_a + n_b);
  out->sums.resize(n_a + n_b);
  std::size_t i = 0, j = 0, n = 0;
  while (i < n_a || j < n_b) {
    auto a = i < n_a ? list.offsets[i] : std::numeric_limits<std::uint32_t>::max();
    auto b = j < n_b ? other.offsets[j] : std::numeric_limits<std::uint32_t>::max();
    auto offset = std::min(a, b);
    Sum sum = a == offset ? list.sums[i++] : Sum{};
    if (b == offset) {
      sum = fn(sum, other.sums[j++]);
    }
    out->offsets[n] = offset;
    out->sums[n] = sum;
    n += sum.grad != 0 || sum.hess != 0 ? 1 : 0;
  }
  out->offsets.resize(n);
  out->sums.resize(n);
}
}  // namespace

Level::Level(Context const* ctx, Release const& release, BinOffsets const& offsets,
             std::int64_t largest)
    : ctx_{ctx}, release_{release}, offsets_{offsets} {
  CHECK_LE(largest, PackedPair::kLimit);
  rows_per_block_ = std::clamp<std::size_t>(PackedPair::kLimit / std::max<std::int64_t>(largest, 1),
                                            1, kRowsPerBlock);
}

void Level::Begin(std::vector<Siblings> families) {
  families_ = std::move(families);
  summed_.clear();
  if (families_.empty()) {
    summed_ = {RegTree::kRoot};
  }
  for (auto const& family : families_) {
    for (std::size_t i = 0; i < family.nodes.size(); ++i) {
      if (i != family.heaviest) {
        summed_.push_back(family.nodes[i]);
      }
    }
  }
}

void Level::EndNodes() {
  nodes_ = summed_;
  for (auto const& family : families_) {
    nodes_.push_back(family.nodes[family.heaviest]);
  }
}

std::vector<Level::RowBlock> Level::MakeBlocks(std::size_t p, RowSets const& rows) const {
  std::vector<RowBlock> blocks;
  for (std::size_t k = 0; k < summed_.size(); ++k) {
    auto set = rows.Rows(p, summed_[k]);
    for (std::size_t begin = 0; begin < set.size(); begin += rows_per_block_) {
      blocks.push_back({k, set.subspan(begin, std::min(rows_per_block_, set.size() - begin))});
    }
  }
  return blocks;
}

bool Level::FitsWords(std::size_t p, RowSets const& rows) const {
  auto fits = [&](bst_node_t nidx) { return rows.Rows(p, nidx).size() <= rows_per_block_; };
  return std::all_of(summed_.cbegin(), summed_.cend(), fits) &&
         std::all_of(families_.cbegin(), families_.cend(),
                     [&](Siblings const& family) { return fits(family.nodes[family.heaviest]); });
}

std::size_t Level::IndexOf(bst_node_t nidx) const {
  auto it = std::find(nodes_.cbegin(), nodes_.cend(), nidx);
  CHECK(it != nodes_.cend());
  return it - nodes_.cbegin();
}

template <typename Sum>
DenseHistograms<Sum>::DenseHistograms(Context const* ctx, Release const& release,
                                      BinOffsets const& offsets, std::int64_t largest,
                                      std::shared_ptr<Scratch> scratch, bool is_small, bool has_all)
    : Level{ctx, release, offsets, largest},
      tiles_{{0, 0}},
      n_bins_{offsets.Size() - offsets.NumFeatures()},
      is_small_{is_small},
      has_all_{has_all},
      scratch_{std::move(scratch)} {
  for (std::size_t f = 0; f < offsets.NumFeatures(); ++f) {
    auto begin = tiles_.back().begin;
    if (f == begin + kFeaturesPerTile ||
        (f > begin && offsets[f + 1] - offsets[begin] > kOffsetsPerTile)) {
      tiles_.push_back({f, f});
    }
    tiles_.back().end = f + 1;
  }
}

template <typename Sum>
void DenseHistograms<Sum>::Add(std::size_t p, BinPage const& page, RowSets const& rows,
                               std::vector<PackedPair> const& gpair) {
  auto blocks = this->MakeBlocks(p, rows);
  auto const* pairs = gpair.data() + page.base_row;
  fits_ = has_all_ && this->FitsWords(p, rows);
  if (fits_) {
    auto n = (summed_.size() + families_.size()) * n_bins_;
    auto& packed = scratch_->packed;
    packed.resize(std::max(packed.size(), n));
    for (std::size_t k = 0; k < summed_.size(); ++k) {
      if (rows.Rows(p, summed_[k]).empty()) {
        std::fill_n(packed.begin() + k * n_bins_, n_bins_, PackedPair{});
      }
    }
    this->AddRows(blocks, page, pairs, packed.data());  // one block for each node with rows
  } else {
    scratch_->local.resize(summed_.size() * n_bins_);
    this->AddRows(blocks, page, pairs, scratch_->local.data());
  }
}

template <typename Sum>
template <typename Out>
void DenseHistograms<Sum>::AddRows(std::vector<RowBlock> const& blocks, BinPage const& page,
                                   PackedPair const* pairs, Out* sums) {
  scratch_->words.resize(ctx_->Threads());
  std::vector<std::mutex> locks(summed_.size());
  common::ParallelFor(blocks.size(), ctx_->Threads(), common::Sched::Dyn(), [&](auto b) {
    auto& buffer = scratch_->words[omp_get_thread_num()];
    auto const& rows = blocks[b].rows;
    auto sum = [&](auto const& tile, auto&& rows_to_words) {
      buffer.resize(std::max(buffer.size(), tile[tile.end]));
      rows_to_words(buffer.data());
      // Sums of integers do not depend on the order of threads.
      std::lock_guard<std::mutex> lock{locks[blocks[b].node]};
      MoveSums(offsets_, tile, buffer.data(), sums + blocks[b].node * n_bins_);
    };
    if (!page.IsDense()) {
      sum(BinTile{offsets_, 0, offsets_.NumFeatures()},
          [&](auto* words) { SumSparse(page, rows, pairs, words, [](std::uint32_t) {}); });
      return;
    }
    // Rows are in ascending order.
    bool is_run = rows.back() - rows.front() + 1 == rows.size();
    WithDenseCodes(page, [&](auto const& codes) {
      for (auto const& [begin, end] : tiles_) {
        WithTile(codes, {offsets_, begin, end}, [&](auto const& tile) {
          sum(tile, [&](auto* words) {
            if (is_run) {
              SumDense(codes, tile, RowRun{rows.front()}, rows.size(), pairs, words);
            } else {
              SumDense(codes, tile, rows.data(), rows.size(), pairs, words);
            }
          });
        });
      }
    });
  });
}

template <typename Sum>
template <typename Out>
void DenseHistograms<Sum>::SubtractSiblings(Out* below) const {
  auto const* others = below;
  auto* rest = below + summed_.size() * n_bins_;
  for (auto const& family : families_) {
    if (auto const* words = this->Words(family.parent)) {
      std::transform(words, words + n_bins_, rest, Convert<Out, PackedPair>);
    } else {
      auto const* sums = (*this)[family.parent].data();
      std::transform(sums, sums + n_bins_, rest, Convert<Out, Sum>);
    }
    for (std::size_t k = 1; k < family.nodes.size(); ++k, others += n_bins_) {
      for (std::size_t i = 0; i < n_bins_; ++i) {
        rest[i] = rest[i] - others[i];
      }
    }
    rest += n_bins_;
  }
}

template <typename Sum>
void DenseHistograms<Sum>::End() {
  // The level above is still in use. Both keep their memory between trees.
  auto& [below, local, packed, unused] = *scratch_;
  if (fits_) {
    this->SubtractSiblings(packed.data());
    this->EndNodes();
    std::swap(words_, packed);
    is_packed_ = true;
    return;
  }
  auto n = (summed_.size() + families_.size()) * n_bins_;
  local.resize(summed_.size() * n_bins_);
  below.resize(std::max(below.size(), n));  // a smaller size would clear memory in the next tree
  if constexpr (std::is_same_v<Sum, GlobalSum>) {
    release_.SumOverWorkers(&local, below.data());
  } else {
    std::copy(local.cbegin(), local.cend(), below.begin());
  }
  local.clear();
  this->SubtractSiblings(below.data());
  this->EndNodes();
  is_packed_ = is_small_ && std::all_of(below.cbegin(), below.cbegin() + n, FitsWord<Sum>);
  if (is_packed_) {
    words_.resize(n);
    std::transform(below.cbegin(), below.cbegin() + n, words_.begin(), Convert<PackedPair, Sum>);
  } else {
    std::swap(sums_, below);
  }
}

template class DenseHistograms<LocalSum>;
template class DenseHistograms<GlobalSum>;

void SparseHistograms::TakeList(Table* table) {
  auto& [begins, offsets, sums] = table->list;
  begins.clear();
  offsets.clear();
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
      auto* words = table->words.data() + line * kWordsPerLine;
      for (std::size_t i = 0; i < kWordsPerLine; ++i) {
        auto sum = words[i].Sum();
        words[i] = {};
        if (sum.grad != 0 || sum.hess != 0) {
          offsets.push_back(static_cast<std::uint32_t>(line * kWordsPerLine + i));
          sums.push_back(sum);
        }
      }
    }
  }
}

void SparseHistograms::Add(std::size_t p, BinPage const& page, RowSets const& rows,
                           std::vector<PackedPair> const& gpair) {
  auto blocks = this->MakeBlocks(p, rows);
  auto const* pairs = gpair.data() + page.base_row;
  auto n_lines = offsets_.Size() / kWordsPerLine + 1;
  n_lines = (n_lines + kLinesAtOnce - 1) / kLinesAtOnce * kLinesAtOnce;
  lists_.resize(summed_.size());
  tables_.resize(ctx_->Threads());
  std::vector<std::mutex> locks(summed_.size());
  common::ParallelFor(blocks.size(), ctx_->Threads(), common::Sched::Dyn(), [&](auto b) {
    auto& table = tables_[omp_get_thread_num()];
    if (table.is_set.empty()) {
      table.is_set.resize(n_lines);
      table.words.resize(n_lines * kWordsPerLine);
    }
    auto* is_set = table.is_set.data();
    SumSparse(page, blocks[b].rows, pairs, table.words.data(),
              [is_set](std::uint32_t offset) { is_set[offset / kWordsPerLine] = 1; });
    TakeList(&table);
    // Sums of integers do not depend on the order of threads.
    std::lock_guard<std::mutex> lock{locks[blocks[b].node]};
    auto& list = lists_[blocks[b].node];
    if (list.offsets.empty()) {
      list = table.list;
    } else {
      Zip(list, table.list, [](LocalSum a, LocalSum b) { return a + b; }, &table.merged);
      std::swap(list, table.merged);
    }
  });
}

void SparseHistograms::End() {
  std::vector<SparseBins<GlobalSum>> below;
  lists_.resize(summed_.size());
  for (auto& list : lists_) {
    below.push_back({{}, std::move(list.offsets), std::vector<GlobalSum>(list.sums.size())});
    release_.SumOverWorkers(&list.sums, below.back().sums.data());
    list = {};
  }
  lists_.clear();
  std::size_t other = 0;
  for (auto const& family : families_) {
    auto rest = (*this)[family.parent];
    SparseBins<GlobalSum> scratch;
    for (std::size_t k = 1; k < family.nodes.size(); ++k) {
      Zip(rest, below[other++], [](GlobalSum a, GlobalSum const& b) { return a - b; }, &scratch);
      std::swap(rest, scratch);
    }
    rest.offsets.shrink_to_fit();
    rest.sums.shrink_to_fit();
    below.push_back(std::move(rest));
  }
  for (auto& node_bins : below) {
    node_bins.begins.assign(1, 0);
    std::uint32_t i = 0;
    for (bst_feature_t f = 0; f < offsets_.NumFeatures(); ++f) {
      while (i < node_bins.offsets.size() && node_bins.offsets[i] < offsets_[f + 1]) {
        ++i;
      }
      node_bins.begins.push_back(i);
    }
  }
  this->EndNodes();
  bins_ = std::move(below);
}
}  // namespace xgboost::dp
