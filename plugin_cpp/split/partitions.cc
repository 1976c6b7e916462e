#include "plugin_cpp/split/partitions.h"

#include <algorithm>  // for sort
#include <numeric>    // for iota
#include <utility>    // for swap

#include "common/threading_utils.h"       // for ParallelFor
#include "plugin_cpp/plan/sensitivity.h"  // for SplitEvent
#include "plugin_cpp/random/samplers.h"   // for UniformBelow, kMaxUniform
#include "plugin_cpp/split/score.h"       // for DispatchScore, UtilityOfOneNat

namespace xgboost::dp {
namespace {
/** @brief Sorted cuts in heap order: the middle one parts the node, and so on below. */
void ToHeap(std::vector<bst_bin_t> const& sorted, std::size_t begin, std::size_t end,
            std::size_t at, std::vector<bst_bin_t>* heap) {
  if (begin == end) {
    return;
  }
  auto middle = begin + (end - begin) / 2;
  (*heap)[at] = sorted[middle];
  ToHeap(sorted, begin, middle, 2 * at + 1, heap);
  ToHeap(sorted, middle + 1, end, 2 * at + 2, heap);
}
}  // namespace

void PartitionSelector::DrawNumeric(bst_feature_t f, std::size_t n_splits) {
  // Cuts between two bins: distinct ones where there are enough. The last cut of a feature, which
  // parts missing values only, is not among them.
  auto n_cuts = offers_.NumBins(f) - 1;
  std::vector<bst_bin_t> cuts(n_splits, 0);
  if (n_cuts > n_splits) {
    std::vector<bst_bin_t> pool(n_cuts);
    std::iota(pool.begin(), pool.end(), 0);
    for (std::size_t i = 0; i < n_splits; ++i) {
      std::swap(pool[i], pool[i + UniformBelow(structure_, n_cuts - i)]);
      cuts[i] = pool[i];
    }
  } else if (n_cuts > 0) {
    for (auto& cut : cuts) {
      cut = static_cast<bst_bin_t>(UniformBelow(structure_, n_cuts));
    }
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<bst_bin_t> heap(n_splits);
  ToHeap(cuts, 0, n_splits, 0, &heap);
  for (auto bin : heap) {
    drawn_.push_back({f, bin, UniformBelow(structure_, 2) == 0, false, 0});
  }
}

void PartitionSelector::DrawCategorical(bst_feature_t f, std::size_t n_splits) {
  // One category and a random half of the others go right at every split.
  for (std::size_t i = 0; i < n_splits; ++i) {
    bool default_left = UniformBelow(structure_, 2) == 0;
    auto bin = static_cast<bst_bin_t>(UniformBelow(structure_, offers_.NumBins(f)));
    auto name = 1 + UniformBelow(structure_, kMaxUniform);
    drawn_.push_back({f, bin, default_left, true, name});
  }
}

void PartitionSelector::Draw(FeatureList const& features, std::size_t n_splits) {
  for (auto f : features) {
    for (std::int32_t i = 0; i < plan_.split_candidates; ++i) {
      if (offers_.IsCategorical(f)) {
        this->DrawCategorical(f, n_splits);
      } else {
        this->DrawNumeric(f, n_splits);
      }
    }
  }
}

Partitions PartitionSelector::Select(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                     std::int32_t n_levels, ExactLevels<GlobalSum> const& levels,
                                     Release* release) {
  auto n_splits = (std::size_t{1} << n_levels) - 1;
  auto per_feature = static_cast<std::size_t>(plan_.split_candidates);
  auto n_choices = tree.oblivious ? std::size_t{1} : nodes.size();
  std::vector<std::size_t> begins;  // of the splits of each choice
  drawn_.clear();
  for (std::size_t choice = 0; choice < n_choices; ++choice) {
    begins.push_back(drawn_.size());
    this->Draw(nodes[choice].features, n_splits);
  }
  auto drawn = [&](std::size_t choice, std::size_t idx) {
    return Partition{drawn_.data() + begins[choice] + idx * n_splits, n_splits};
  };

  std::vector<std::int64_t> utilities;
  auto chosen = release->Select(SplitEvent(plan_), n_choices, [&](std::size_t choice) {
    auto const& features = nodes[choice].features;
    utilities.clear();
    for (auto offset : tree.history->Offsets(tree.class_idx, features, UtilityOfOneNat(plan_))) {
      utilities.insert(utilities.end(), per_feature, offset);
    }
    for (auto i = choice; i < (tree.oblivious ? nodes.size() : choice + 1); ++i) {
      auto sums = levels[nodes[i].nidx];
      DispatchScore(plan_, [&](auto const& score) {
        common::ParallelFor(features.size(), ctx_->Threads(), [&](auto j) {
          auto of_feature = offers_.SumsOf(features[j], sums);
          for (auto c = j * per_feature; c < (j + 1) * per_feature; ++c) {
            for (auto const& cell : of_feature.Cells(drawn(choice, c))) {
              utilities[c] += score(cell);
            }
          }
        });
      });
    }
    return &utilities;
  });

  Partitions partitions;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto choice = tree.oblivious ? 0 : i;
    partitions.Add(drawn(choice, chosen[choice]).data(), n_splits);
  }
  return partitions;
}
}  // namespace xgboost::dp
