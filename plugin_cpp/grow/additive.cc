#include "plugin_cpp/grow/additive.h"

#include <algorithm>  // for for_each, max, min, min_element
#include <array>      // for array
#include <cmath>      // for sqrt, trunc
#include <cstdlib>    // for abs
#include <limits>     // for numeric_limits
#include <mutex>      // for mutex, lock_guard

#include "common/threading_utils.h"  // for ParallelFor

namespace xgboost::dp {
namespace {
constexpr auto kAbsentCell = std::numeric_limits<std::uint32_t>::max();
}  // namespace

Columns::Columns(Context const* ctx, Plan const& plan, common::HistogramCuts const& cuts,
                 Offers const& offers, BinnedPages const& pages, RandomSource* structure)
    : ctx_{ctx}, offers_{offers}, pages_{pages}, draws_{offers}, structure_{structure} {
  auto const& ptrs = cuts.Ptrs();
  for (bst_feature_t f = 0; f < static_cast<bst_feature_t>(plan.n_features); ++f) {
    feature_of_.resize(pages.Places()[f + 1], f);
    // No more levels than there are bins to part.
    std::int32_t depth = 1;
    while (depth < plan.depth && (std::size_t{1} << depth) < offers.NumBins(f)) {
      ++depth;
    }
    depth_.push_back(depth);
    zero_.push_back(offers.IsCategorical(f) ? 0 : cuts.SearchBin(0.0f, f) - ptrs[f]);
    if (offers.IsCategorical(f)) {
      categorical_.push_back(f);
    }
  }
}

std::size_t Columns::LeafOf(bst_feature_t f, std::uint32_t code) const {
  auto const& splits = splits_[f];
  auto missing = pages_.Places().MissingCode(f);
  std::size_t at = 0;
  while (at < splits.size()) {
    at = 2 * at + (splits[at].GoesLeft(code, missing) ? 1 : 2);
  }
  return at - splits.size();
}

void Columns::PartZero(bst_feature_t f) {
  auto n_cuts = static_cast<bst_bin_t>(offers_.NumBins(f)) - 1;
  if (n_cuts == 0) {
    return;
  }
  auto cut = std::min(zero_[f], n_cuts - 1);
  auto distance = [=](Split const& split) { return std::abs(split.bin - cut); };
  auto nearest =
      std::min_element(splits_[f].begin(), splits_[f].end(),
                       [&](Split const& a, Split const& b) { return distance(a) < distance(b); });
  nearest->bin = cut;  // no other cut is between, so that they keep their order
}

void Columns::Draw() {
  auto const& places = pages_.Places();
  auto n_features = depth_.size();
  splits_.assign(n_features, {});
  absent_.assign(n_features, kNone);
  cell_of_.assign(places.Size(), kAbsentCell);
  n_cells_ = 0;
  for (bst_feature_t f = 0; f < n_features; ++f) {
    draws_.Draw(f, (std::size_t{1} << depth_[f]) - 1, structure_, &splits_[f]);
    if (!offers_.IsCategorical(f)) {
      this->PartZero(f);
      for (auto& split : splits_[f]) {
        split.default_left = split.GoesLeft(zero_[f]);
      }
      absent_[f] = this->LeafOf(f, zero_[f]);
    }
    for (std::uint32_t code = 0; code <= places.MissingCode(f); ++code) {
      auto leaf = this->LeafOf(f, code);
      if (leaf != absent_[f]) {
        cell_of_[places[f] + code] = n_cells_ + leaf - (leaf > absent_[f] ? 1 : 0);
      }
    }
    n_cells_ += (std::size_t{1} << depth_[f]) - (absent_[f] == kNone ? 0 : 1);
  }
}

std::vector<LocalSum> Columns::Sum(std::vector<PackedPair> const& gpair) const {
  constexpr std::size_t kBlock = 4096;
  auto const& places = pages_.Places();
  auto n_features = places.NumFeatures();
  std::vector<double> scale;  // by the number of columns that a row has
  for (bst_feature_t k = 0; k <= n_features; ++k) {
    scale.push_back(1.0 / std::sqrt(k + 1.0));
  }
  std::vector<LocalSum> sums(n_cells_ + 1);
  std::mutex lock;
  for (std::size_t p = 0; p < pages_.Size(); ++p) {
    auto page = pages_[p];
    WithCodes(page, places, [&](auto const& codes) {
      common::ParallelFor((page.n_rows + kBlock - 1) / kBlock, ctx_->Threads(), [&](auto block) {
        std::vector<LocalSum> own(sums.size());
        std::vector<std::uint32_t> cells(n_features);
        auto end = std::min(page.n_rows, (static_cast<std::size_t>(block) + 1) * kBlock);
        for (auto i = static_cast<std::size_t>(block) * kBlock; i < end; ++i) {
          std::size_t n_cells = 0;
          auto enter = [&](std::uint32_t place) {
            auto cell = cell_of_[place];
            cells[n_cells] = cell;
            n_cells += cell != kAbsentCell ? 1 : 0;
          };
          if (page.IsDense()) {
            for (bst_feature_t f = 0; f < n_features; ++f) {
              enter(places[f] + codes(i, f));
            }
          } else {
            auto const* row_ptr = page.RowPtr();
            std::for_each(page.Entries() + row_ptr[i], page.Entries() + row_ptr[i + 1], enter);
            for (auto f : categorical_) {
              if (codes(i, f) == places.MissingCode(f)) {
                enter(places[f] + places.MissingCode(f));
              }
            }
          }
          // k + 1 cells get (q_g, q_h) / sqrt(k + 1), towards zero: their squares add up to at most
          // q_g^2 + q_h^2.
          auto pair = gpair[page.base_row + i].Sum();
          auto grad = std::trunc(static_cast<double>(pair.grad) * scale[n_cells]);
          auto hess = std::trunc(static_cast<double>(pair.hess) * scale[n_cells]);
          LocalSum scaled{static_cast<std::int64_t>(grad), static_cast<std::int64_t>(hess)};
          for (std::size_t c = 0; c < n_cells; ++c) {
            own[cells[c]] += scaled;
          }
          own.back() += scaled;
        }
        std::lock_guard<std::mutex> guard{lock};
        for (std::size_t k = 0; k < own.size(); ++k) {
          sums[k] += own[k];
        }
      });
    });
  }
  return sums;
}

void Columns::Keep(std::size_t class_idx, bst_feature_t f, std::vector<float> const& values) {
  auto const& places = pages_.Places();
  values_.resize(std::max(values_.size(), class_idx + 1));
  auto& of_class = values_[class_idx];
  of_class.resize(places.Size());
  for (std::uint32_t code = 0; code <= places.MissingCode(f); ++code) {
    of_class[places[f] + code] = values[this->LeafOf(f, code)];
  }
}

void Columns::Add(common::Span<float> predictions) const {
  constexpr std::size_t kBlock = 1024;
  auto const& places = pages_.Places();
  auto n_features = places.NumFeatures();
  auto n_class = values_.size();
  for (std::size_t k = 0; k < n_class; ++k) {
    auto const* value = values_[k].data();
    for (std::size_t p = 0; p < pages_.Size(); ++p) {
      auto page = pages_[p];
      auto* out = predictions.data() + page.base_row * n_class + k;
      auto n_blocks = (page.n_rows + kBlock - 1) / kBlock;
      auto end_of = [&](std::size_t block) { return std::min(page.n_rows, (block + 1) * kBlock); };
      if (!page.IsDense()) {
        common::ParallelFor(n_blocks, ctx_->Threads(), [&](auto block) {
          this->AddStored(page, value, block * kBlock, end_of(block), out, n_class);
        });
        continue;
      }
      WithDenseCodes(page, [&](auto const& codes) {
        common::ParallelFor(n_blocks, ctx_->Threads(), [&](auto block) {
          for (auto i = block * kBlock; i < end_of(block); ++i) {
            auto sum = out[i * n_class];
            for (bst_feature_t f = 0; f < n_features; ++f) {
              sum += value[places[f] + codes(i, f)];
            }
            out[i * n_class] = sum;
          }
        });
      });
    }
  }
}

void Columns::AddStored(BinPage const& page, float const* value, std::size_t begin, std::size_t end,
                        float* out, std::size_t stride) const {
  // Rows side by side: each is a chain of additions, of which a processor makes many at once.
  constexpr std::size_t kRows = 16;
  auto const& places = pages_.Places();
  auto n_features = places.NumFeatures();
  auto const* row_ptr = page.RowPtr();
  auto const* entries = page.Entries();
  std::vector<float> of_missing;
  std::vector<float> terms;  // by feature and row: that of a missing value, but for stored cells
  for (bst_feature_t f = 0; f < n_features; ++f) {
    of_missing.push_back(value[places[f] + places.MissingCode(f)]);
    terms.insert(terms.end(), kRows, of_missing.back());
  }
  for (; begin < end; begin += kRows) {
    auto n_rows = std::min(kRows, end - begin);
    std::array<float, kRows> sums{};
    for (std::size_t r = 0; r < n_rows; ++r) {
      sums[r] = out[(begin + r) * stride];
      for (auto at = row_ptr[begin + r]; at < row_ptr[begin + r + 1]; ++at) {
        terms[feature_of_[entries[at]] * kRows + r] = value[entries[at]];
      }
    }
    auto const* term = terms.data();
    for (bst_feature_t f = 0; f < n_features; ++f, term += kRows) {
      for (std::size_t r = 0; r < kRows; ++r) {
        sums[r] += term[r];
      }
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
      out[(begin + r) * stride] = sums[r];
      for (auto at = row_ptr[begin + r]; at < row_ptr[begin + r + 1]; ++at) {
        auto f = feature_of_[entries[at]];
        terms[f * kRows + r] = of_missing[f];
      }
    }
  }
}
}  // namespace xgboost::dp
