/**
 * Exact sums over the rows per cell of each feature, from which candidates are released.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <algorithm>  // for lower_bound, min
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t
#include <cstdlib>    // for calloc, free
#include <memory>     // for unique_ptr
#include <utility>    // for move
#include <vector>     // for vector

#include "common/threading_utils.h"   // for ParallelFor
#include "plugin_cpp/distributed.h"   // for SumOverWorkers
#include "xgboost/base.h"             // for bst_feature_t
#include "xgboost/context.h"          // for Context
#include "xgboost/data.h"             // for SparsePage, Entry
#include "xgboost/logging.h"          // for CHECK

namespace xgboost::dp {
/** @brief Sums for a block of features. A row is in at most one cell of each. Not private. */
class CellSums {
 public:
  /**
   * @param features Ascending, at least one.
   * @param n_cells  Number of cells of each of the features.
   */
  CellSums(Context const* ctx, Masking const& masking, std::vector<bst_feature_t> features,
           std::vector<std::size_t> const& n_cells)
      : ctx_{ctx},
        masking_{masking},
        features_{std::move(features)},
        position_(features_.back() + 1, features_.size()),
        offsets_(1, 0) {
    for (std::size_t k = 0; k < features_.size(); ++k) {
      position_[features_[k]] = k;
    }
    for (auto n : n_cells) {
      offsets_.push_back(offsets_.back() + n);
    }
    // Memory of cells that stay empty, nearly all, is never touched.
    sums_.reset(static_cast<std::int64_t*>(std::calloc(offsets_.back(), sizeof(std::int64_t))));
    CHECK(sums_) << "Not enough memory for the sums of the cells of candidates.";
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
        auto const* e = std::lower_bound(
            row.data(), last, features_[begin],
            [](Entry const& l, bst_feature_t r) { return l.index < r; });
        for (; e != last && e->index <= features_[end - 1]; ++e) {
          auto k = position_[e->index];
          if (k != features_.size()) {
            sums_.get()[offsets_[k] + cell(k, e->fvalue)] += w;
          }
        }
      }
    });
  }

  /** @brief Sums of the cells of the k-th feature; see @ref SumOverWorkers for over which rows. */
  [[nodiscard]] std::vector<std::int64_t> Of(std::size_t k) const {
    std::vector<std::int64_t> out(sums_.get() + offsets_[k], sums_.get() + offsets_[k + 1]);
    SumOverWorkers(ctx_, masking_, &out);
    return out;
  }

 private:
  Context const* ctx_;
  Masking masking_;
  std::vector<bst_feature_t> features_;
  std::vector<std::size_t> position_;  // of a feature; their number for one that is not counted
  std::vector<std::size_t> offsets_;
  std::unique_ptr<std::int64_t, decltype(&std::free)> sums_{nullptr, &std::free};
};
}  // namespace xgboost::dp
