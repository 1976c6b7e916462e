#include "plugin_cpp/grower.h"

#include <algorithm>  // for max, max_element, min, sort
#include <cstdint>    // for int32_t, int64_t
#include <utility>    // for move
#include <vector>     // for vector

#include "common/categorical.h"           // for CatBitField
#include "plugin_cpp/split/features.h"       // for FeatureList
#include "plugin_cpp/release/workers.h"       // for SumOverWorkers

namespace xgboost::dp {
TreeGrower::TreeGrower(Context const* ctx, Plan const& plan, common::HistogramCuts cuts,
                       BinnedPages pages, RandomSource* rng, RandomSource* structure,
                       MaskedSums* masked, Ledger* ledger)
    : ctx_{ctx},
      plan_{plan},
      cuts_{std::move(cuts)},
      pages_{std::move(pages)},
      candidates_{plan, cuts_},
      interactions_{plan},
      selector_{ctx, plan, &candidates_, rng, structure},
      group_selector_{ctx, plan, &candidates_, rng, structure},
      histogram_selector_{ctx, plan, &candidates_, rng, structure, masked},
      ledger_{ledger},
      histograms_{ctx, plan.masking, pages_.Places(),
                  std::max(plan.row_bound.Unit(), plan.row_bound.MaxHessian())} {
  monitor_.Init("DpTreeGrower");
}

void TreeGrower::Expand(bst_node_t nidx, Split const& split, RegTree* tree) const {
  // Statistics are filled in from released sums once all leaves are known.
  if (split.is_categorical) {
    auto n_categories = cuts_.FeatureBins(split.feature);
    std::vector<std::uint32_t> bits(common::CatBitField::ComputeStorageSize(n_categories), 0);
    common::CatBitField right{bits};
    for (bst_bin_t category = 0; category < n_categories; ++category) {
      if (!split.GoesLeft(category)) {
        right.Set(category);
      }
    }
    tree->ExpandCategorical(nidx, split.feature, bits, split.default_left, 0, 0, 0, 0, 0, 0, 0);
  } else {
    auto threshold = cuts_.Values()[cuts_.Ptrs()[split.feature] + split.bin];
    tree->ExpandNode(nidx, split.feature, threshold, split.default_left, 0, 0, 0, 0, 0, 0, 0);
  }
}

void TreeGrower::SumLevel(std::vector<PackedPair> const& gpair,
                          std::vector<Branching> const& branchings) {
  monitor_.Start("Histograms");
  for (std::size_t p = 0; p < pages_.Size(); ++p) {
    auto page = pages_[p];
    rows_.Part(ctx_, p, page, pages_.Places(), branchings);
    histograms_.Add(p, page, rows_, gpair);
  }
  histograms_.End();
  monitor_.Stop("Histograms");
}

SplitGroups TreeGrower::Choose(std::vector<OpenNode> const& open, bool oblivious,
                               std::int32_t n_levels, std::int64_t group,
                               SplitHistory const& history, std::vector<ReleasedSplit>* released) {
  if (n_levels > 1) {
    return group_selector_.Select(open, oblivious, n_levels, group, history);
  }
  SplitGroups groups;
  if (plan_.HasNoisySums()) {
    *released = histogram_selector_.Select(open, oblivious);
    for (auto const& r : *released) {
      groups.Add(&r.split, 1);
    }
    return groups;
  }
  for (auto const& split : selector_.Select(open, oblivious, group, history)) {
    groups.Add(split ? &*split : nullptr, split ? 1 : 0);
  }
  return groups;
}

std::vector<std::vector<bst_node_t>> TreeGrower::Expand(std::vector<Node> const& level,
                                                        SplitGroups const& groups,
                                                        std::int32_t n_levels, RegTree* tree) {
  // Heaps of nodes: those of one level below all nodes are expanded before any of the next.
  std::vector<std::vector<bst_node_t>> heaps(level.size());
  for (std::size_t i = 0; i < level.size(); ++i) {
    heaps[i].push_back(level[i].nidx);
  }
  for (std::int32_t l = 0; l < n_levels; ++l) {
    auto begin = (std::size_t{1} << l) - 1;
    for (std::size_t i = 0; i < level.size(); ++i) {
      for (auto at = begin; at < 2 * begin + 1 && at < groups[i].size(); ++at) {
        auto nidx = heaps[i][at];
        this->Expand(nidx, groups[i][at], tree);
        router_.Add(nidx, groups[i][at], tree->LeftChild(nidx));
        heaps[i].insert(heaps[i].end(), {tree->LeftChild(nidx), tree->RightChild(nidx)});
      }
    }
  }
  for (std::size_t i = 0; i < level.size(); ++i) {
    // What is left are the children, from left to right.
    heaps[i].erase(heaps[i].begin(), heaps[i].begin() + groups[i].size());
  }
  return heaps;
}

std::vector<TreeGrower::Leaf> TreeGrower::Grow(std::vector<PackedPair> const& gpair,
                                               GradientSum total, FeatureList const& features,
                                               bool oblivious, std::int64_t group,
                                               SplitHistory const& history, RegTree* tree) {
  router_.Reset();
  std::vector<std::int64_t> sums{total.grad, total.hess};
  SumOverWorkers(ctx_, plan_.masking, &sums);

  std::vector<Leaf> leaves;
  std::vector<Node> level{{RegTree::kRoot, {sums[0], sums[1]}, {}}};
  std::vector<FeatureList> above(1);  // features of the splits above each node
  // Random splits read no data: no histogram is built, and rows go to the leaves at the end.
  bool greedy = plan_.split != SplitChoice::kRandom;
  std::vector<Branching> branchings;
  if (greedy) {
    rows_.Reset(pages_);
    histograms_.BeginRoot();
    this->SumLevel(gpair, {});
  }
  for (std::int32_t depth = 0; depth < plan_.depth && !level.empty();) {
    auto n_levels = std::min(plan_.split_levels, plan_.depth - depth);
    depth += n_levels;
    if (plan_.split == SplitChoice::kExponential && !plan_.noise_free && !plan_.IsSampled() &&
        plan_.parts == 1) {
      // Recorded before the choice is made. The nodes of a level are disjoint: one selection.
      ledger_->Record(ExponentialEvent("splits", plan_.eps_num));
    }
    std::vector<OpenNode> open;
    for (auto const& node : level) {
      open.push_back({node.nidx, node.total, {}, interactions_.Allowed(features, above[node.nidx])});
      if (greedy) {
        open.back().hist = histograms_[node.nidx];
      }
    }
    std::vector<ReleasedSplit> released;
    monitor_.Start("Splits");
    auto groups = this->Choose(open, oblivious, n_levels, group, history, &released);
    monitor_.Stop("Splits");
    auto children = this->Expand(level, groups, n_levels, tree);

    std::vector<Node> next;
    std::vector<Siblings> families;
    above.resize(tree->NumNodes());
    for (std::size_t i = 0; i < level.size(); ++i) {
      if (groups[i].empty()) {
        leaves.push_back({level[i].nidx, level[i].total});
        continue;
      }
      auto feature = groups[i][0].feature;
      std::vector<GradientSum> cells(children[i].size());
      if (greedy) {
        cells = candidates_.SumsOf(feature, open[i].hist, level[i].total).Cells(groups[i]);
        branchings.emplace_back(pages_.Places(), level[i].nidx, groups[i], children[i]);
      }
      for (std::size_t k = 0; k < children[i].size(); ++k) {
        auto nidx = children[i][k];
        above[nidx] = above[level[i].nidx];
        above[nidx].push_back(feature);
        next.push_back({nidx, cells[k], {}});
        if (!released.empty()) {
          next.back().released = k == 0 ? released[i].left : released[i].right;
        }
      }
      auto heaviest = std::max_element(cells.cbegin(), cells.cend(), [](auto const& a, auto const& b) {
        return a.hess < b.hess;
      });
      families.push_back({level[i].nidx, children[i],
                          static_cast<std::size_t>(heaviest - cells.cbegin())});
    }
    if (greedy && !next.empty() && depth < plan_.depth) {
      histograms_.BeginLevel(std::move(families));
      this->SumLevel(gpair, branchings);
      branchings.clear();
    }
    level = std::move(next);
  }
  for (auto const& node : level) {
    if (plan_.HasNoisySums()) {
      leaves.push_back({node.nidx, node.released.sum, node.released.cells});
    } else {
      leaves.push_back({node.nidx, node.total});
    }
  }
  std::sort(leaves.begin(), leaves.end(),
            [](Leaf const& a, Leaf const& b) { return a.nidx < b.nidx; });
  monitor_.Start("Positions");
  if (greedy) {
    rows_.Positions(ctx_, pages_, branchings, &positions_);
  } else {
    this->RouteRows(gpair, &leaves);
  }
  monitor_.Stop("Positions");
  return leaves;
}

void TreeGrower::RouteRows(std::vector<PackedPair> const& gpair, std::vector<Leaf>* leaves) {
  auto sums = router_.Route(ctx_, pages_, gpair, &positions_);
  std::vector<std::int64_t> flat;
  for (auto const& leaf : *leaves) {
    flat.insert(flat.end(), {sums[leaf.nidx].grad, sums[leaf.nidx].hess});
  }
  SumOverWorkers(ctx_, plan_.masking, &flat);
  for (std::size_t i = 0; i < leaves->size(); ++i) {
    (*leaves)[i].total = {flat[2 * i], flat[2 * i + 1]};
  }
}
}  // namespace xgboost::dp
