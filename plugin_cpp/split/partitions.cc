#include "plugin_cpp/split/partitions.h"

#include <algorithm>  // for min, sort
#include <utility>    // for swap

#include "common/threading_utils.h"       // for ParallelFor
#include "plugin_cpp/plan/sensitivity.h"  // for SplitEvent
#include "plugin_cpp/random/samplers.h"   // for UniformBelow, kMaxUniform
#include "plugin_cpp/split/score.h"       // for DispatchScore, ClassNorm, UtilityOfOneNat

namespace xgboost::dp {
namespace {
/**
 * @brief Ranks of the cuts in heap order: the middle one parts the node, and so on below.
 *
 * @param begin, end Ranks of the cuts of the node `at`.
 */
void RankHeap(std::size_t begin, std::size_t end, std::size_t at, std::vector<std::size_t>* rank) {
  if (begin == end) {
    return;
  }
  auto middle = begin + (end - begin) / 2;
  (*rank)[at] = middle;
  RankHeap(begin, middle, 2 * at + 1, rank);
  RankHeap(middle + 1, end, 2 * at + 2, rank);
}
}  // namespace

void PartitionDraws::Draw(bst_feature_t f, std::size_t n_splits, std::vector<Split>* out) {
  if (offers_.IsCategorical(f)) {
    this->DrawCategorical(f, n_splits, out);
  } else if (this->IsOnlyOne(f, n_splits)) {
    this->PartAll(f, n_splits, out);
  } else {
    this->DrawNumeric(f, n_splits, out);
  }
}

void PartitionDraws::Rank(std::size_t n_splits) {
  if (rank_.size() != n_splits) {
    rank_.resize(n_splits);
    RankHeap(0, n_splits, 0, &rank_);
  }
}

void PartitionDraws::PartAll(bst_feature_t f, std::size_t n_splits, std::vector<Split>* out) {
  this->Rank(n_splits);
  auto last = offers_.NumBins(f) - 1;  // its cut parts missing values from all others
  for (auto rank : rank_) {
    out->push_back({f, static_cast<bst_bin_t>(std::min(rank, last)), false, false, 0});
  }
}

void PartitionDraws::DrawNumeric(bst_feature_t f, std::size_t n_splits, std::vector<Split>* out) {
  this->Rank(n_splits);
  // Cuts between two bins: distinct ones where there are enough. The last cut of a feature, which
  // parts missing values only, is not among them.
  auto n_cuts = offers_.NumBins(f) - 1;
  cuts_.assign(n_splits, 0);
  if (n_cuts > n_splits) {
    for (auto i = pool_.size(); i < n_cuts; ++i) {
      pool_.push_back(static_cast<bst_bin_t>(i));
    }
    taken_.clear();
    for (std::size_t i = 0; i < n_splits; ++i) {
      taken_.push_back(i + UniformBelow(structure_, n_cuts - i));
      std::swap(pool_[i], pool_[taken_[i]]);
      cuts_[i] = pool_[i];
    }
    // What was moved returns to its place.
    for (std::size_t i = 0; i < n_splits; ++i) {
      pool_[i] = static_cast<bst_bin_t>(i);
      pool_[taken_[i]] = static_cast<bst_bin_t>(taken_[i]);
    }
  } else if (n_cuts > 0) {
    for (auto& cut : cuts_) {
      cut = static_cast<bst_bin_t>(UniformBelow(structure_, n_cuts));
    }
  }
  std::sort(cuts_.begin(), cuts_.end());
  for (auto rank : rank_) {
    out->push_back({f, cuts_[rank], UniformBelow(structure_, 2) == 0, false, 0});
  }
}

void PartitionDraws::DrawCategorical(bst_feature_t f, std::size_t n_splits,
                                     std::vector<Split>* out) {
  // One category and a random half of the others go right at every split.
  for (std::size_t i = 0; i < n_splits; ++i) {
    bool default_left = UniformBelow(structure_, 2) == 0;
    auto bin = static_cast<bst_bin_t>(UniformBelow(structure_, offers_.NumBins(f)));
    auto name = 1 + UniformBelow(structure_, kMaxUniform);
    out->push_back({f, bin, default_left, true, name});
  }
}

void PartitionSelector::Draw(FeatureList const& features, std::size_t n_splits) {
  for (auto f : features) {
    begins_.push_back(drawn_.size());
    auto n_drawn = draws_.IsOnlyOne(f, n_splits) ? 1 : plan_.split_candidates;
    for (std::int32_t i = 0; i < n_drawn; ++i) {
      draws_.Draw(f, n_splits, &drawn_);
    }
  }
}

Partitions PartitionSelector::Select(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                     std::int32_t n_levels, ExactLevels<GlobalSum> const& levels,
                                     Release* release) {
  auto n_splits = (std::size_t{1} << n_levels) - 1;
  auto per_feature = static_cast<std::size_t>(plan_.split_candidates);
  auto n_choices = tree.oblivious ? std::size_t{1} : nodes.size();
  std::vector<std::size_t> firsts;  // the first feature of each choice, among those of all
  drawn_.clear();
  begins_.clear();
  for (std::size_t choice = 0; choice < n_choices; ++choice) {
    firsts.push_back(begins_.size());
    this->Draw(nodes[choice].features, n_splits);
  }
  begins_.push_back(drawn_.size());
  // Of the j-th feature of a choice; a feature that has only one partition has it many times.
  auto n_drawn = [&](std::size_t choice, std::size_t j) {
    auto at = firsts[choice] + j;
    return (begins_[at + 1] - begins_[at]) / n_splits;
  };
  auto drawn = [&](std::size_t choice, std::size_t j, std::size_t i) {
    return Partition{drawn_.data() + begins_[firsts[choice] + j] + i * n_splits, n_splits};
  };

  workspaces_.resize(ctx_->Threads());
  std::vector<std::int64_t> utilities;
  auto add = [&](std::vector<std::int64_t> const& of_feature, std::size_t j) {
    for (std::size_t c = 0; c < per_feature; ++c) {
      utilities[j * per_feature + c] += of_feature[c % of_feature.size()];
    }
  };
  auto chosen = release->Select(SplitEvent(plan_), n_choices, [&](std::size_t choice) {
    auto const& features = nodes[choice].features;
    utilities.clear();
    for (auto offset : tree.history->Offsets(tree.class_idx, features, UtilityOfOneNat(plan_))) {
      utilities.insert(utilities.end(), per_feature, offset);
    }
    for (auto i = choice; i < (tree.oblivious ? nodes.size() : choice + 1); ++i) {
      if (plan_.SharesSplits()) {
        common::ParallelFor(features.size(), ctx_->Threads(), [&](auto j) {
          auto& own = workspaces_[omp_get_thread_num()];
          auto n_own = n_drawn(choice, j);
          own.norms.assign(n_own * (n_splits + 1), ClassNorm{});
          for (std::size_t k = 0; k < levels.NumClasses(); ++k) {
            auto sums = levels.Sums(nodes[i].nidx, k);
            own.sums.Reset(offers_.Bins(features[j], sums), sums.total);
            auto norm = own.norms.begin();
            for (std::size_t c = 0; c < n_own; ++c) {
              own.sums.Cells(drawn(choice, j, c), &own.cells);
              for (auto const& cell : own.cells) {
                (norm++)->Add(cell.grad);
              }
            }
          }
          own.utilities.assign(n_own, 0);
          for (std::size_t at = 0; at < own.norms.size(); ++at) {
            own.utilities[at / (n_splits + 1)] += own.norms[at].Floor();
          }
          add(own.utilities, j);
        });
        continue;
      }
      auto sums = levels.Sums(nodes[i].nidx);
      DispatchScore(plan_, [&](auto const& score) {
        common::ParallelFor(features.size(), ctx_->Threads(), [&](auto j) {
          auto& own = workspaces_[omp_get_thread_num()];
          own.sums.Reset(offers_.Bins(features[j], sums), sums.total);
          own.utilities.assign(n_drawn(choice, j), 0);
          for (std::size_t c = 0; c < own.utilities.size(); ++c) {
            own.sums.Cells(drawn(choice, j, c), &own.cells);
            for (auto const& cell : own.cells) {
              own.utilities[c] += score(cell);
            }
          }
          add(own.utilities, j);
        });
      });
    }
    return &utilities;
  });

  Partitions partitions;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto choice = tree.oblivious ? 0 : i;
    auto idx = static_cast<std::size_t>(chosen[choice]);
    auto j = idx / per_feature;
    partitions.Add(drawn(choice, j, idx % per_feature % n_drawn(choice, j)).data(), n_splits);
  }
  return partitions;
}
}  // namespace xgboost::dp
