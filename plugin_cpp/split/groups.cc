#include "plugin_cpp/split/groups.h"

#include <algorithm>  // for sort
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t
#include <utility>    // for swap
#include <vector>     // for vector

#include "common/threading_utils.h"        // for ParallelFor
#include "plugin_cpp/distributed.h"        // for FromRankZero
#include "plugin_cpp/noise/exponential.h"  // for SelectExponential, SelectArgmax
#include "plugin_cpp/split/score.h"        // for DispatchScore, ScoreRange

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

// What rank 0 tells of a group: feature, and of each split the direction and the bins.
std::vector<std::int64_t> Flatten(std::vector<SplitGroup> const& groups) {
  std::vector<std::int64_t> out;
  for (auto const& group : groups) {
    for (auto const& split : group) {
      out.insert(out.end(), {static_cast<std::int64_t>(split.feature), split.default_left,
                             split.is_categorical, split.bin,
                             static_cast<std::int64_t>(split.more.size())});
      out.insert(out.end(), split.more.cbegin(), split.more.cend());
    }
  }
  return out;
}

std::vector<SplitGroup> Unflatten(std::vector<std::int64_t> const& flat, std::size_t n_groups,
                                  std::size_t n_splits) {
  std::vector<SplitGroup> out(n_groups, SplitGroup(n_splits));
  auto it = flat.cbegin();
  for (auto& group : out) {
    for (auto& split : group) {
      split.feature = static_cast<bst_feature_t>(*it++);
      split.default_left = *it++ != 0;
      split.is_categorical = *it++ != 0;
      split.bin = static_cast<bst_bin_t>(*it++);
      auto n_more = *it++;
      for (std::int64_t i = 0; i < n_more; ++i) {
        split.more.push_back(static_cast<bst_bin_t>(*it++));
      }
    }
  }
  return out;
}
}  // namespace

GroupSelector::GroupSelector(Context const* ctx, Plan const& plan,
                             SplitCandidates const* candidates, RandomSource* rng,
                             RandomSource* structure)
    : ctx_{ctx},
      plan_{plan},
      candidates_{candidates},
      rng_{rng},
      structure_{structure},
      den_{ScoreRange(plan) << Plan::kEpsBits} {}

SplitGroup GroupSelector::DrawNumeric(bst_feature_t f, std::int32_t n_levels) {
  // Cuts between two bins: distinct ones where there are enough. The last cut of a feature, which
  // parts missing values only, is not among them.
  auto n_splits = (std::size_t{1} << n_levels) - 1;
  auto n_cuts = candidates_->NumBins(f) - 1;
  std::vector<bst_bin_t> cuts(n_splits, 0);
  if (n_cuts > n_splits) {
    std::vector<bst_bin_t> pool(n_cuts);
    for (std::size_t i = 0; i < n_cuts; ++i) {
      pool[i] = static_cast<bst_bin_t>(i);
    }
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
  SplitGroup group(n_splits);
  for (std::size_t i = 0; i < n_splits; ++i) {
    group[i] = {f, heap[i], UniformBelow(structure_, 2) == 0, false, {}};
  }
  return group;
}

SplitGroup GroupSelector::DrawCategorical(bst_feature_t f, std::int32_t n_levels) {
  // A random half of the categories goes right at every split.
  SplitGroup group((std::size_t{1} << n_levels) - 1);
  auto n = candidates_->NumBins(f);
  for (auto& split : group) {
    split = {f, -1, UniformBelow(structure_, 2) == 0, true, {}};
    for (std::size_t c = 0; c < n; ++c) {
      if (UniformBelow(structure_, 2) == 0) {
        continue;
      }
      if (split.bin < 0) {
        split.bin = static_cast<bst_bin_t>(c);
      } else {
        split.more.push_back(static_cast<bst_bin_t>(c));
      }
    }
    if (split.bin < 0) {
      split.bin = static_cast<bst_bin_t>(UniformBelow(structure_, n));
    }
  }
  return group;
}

void GroupSelector::DrawCandidates(FeatureList const& features, std::int32_t n_levels) {
  groups_.clear();
  for (auto f : features) {
    for (std::int32_t i = 0; i < plan_.split_candidates; ++i) {
      groups_.push_back(candidates_->IsCategorical(f) ? this->DrawCategorical(f, n_levels)
                                                      : this->DrawNumeric(f, n_levels));
    }
  }
  utilities_.assign(groups_.size(), 0);
}

void GroupSelector::AddUtilities(OpenNode const& node) {
  auto per_feature = static_cast<std::size_t>(plan_.split_candidates);
  DispatchScore(plan_, [&](auto const& score) {
    common::ParallelFor(node.features.size(), ctx_->Threads(), [&](auto i) {
      auto sums = candidates_->SumsOf(node.features[i], node.hist, node.total);
      for (auto c = i * per_feature; c < (i + 1) * per_feature; ++c) {
        for (auto const& cell : sums.Cells(groups_[c])) {
          utilities_[c] += score(cell);
        }
      }
    });
  });
}

std::size_t GroupSelector::Choose() const {
  common::Span<std::int64_t const> utilities{utilities_.data(), utilities_.size()};
  return plan_.noise_free ? SelectArgmax(utilities)
                          : SelectExponential(rng_, utilities, plan_.eps_num, den_);
}

std::vector<SplitGroup> GroupSelector::Select(std::vector<OpenNode> const& nodes, bool oblivious,
                                              std::int32_t n_levels) {
  auto flat = FromRankZero(ctx_, [&] {
    std::vector<SplitGroup> chosen;
    if (oblivious) {
      this->DrawCandidates(nodes.front().features, n_levels);
      for (auto const& node : nodes) {
        this->AddUtilities(node);
      }
      chosen.assign(nodes.size(), groups_[this->Choose()]);
    } else {
      for (auto const& node : nodes) {
        this->DrawCandidates(node.features, n_levels);
        this->AddUtilities(node);
        chosen.push_back(groups_[this->Choose()]);
      }
    }
    return Flatten(chosen);
  });
  return Unflatten(flat, nodes.size(), (std::size_t{1} << n_levels) - 1);
}
}  // namespace xgboost::dp
