/**
 * Exact sums of the nodes of a level, and their rows. Not private.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <algorithm>    // for max, max_element
#include <cstddef>      // for size_t
#include <cstdint>      // for int64_t
#include <memory>       // for make_shared, shared_ptr
#include <type_traits>  // for is_same_v
#include <vector>       // for vector

#include "common/timer.h"                      // for Monitor
#include "plugin_cpp/grow/bins.h"              // for BinnedPages
#include "plugin_cpp/grow/node_histograms.h"   // for Siblings, DenseHistograms, SparseHistograms
#include "plugin_cpp/grow/row_sets.h"          // for RowSets, Branching
#include "plugin_cpp/grow/split_candidates.h"  // for SplitCandidates, NodeSums, OpenNode
#include "plugin_cpp/grow/splitter.h"          // for SplitterParts
#include "plugin_cpp/plan/plan.h"              // for Plan
#include "plugin_cpp/release/release.h"        // for Release
#include "plugin_cpp/rows/gradient.h"          // for ClassGradients
#include "xgboost/context.h"                   // for Context

namespace xgboost::dp {
/** @tparam Sum GlobalSum for sums over all workers, or LocalSum for this worker only. */
template <typename Sum>
class ExactLevels {
 public:
  explicit ExactLevels(SplitterParts const& parts)
      : ctx_{parts.ctx},
        candidates_{parts.candidates},
        pages_{parts.pages},
        release_{*parts.release},
        use_sparse_{UseSparse(pages_, release_)},
        largest_{std::max(parts.plan.row_bound.Unit(), parts.plan.row_bound.MaxHessian())} {
    monitor_.Init("DpExactLevels");
  }

  /**
   * @param gradients Gradients of one class, or of all classes that share the splits.
   * @param totals    Sums over all rows, for each of these classes.
   */
  void Begin(common::Span<ClassGradients const> gradients, std::vector<Sum> const& totals) {
    gradients_ = gradients;
    branchings_.clear();
    rows_.Reset(ctx_, pages_);
    bool has_all = this->EndsAtOnce() && (std::is_same_v<Sum, LocalSum> || release_.HasAllRows());
    while (classes_.size() < gradients.size()) {
      if (!scratch_ || !this->EndsAtOnce()) {
        scratch_ = std::make_shared<typename DenseHistograms<Sum>::Scratch>();
      }
      classes_.push_back(
          {{ctx_, release_, pages_.Offsets(), largest_, scratch_, gradients.size() > 1, has_all},
           {ctx_, release_, pages_.Offsets(), largest_},
           {}});
    }
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      classes_[k].totals.assign(1, totals[k]);
      this->WithSums(&classes_[k], [](auto* sums) { sums->Begin({}); });
    }
    this->SumLevel();
  }
  [[nodiscard]] std::size_t NumClasses() const { return classes_.size(); }
  [[nodiscard]] NodeSums<Sum> Sums(bst_node_t nidx, std::size_t k = 0) const {
    auto const& class_level = classes_[k];
    if constexpr (std::is_same_v<Sum, GlobalSum>) {
      if (use_sparse_) {
        return {class_level.totals[nidx], {}, &class_level.stored[nidx]};
      }
    }
    auto const& histograms = class_level.histograms;
    return {class_level.totals[nidx], histograms[nidx], nullptr, histograms.Words(nidx)};
  }
  [[nodiscard]] Sum const& Total(bst_node_t nidx, std::size_t k) const {
    return classes_[k].totals[nidx];
  }

  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool last) {
    std::vector<Siblings> families;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (children[i].empty()) {
        continue;
      }
      auto nidx = nodes[i].nidx;
      std::vector<std::int64_t> weights(children[i].size(), 0);
      for (std::size_t k = 0; k < classes_.size(); ++k) {
        auto& totals = classes_[k].totals;
        auto cells = candidates_.Cells(partitions[i], this->Sums(nidx, k));
        totals.resize(std::max(totals.size(), static_cast<std::size_t>(children[i].back()) + 1));
        for (std::size_t c = 0; c < cells.size(); ++c) {
          totals[children[i][c]] = cells[c];
          weights[c] += cells[c].hess;
        }
      }
      auto heaviest = std::max_element(weights.cbegin(), weights.cend());
      families.push_back(
          {nidx, children[i], static_cast<std::size_t>(heaviest - weights.cbegin())});
      branchings_.emplace_back(pages_.Offsets(), nidx, partitions[i], children[i]);
    }
    if (!last && !families.empty()) {
      for (auto& class_level : classes_) {
        this->WithSums(&class_level, [&](auto* sums) { sums->Begin(families); });
      }
      this->SumLevel();
    }
  }
  void Positions(std::vector<bst_node_t>* positions) const {
    rows_.Positions(ctx_, pages_, branchings_, positions);
  }

 private:
  /** @brief Partition the rows of the previous level and sum the new nodes, in one pass. */
  void SumLevel() {
    monitor_.Start("Histograms");
    for (std::size_t p = 0; p < pages_.Size(); ++p) {
      auto page = pages_[p];
      rows_.Part(ctx_, p, page, pages_.Offsets(), branchings_);
      for (std::size_t k = 0; k < classes_.size(); ++k) {
        this->WithSums(&classes_[k], [&](auto* sums) {
          sums->Add(p, page, rows_, gradients_[k].pairs);
          if (this->EndsAtOnce()) {
            sums->End();
          }
        });
      }
    }
    if (!this->EndsAtOnce()) {
      for (auto& class_level : classes_) {
        this->WithSums(&class_level, [](auto* sums) { sums->End(); });
      }
    }
    branchings_.clear();
    monitor_.Stop("Histograms");
  }

  /** @brief Whether the scratch memory of a class is free before the next class is summed. */
  [[nodiscard]] bool EndsAtOnce() const { return pages_.Size() == 1; }

  struct ClassLevels {
    DenseHistograms<Sum> histograms;
    SparseHistograms stored;  // the alternative
    std::vector<Sum> totals;  // by node
  };

  [[nodiscard]] static bool UseSparse(BinnedPages const& pages, Release const& release) {
    bool is_sparse = std::is_same_v<Sum, GlobalSum> && release.HasAllRows();
    for (std::size_t p = 0; p < pages.Size(); ++p) {
      is_sparse = is_sparse && !pages.Head(p).IsDense();
    }
    return is_sparse;
  }
  template <typename Fn>
  void WithSums(ClassLevels* class_level, Fn&& fn) const {
    if (use_sparse_) {
      fn(&class_level->stored);
    } else {
      fn(&class_level->histograms);
    }
  }

  Context const* ctx_;
  SplitCandidates const& candidates_;
  BinnedPages const& pages_;
  Release const& release_;
  bool use_sparse_;
  std::int64_t largest_;  // largest entry of a pair
  common::Span<ClassGradients const> gradients_;
  std::vector<ClassLevels> classes_;
  std::shared_ptr<typename DenseHistograms<Sum>::Scratch> scratch_;  // last class
  RowSets rows_;
  std::vector<Branching> branchings_;  // not applied to rows yet
  common::Monitor monitor_;
};
}  // namespace xgboost::dp
