/**
 * Exact sums over the rows per cell of each feature, from which candidates are released.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <algorithm>  // for lower_bound, min
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t
#include <memory>     // for make_unique, unique_ptr
#include <utility>    // for move
#include <vector>     // for vector

#include "common/threading_utils.h"  // for ParallelFor
#include "xgboost/base.h"            // for bst_feature_t
#include "xgboost/context.h"         // for Context
#include "xgboost/data.h"            // for SparsePage, Entry

namespace xgboost::dp {
/**
 * @brief Sums for a block of features, over the rows of this worker. A row is in at most one cell
 * of each. Not private.
 */
class CellSums {
 public:
  /**
   * @param features Ascending, at least one.
   * @param n_cells  Number of cells of each of the features.
   */
  CellSums(Context const* ctx, std::vector<bst_feature_t> features,
           std::vector<std::size_t> const& n_cells)
      : ctx_{ctx},
        features_{std::move(features)},
        position_(features_.back() + 1, features_.size()) {
    for (std::size_t k = 0; k < features_.size(); ++k) {
      position_[features_[k]] = k;
      chunks_.emplace_back((n_cells[k] + kChunk - 1) / kChunk);
      cells_of_chunk_.push_back(std::min(n_cells[k], kChunk));
    }
  }

  /**
   * @brief Add the rows of a page.
   *
   * @param cell   cell(k, value): the cell of a value of the k-th feature.
   * @param weight weight(row): what a row of this worker adds to its cells.
   */
  template <typename CellFn, typename WeightFn>
  void Add(SparsePage const& page, CellFn&& cell, WeightFn&& weight) {
    auto view = page.GetView();
    auto n_rows = view.Size();
    // Each thread has features of its own, so that one table serves all.
    auto n_threads = std::min(static_cast<std::size_t>(ctx_->Threads()), features_.size());
    common::ParallelFor(n_threads, ctx_->Threads(), [&](auto tid) {
      auto begin = features_.size() * tid / n_threads;
      auto end = features_.size() * (tid + 1) / n_threads;
      for (std::size_t i = 0; i < n_rows; ++i) {
        auto row = view[i];
        auto w = weight(page.base_rowid + i);
        auto const* last = row.data() + row.size();
        auto const* e =
            std::lower_bound(row.data(), last, features_[begin],
                             [](Entry const& l, bst_feature_t r) { return l.index < r; });
        for (; e != last && e->index <= features_[end - 1]; ++e) {
          auto k = position_[e->index];
          if (k != features_.size()) {
            std::size_t c = cell(k, e->fvalue);
            auto& chunk = chunks_[k][c / kChunk];
            if (!chunk) {
              chunk = std::make_unique<std::int64_t[]>(cells_of_chunk_[k]);
            }
            chunk[c % kChunk] += w;
          }
        }
      }
    });
  }

  /** @brief Sum of the cells from `begin` to before `end` of the k-th feature. */
  [[nodiscard]] std::int64_t Sum(std::size_t k, std::size_t begin, std::size_t end) const {
    std::int64_t sum = 0;
    while (begin < end) {
      auto next = std::min(end, (begin / kChunk + 1) * kChunk);
      if (auto const& chunk = chunks_[k][begin / kChunk]) {
        for (auto c = begin; c < next; ++c) {
          sum += chunk[c % kChunk];
        }
      }
      begin = next;
    }
    return sum;
  }

 private:
  // Nearly all cells of a quantile tree stay empty: there is memory only for chunks in which a row
  // falls.
  static constexpr std::size_t kChunk = 256;

  Context const* ctx_;
  std::vector<bst_feature_t> features_;
  std::vector<std::size_t> position_;  // of a feature; their number for one that is not counted
  std::vector<std::size_t> cells_of_chunk_;
  std::vector<std::vector<std::unique_ptr<std::int64_t[]>>> chunks_;
};
}  // namespace xgboost::dp
