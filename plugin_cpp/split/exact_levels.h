/**
 * Exact sums of the nodes of a level, and the rows in them. Not private.
 *
 * Proof: docs/proofs/integer-grid.md
 */
#pragma once

#include <algorithm>  // for max, max_element
#include <cstddef>    // for size_t
#include <utility>    // for move
#include <vector>     // for vector

#include "common/timer.h"                     // for Monitor
#include "plugin_cpp/plan/plan.h"             // for Plan
#include "plugin_cpp/release/release.h"       // for Release
#include "plugin_cpp/rows/binned_pages.h"     // for BinnedPages
#include "plugin_cpp/rows/gradient.h"         // for PackedPair
#include "plugin_cpp/rows/node_histograms.h"  // for NodeHistograms, Siblings
#include "plugin_cpp/rows/row_sets.h"         // for RowSets, Branching
#include "plugin_cpp/split/offers.h"          // for Offers, NodeSums, OpenNode
#include "xgboost/context.h"                  // for Context

namespace xgboost::dp {
/** @tparam Sum GlobalSum, over the rows of all workers, or LocalSum, of this one alone. */
template <typename Sum>
class ExactLevels {
 public:
  ExactLevels(Context const* ctx, Plan const& plan, Offers const& offers, BinnedPages const& pages,
              Release const& release)
      : ctx_{ctx},
        offers_{offers},
        pages_{pages},
        histograms_{ctx, release, pages.Places(),
                    std::max(plan.row_bound.Unit(), plan.row_bound.MaxHessian())} {
    monitor_.Init("DpExactLevels");
  }

  void Begin(std::vector<PackedPair> const& gpair, Sum const& total) {
    gpair_ = &gpair;
    totals_.assign(1, total);
    branchings_.clear();
    rows_.Reset(pages_);
    histograms_.BeginRoot();
    this->SumLevel();
  }
  [[nodiscard]] NodeSums<Sum> operator[](bst_node_t nidx) const {
    return {totals_[nidx], histograms_[nidx]};
  }
  [[nodiscard]] Sum const& Total(bst_node_t nidx) const { return totals_[nidx]; }

  /** @brief See Splitter. */
  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool last) {
    std::vector<Siblings> families;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (children[i].empty()) {
        continue;
      }
      auto nidx = nodes[i].nidx;
      auto cells = offers_.SumsOf(partitions[i][0].feature, (*this)[nidx]).Cells(partitions[i]);
      totals_.resize(std::max(totals_.size(), static_cast<std::size_t>(children[i].back()) + 1));
      for (std::size_t k = 0; k < cells.size(); ++k) {
        totals_[children[i][k]] = cells[k];
      }
      auto heaviest = std::max_element(cells.cbegin(), cells.cend(),
                                       [](auto& a, auto& b) { return a.hess < b.hess; });
      families.push_back({nidx, children[i], static_cast<std::size_t>(heaviest - cells.cbegin())});
      branchings_.emplace_back(pages_.Places(), nidx, partitions[i], children[i]);
    }
    if (!last && !families.empty()) {
      histograms_.BeginLevel(std::move(families));
      this->SumLevel();
    }
  }
  /** @brief The leaf of every local row. */
  void Positions(std::vector<bst_node_t>* positions) const {
    rows_.Positions(ctx_, pages_, branchings_, positions);
  }

 private:
  /** @brief Part the rows of the nodes above, and sum those of the level: one pass. */
  void SumLevel() {
    monitor_.Start("Histograms");
    for (std::size_t p = 0; p < pages_.Size(); ++p) {
      auto page = pages_[p];
      rows_.Part(ctx_, p, page, pages_.Places(), branchings_);
      histograms_.Add(p, page, rows_, *gpair_);
    }
    histograms_.End();
    branchings_.clear();
    monitor_.Stop("Histograms");
  }

  Context const* ctx_;
  Offers const& offers_;
  BinnedPages const& pages_;
  std::vector<PackedPair> const* gpair_{nullptr};
  NodeHistograms<Sum> histograms_;
  RowSets rows_;
  std::vector<Sum> totals_;            // by node
  std::vector<Branching> branchings_;  // not carried out yet
  common::Monitor monitor_;
};
}  // namespace xgboost::dp
