#include "plugin_cpp/grow/grower.h"

#include <algorithm>  // for max, min, sort
#include <cstddef>    // for size_t

#include "common/categorical.h"  // for CatBitField
#include "xgboost/logging.h"     // for LOG

namespace xgboost::dp {
namespace {
std::unique_ptr<Splitter> MakeSplitter(SplitterParts const& parts) {
  switch (parts.plan.split) {
    case SplitChoice::kExponential:
      return MakeSelectedSplits(parts);
    case SplitChoice::kRandom:
      return MakeRandomSplits(parts);
    case SplitChoice::kHistogram:
    case SplitChoice::kPartial:
      return MakeNoisySplits(parts);
  }
  LOG(FATAL) << "Unknown splits.";
  return {};
}
}  // namespace

TreeGrower::TreeGrower(Context const* ctx, Plan const& plan, common::HistogramCuts cuts,
                       BinnedPages pages, RandomSource* structure, Release* release)
    : plan_{plan},
      cuts_{std::move(cuts)},
      pages_{std::move(pages)},
      candidates_{plan, cuts_},
      interactions_{plan} {
  monitor_.Init("DpTreeGrower");
  splitter_ = MakeSplitter({ctx, plan, candidates_, pages_, structure, release});
}

void TreeGrower::Expand(bst_node_t nidx, Split const& split, RegTree* tree) const {
  // FinishTree sets the statistics from released sums.
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

std::vector<std::vector<bst_node_t>> TreeGrower::Expand(std::vector<OpenNode> const& level,
                                                        Partitions const& partitions,
                                                        std::int32_t n_levels, RegTree* tree,
                                                        Grown* grown) const {
  // Node heaps, expanded level by level.
  std::vector<std::vector<bst_node_t>> heaps(level.size());
  for (std::size_t i = 0; i < level.size(); ++i) {
    heaps[i].push_back(level[i].nidx);
  }
  for (std::int32_t l = 0; l < n_levels; ++l) {
    auto begin = (std::size_t{1} << l) - 1;
    for (std::size_t i = 0; i < level.size(); ++i) {
      for (auto at = begin; at < 2 * begin + 1 && at < partitions[i].size(); ++at) {
        auto nidx = heaps[i][at];
        this->Expand(nidx, partitions[i][at], tree);
        grown->splits.emplace_back(nidx, partitions[i][at]);
        heaps[i].insert(heaps[i].end(), {tree->LeftChild(nidx), tree->RightChild(nidx)});
      }
    }
  }
  for (std::size_t i = 0; i < level.size(); ++i) {
    // Keep the children, from left to right; a leaf has none.
    heaps[i].erase(heaps[i].begin(),
                   heaps[i].begin() + std::max(partitions[i].size(), std::size_t{1}));
  }
  return heaps;
}

void TreeGrower::Repeat(Grown const& grown, RegTree* tree) const {
  for (auto const& [nidx, split] : grown.splits) {
    this->Expand(nidx, split, tree);
  }
}

TreeGrower::Grown TreeGrower::Grow(common::Span<ClassGradients const> gradients,
                                   TreeSpec const& spec, RegTree* tree) {
  Grown grown;
  std::vector<OpenNode> level{{RegTree::kRoot, spec.features}};
  std::vector<FeatureList> above(1);  // features of the splits above each node
  splitter_->Begin(gradients);
  for (std::int32_t depth = 0; depth < plan_.depth && !level.empty();) {
    auto n_levels = std::min(plan_.split_levels, plan_.depth - depth);
    depth += n_levels;
    monitor_.Start("Splits");
    auto partitions = splitter_->Choose(level, spec, n_levels);
    monitor_.Stop("Splits");
    auto children = this->Expand(level, partitions, n_levels, tree, &grown);
    splitter_->Follow(level, partitions, children, depth == plan_.depth);

    std::vector<OpenNode> next;
    above.resize(tree->NumNodes());
    for (std::size_t i = 0; i < level.size(); ++i) {
      if (children[i].empty()) {
        grown.leaves.push_back(level[i].nidx);
      }
      for (auto nidx : children[i]) {
        above[nidx] = above[level[i].nidx];
        above[nidx].push_back(partitions[i][0].feature);
        next.push_back({nidx, interactions_.Allowed(spec.features, above[nidx])});
      }
    }
    level = std::move(next);
  }
  for (auto const& node : level) {
    grown.leaves.push_back(node.nidx);
  }
  std::sort(grown.leaves.begin(), grown.leaves.end());
  monitor_.Start("Positions");
  grown.sums = splitter_->End(grown.leaves, &grown.positions);
  monitor_.Stop("Positions");
  return grown;
}
}  // namespace xgboost::dp
