/**
 * The private release of split candidates: once, or again in each of the first rounds.
 *
 * A row is in one cell of every feature, and on one path of every quantile tree, with a weight of
 * one or with its bounded Hessian; the rows of a person share a weight of one. That gives the
 * sensitivity; what is made of the noisy sums is free.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <algorithm>  // for lower_bound, min
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t, uint64_t
#include <memory>     // for make_unique, unique_ptr
#include <utility>    // for move
#include <vector>     // for vector

#include "common/hist_util.h"                              // for HistogramCuts
#include "common/threading_utils.h"                        // for ParallelFor
#include "plugin_cpp/plan/plan.h"                          // for FeaturePlan, Plan, QuantilePlan
#include "plugin_cpp/registry.h"                           // for Registry
#include "plugin_cpp/release/ledger.h"                     // for NoiseEvent
#include "plugin_cpp/release/release.h"                    // for Release, LocalInt
#include "plugin_cpp/releases/candidates/quantile_tree.h"  // for KeyCells, QuantileTree, WalkQuantileTrees
#include "plugin_cpp/rows/gradient.h"                      // for PackedPair
#include "plugin_cpp/rows/persons.h"                       // for Persons
#include "plugin_cpp/rows/raw_pages.h"                     // for ForEachPage
#include "xgboost/base.h"                                  // for bst_feature_t
#include "xgboost/context.h"                               // for Context
#include "xgboost/data.h"                                  // for SparsePage, Entry, DMatrix
#include "xgboost/json.h"                                  // for Json, Object

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

/** @brief Of what quantile trees are made, and how they are released. */
struct TreeParts {
  Context const* ctx;
  QuantilePlan const& plan;
  NoiseEvent event;
  Release* release;
};

/** @brief The features of kind `kPrivate`, ascending. */
[[nodiscard]] std::vector<bst_feature_t> PrivateFeatures(std::vector<FeaturePlan> const& all);

/**
 * @brief Release the quantile trees of the features of kind `kPrivate`, in order.
 *
 * @param add_rows add_rows(cell, sums): adds all rows to the sums, see CellSums::Add.
 */
template <typename AddRows>
[[nodiscard]] std::vector<QuantileTree> ReleaseTrees(TreeParts const& parts,
                                                     std::vector<FeaturePlan> const& all,
                                                     AddRows&& add_rows) {
  // Cells that one pass over the rows may count: 512 features at 16 key bits, and 256 MiB if a row
  // fell in every chunk; in practice it is a tenth.
  constexpr std::size_t kCellsOfPass = std::size_t{1} << 25;
  auto key_bits = parts.plan.levels - 1;
  auto n_cells = std::size_t{1} << key_bits;
  auto features_of_pass = kCellsOfPass / n_cells;
  // All levels of all trees are one release, of which each exchange is a part.
  std::size_t part = 0;
  auto noise = [&](std::vector<LocalInt> const& exact) {
    return parts.release->AddNoise(parts.event, exact, part++);
  };
  auto features = PrivateFeatures(all);
  std::vector<QuantileTree> out;
  for (std::size_t begin = 0; begin < features.size(); begin += features_of_pass) {
    auto end = std::min(features.size(), begin + features_of_pass);
    std::vector<bst_feature_t> block(features.begin() + begin, features.begin() + end);
    std::vector<KeyCells> cells;
    for (auto f : block) {
      cells.emplace_back(parts.plan.levels, all[f].grid);
    }
    CellSums sums{parts.ctx, std::move(block), std::vector<std::size_t>(cells.size(), n_cells)};
    add_rows([&](std::size_t k, float value) { return cells[k](value); }, &sums);
    auto count = [&](std::size_t k, std::int32_t level, std::uint64_t cell) {
      auto width = key_bits - level;
      return sums.Sum(k, cell << width, (cell + 1) << width);
    };
    auto trees = WalkQuantileTrees(parts.plan, cells, count, noise);
    out.insert(out.end(), trees.begin(), trees.end());
  }
  return out;
}

/** @brief What rows weigh in the counts of candidates. */
struct CandidateRows {
  DMatrix* matrix;
  Persons const* persons;                // whom they belong to; null where each row counts one
  std::vector<PackedPair> const& gpair;  // integer gradients, whose Hessians may be weights
};

struct CandidateParts {
  Context const* ctx;
  Plan const& plan;
  Release* release;
};

class Candidates {
 public:
  explicit Candidates(CandidateParts const& parts);
  virtual ~Candidates() = default;

  /** @brief Release the candidates of features of kind `kPrivate`, look up those of the others. */
  [[nodiscard]] common::HistogramCuts MakeCuts(CandidateRows const& rows);

  /** @brief By index the features of which a release has shown a @ref NarrowRange. */
  [[nodiscard]] Json const& Narrow() const { return narrow_; }

 protected:
  [[nodiscard]] virtual std::vector<std::vector<float>> ReleaseCuts(CandidateRows const& rows) = 0;
  /**
   * @brief Add all rows to the sums, each with its Hessian or what it counts.
   *
   * @param cell See CellSums::Add.
   */
  template <typename CellFn>
  void AddRows(CandidateRows const& rows, CellFn&& cell, CellSums* sums) const {
    auto one = std::int64_t{1} << plan_.candidates.shift;
    ForEachPage(ctx_, rows.matrix, [&](SparsePage const& page) {
      if (plan_.candidates.hessian) {
        sums->Add(page, cell, [&](auto i) { return rows.gpair[i].Sum().hess; });
      } else if (rows.persons) {
        // Rounded downwards, so that all rows of a person count at most one.
        sums->Add(page, cell, [&](auto i) { return one / rows.persons->RowsOf(i); });
      } else {
        sums->Add(page, cell, [&](auto) { return one; });
      }
    });
  }

  Context const* ctx_;
  Plan const& plan_;
  Release* release_;
  std::vector<bst_feature_t> features_;  // those of kind `kPrivate`, ascending
  Json narrow_{Object{}};
};

using CandidateKinds = Registry<Candidates, CandidateKind, CandidateParts>;
}  // namespace xgboost::dp
