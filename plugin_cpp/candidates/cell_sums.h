/**
 * Exact sums over the rows per cell of each feature, from which candidates are released.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <algorithm>  // for lower_bound
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t
#include <utility>    // for move
#include <vector>     // for vector

#include "common/threading_utils.h"   // for ParallelFor
#include "plugin_cpp/distributed.h"   // for SumOverWorkers
#include "xgboost/base.h"             // for bst_feature_t
#include "xgboost/context.h"          // for Context
#include "xgboost/data.h"             // for SparsePage, Entry

namespace xgboost::dp {
/** @brief Sums for a block of features. A row is in at most one cell of each. Not private. */
class CellSums {
 public:
  /** @param n_cells Number of cells of each of the features. */
  CellSums(Context const* ctx, Masking const& masking, std::vector<bst_feature_t> features,
           std::vector<std::size_t> const& n_cells)
      : ctx_{ctx},
        masking_{masking},
        features_{std::move(features)},
        offsets_(1, 0),
        tables_(ctx->Threads()) {
    for (auto n : n_cells) {
      offsets_.push_back(offsets_.back() + n);
    }
    for (auto& t : tables_) {
      t.resize(offsets_.back());
    }
  }

  /**
   * @brief Add the rows of a page.
   *
   * @param cell   cell(k, value): the cell of a value of the k-th feature.
   * @param weight weight(row): what a row of this worker adds to its cells.
   */
  template <typename CellFn, typename WeightFn>
  void Add(SparsePage const& page, bool is_dense, CellFn&& cell, WeightFn&& weight) {
    auto view = page.GetView();
    auto n_threads = ctx_->Threads();
    auto n_rows = view.Size();
    common::ParallelFor(n_threads, n_threads, [&](auto tid) {
      auto* table = tables_[tid].data();
      auto begin = n_rows * tid / n_threads;
      auto end = n_rows * (tid + 1) / n_threads;
      for (auto i = begin; i < end; ++i) {
        auto row = view[i];
        auto w = weight(page.base_rowid + i);
        auto const* e = row.data();
        auto const* last = e + row.size();
        for (std::size_t k = 0; k < features_.size(); ++k) {
          auto fidx = features_[k];
          if (is_dense) {
            e = row.data() + fidx;
          } else {
            e = std::lower_bound(e, last, fidx,
                                 [](Entry const& l, bst_feature_t r) { return l.index < r; });
            if (e == last) {
              break;
            }
            if (e->index != fidx) {
              continue;
            }
          }
          table[offsets_[k] + cell(k, e->fvalue)] += w;
        }
      }
    });
  }

  /** @brief Sums of the cells of the k-th feature; see @ref SumOverWorkers for over which rows. */
  [[nodiscard]] std::vector<std::int64_t> Of(std::size_t k) const {
    std::vector<std::int64_t> out(offsets_[k + 1] - offsets_[k], 0);
    for (auto const& t : tables_) {
      for (std::size_t c = 0; c < out.size(); ++c) {
        out[c] += t[offsets_[k] + c];
      }
    }
    SumOverWorkers(ctx_, masking_, &out);
    return out;
  }

 private:
  Context const* ctx_;
  Masking masking_;
  std::vector<bst_feature_t> features_;
  std::vector<std::size_t> offsets_;
  std::vector<std::vector<std::int64_t>> tables_;
};
}  // namespace xgboost::dp
