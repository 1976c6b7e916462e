#include "plugin_cpp/split/partitions.h"

#include <algorithm>  // for sort
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t, uint64_t
#include <numeric>    // for iota
#include <utility>    // for swap
#include <vector>     // for vector

#include "common/threading_utils.h"        // for ParallelFor
#include "plugin_cpp/release/workers.h"        // for FromRankZero
#include "plugin_cpp/split/score.h"        // for DispatchScore, SelectCandidate, UtilityOfOneNat

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

GroupSelector::GroupSelector(Context const* ctx, Plan const& plan,
                             SplitCandidates const* candidates, RandomSource* rng,
                             RandomSource* structure)
    : ctx_{ctx},
      plan_{plan},
      candidates_{candidates},
      rng_{rng},
      structure_{structure} {}

void GroupSelector::DrawNumeric(bst_feature_t f) {
  // Cuts between two bins: distinct ones where there are enough. The last cut of a feature, which
  // parts missing values only, is not among them.
  auto n_cuts = candidates_->NumBins(f) - 1;
  std::vector<bst_bin_t> cuts(n_splits_, 0);
  if (n_cuts > n_splits_) {
    std::vector<bst_bin_t> pool(n_cuts);
    std::iota(pool.begin(), pool.end(), 0);
    for (std::size_t i = 0; i < n_splits_; ++i) {
      std::swap(pool[i], pool[i + UniformBelow(structure_, n_cuts - i)]);
      cuts[i] = pool[i];
    }
  } else if (n_cuts > 0) {
    for (auto& cut : cuts) {
      cut = static_cast<bst_bin_t>(UniformBelow(structure_, n_cuts));
    }
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<bst_bin_t> heap(n_splits_);
  ToHeap(cuts, 0, n_splits_, 0, &heap);
  for (auto bin : heap) {
    drawn_.push_back({f, bin, UniformBelow(structure_, 2) == 0, false, 0});
  }
}

void GroupSelector::DrawCategorical(bst_feature_t f) {
  // One category and a random half of the others go right at every split.
  for (std::size_t i = 0; i < n_splits_; ++i) {
    bool default_left = UniformBelow(structure_, 2) == 0;
    auto bin = static_cast<bst_bin_t>(UniformBelow(structure_, candidates_->NumBins(f)));
    auto name = 1 + UniformBelow(structure_, kMaxUniform);
    drawn_.push_back({f, bin, default_left, true, name});
  }
}

void GroupSelector::DrawCandidates(FeatureList const& features, std::int64_t group,
                                   SplitHistory const& history) {
  drawn_.clear();
  utilities_.clear();
  for (auto f : features) {
    for (std::int32_t i = 0; i < plan_.split_candidates; ++i) {
      if (candidates_->IsCategorical(f)) {
        this->DrawCategorical(f);
      } else {
        this->DrawNumeric(f);
      }
    }
  }
  for (auto offset : history.Offsets(group, features, UtilityOfOneNat(plan_))) {
    utilities_.insert(utilities_.end(), plan_.split_candidates, offset);
  }
}

void GroupSelector::AddUtilities(OpenNode const& node) {
  auto per_feature = static_cast<std::size_t>(plan_.split_candidates);
  DispatchScore(plan_, [&](auto const& score) {
    common::ParallelFor(node.features.size(), ctx_->Threads(), [&](auto i) {
      auto sums = candidates_->SumsOf(node.features[i], node.hist, node.total);
      for (auto c = i * per_feature; c < (i + 1) * per_feature; ++c) {
        for (auto const& cell : sums.Cells({drawn_.data() + c * n_splits_, n_splits_})) {
          utilities_[c] += score(cell);
        }
      }
    });
  });
}

SplitGroups GroupSelector::Select(std::vector<OpenNode> const& nodes, bool oblivious,
                                  std::int32_t n_levels, std::int64_t group,
                                  SplitHistory const& history) {
  n_splits_ = (std::size_t{1} << n_levels) - 1;
  // What rank 0 tells of each split.
  constexpr std::size_t kFields = 5;
  auto flat = FromRankZero(ctx_, [&] {
    std::vector<std::int64_t> chosen;
    auto n_choices = oblivious ? std::size_t{1} : nodes.size();
    for (std::size_t choice = 0; choice < n_choices; ++choice) {
      this->DrawCandidates(nodes[choice].features, group, history);
      auto end = oblivious ? nodes.size() : choice + 1;
      for (auto i = choice; i < end; ++i) {
        this->AddUtilities(nodes[i]);
      }
      auto const* winner = drawn_.data() + SelectCandidate(plan_, rng_, utilities_) * n_splits_;
      for (auto i = choice; i < end; ++i) {
        for (auto const* s = winner; s != winner + n_splits_; ++s) {
          chosen.insert(chosen.end(), {static_cast<std::int64_t>(s->feature), s->bin,
                                       s->default_left, s->is_categorical,
                                       static_cast<std::int64_t>(s->subset)});
        }
      }
    }
    return chosen;
  });
  SplitGroups groups;
  std::vector<Split> of_node;
  for (auto const* v = flat.data(); v != flat.data() + flat.size(); v += kFields) {
    of_node.push_back({static_cast<bst_feature_t>(v[0]), static_cast<bst_bin_t>(v[1]), v[2] != 0,
                       v[3] != 0, static_cast<std::uint64_t>(v[4])});
    if (of_node.size() == n_splits_) {
      groups.Add(of_node.data(), of_node.size());
      of_node.clear();
    }
  }
  return groups;
}
}  // namespace xgboost::dp
