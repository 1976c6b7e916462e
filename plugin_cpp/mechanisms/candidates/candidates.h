/**
 * The private release of split candidates: once, or again in each of the first rounds.
 *
 * A row is in one cell of every feature, and on one path of every quantile tree. Its weight is one
 * or its bounded Hessian; the rows of a person share a weight of one. The sensitivity follows from
 * this. Cuts are post-processing of the noisy sums.
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

#include "common/hist_util.h"            // for HistogramCuts
#include "common/threading_utils.h"      // for ParallelFor
#include "plugin_cpp/plan/plan.h"        // for Plan
#include "plugin_cpp/release/release.h"  // for Release
#include "plugin_cpp/rows/gradient.h"    // for PackedPair
#include "plugin_cpp/rows/persons.h"     // for Persons
#include "plugin_cpp/rows/raw_pages.h"   // for ForEachPage
#include "xgboost/base.h"                // for bst_feature_t
#include "xgboost/context.h"             // for Context
#include "xgboost/data.h"                // for SparsePage, Entry, DMatrix
#include "xgboost/json.h"                // for Json, Object

namespace xgboost::dp {
/**
 * @brief Exact sums of cells for a block of features, over the rows of this worker. A row is in at
 *        most one cell of each feature.
 */
class CellSums {
 public:
  /**
   * @param features Features to count, in ascending order; at least one.
   * @param n_cells  Number of cells of each feature.
   */
  CellSums(Context const* ctx, std::vector<bst_feature_t> features,
           std::vector<std::size_t> const& n_cells)
      : ctx_{ctx},
        features_{std::move(features)},
        position_(features_.back() + 1, features_.size()) {
    for (std::size_t k = 0; k < features_.size(); ++k) {
      position_[features_[k]] = k;
      chunks_.emplace_back((n_cells[k] + kChunk - 1) / kChunk);
      cells_per_chunk_.push_back(std::min(n_cells[k], kChunk));
    }
  }

  /**
   * @brief Add the rows of a page.
   *
   * @param cell   Function cell(k, value): the cell of a value of the k-th feature.
   * @param weight Function weight(row): the weight of a local row.
   */
  template <typename CellFn, typename WeightFn>
  void Add(SparsePage const& page, CellFn&& cell, WeightFn&& weight) {
    auto view = page.GetView();
    auto n_rows = view.Size();
    // Each thread has its own features, so all threads share one table.
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
              chunk = std::make_unique<std::int64_t[]>(cells_per_chunk_[k]);
            }
            chunk[c % kChunk] += w;
          }
        }
      }
    });
  }

  /** @brief Sum of the cells [begin, end) of the k-th feature. */
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
  // Nearly all cells of a quantile tree are empty: only chunks with rows are allocated.
  static constexpr std::size_t kChunk = 256;

  Context const* ctx_;
  std::vector<bst_feature_t> features_;
  std::vector<std::size_t> position_;  // by feature; features_.size() if it is not counted
  std::vector<std::size_t> cells_per_chunk_;
  std::vector<std::vector<std::unique_ptr<std::int64_t[]>>> chunks_;
};

struct CandidateRows {
  DMatrix* matrix;
  Persons const* persons;                // null if the privacy unit is a row
  std::vector<PackedPair> const& gpair;  // integer gradients, whose Hessians may be weights
};

struct CandidateParts {
  Context const* ctx;
  Plan const& plan;
  Release* release;
};

/** @brief Add all rows to the sums, weighted by one or by their Hessians. See CellSums::Add. */
template <typename CellFn>
void AddRows(CandidateParts const& parts, CandidateRows const& rows, CellFn&& cell,
             CellSums* sums) {
  auto one = std::int64_t{1} << parts.plan.candidates.shift;
  ForEachPage(parts.ctx, rows.matrix, [&](SparsePage const& page) {
    if (parts.plan.candidates.hessian) {
      sums->Add(page, cell, [&](auto i) { return rows.gpair[i].Sum().hess; });
    } else if (rows.persons) {
      // Rounded down, so that the weights of a person's rows sum to at most 1.
      sums->Add(page, cell, [&](auto i) { return one / rows.persons->NumRowsOfPerson(i); });
    } else {
      sums->Add(page, cell, [&](auto) { return one; });
    }
  });
}

class Candidates {
 public:
  explicit Candidates(CandidateParts const& parts);

  /** @brief Release the candidates of private features, and look up public ones. */
  [[nodiscard]] common::HistogramCuts MakeCuts(CandidateRows const& rows);

  /** @brief The features for which a release has found a @ref NarrowRange, by index. */
  [[nodiscard]] Json const& Narrow() const { return narrow_; }

 private:
  [[nodiscard]] std::vector<std::vector<float>> ReleaseQuantileTrees(CandidateRows const& rows);
  [[nodiscard]] std::vector<std::vector<float>> ReleaseHistograms(CandidateRows const& rows);

  CandidateParts parts_;
  std::vector<bst_feature_t> features_;    // of kind `kPrivate`, ascending
  std::vector<std::vector<float>> edges_;  // of histograms, public or released
  Json narrow_{Object{}};
};
}  // namespace xgboost::dp
