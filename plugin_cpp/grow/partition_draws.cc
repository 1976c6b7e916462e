#include "plugin_cpp/grow/partition_draws.h"

#include <algorithm>  // for min, sort
#include <utility>    // for swap

#include "plugin_cpp/random/public_words.h"  // for PublicWords
#include "plugin_cpp/random/samplers.h"      // for UniformBelow, kMaxUniform

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

void PartitionDraws::Draw(bst_feature_t f, std::size_t n_splits, RandomSource* structure,
                          std::vector<Split>* out) {
  if (offers_.IsCategorical(f)) {
    this->DrawCategorical(f, n_splits, structure, out);
  } else if (this->IsOnlyOne(f, n_splits)) {
    this->PartAll(f, n_splits, out);
  } else {
    this->DrawNumeric(f, n_splits, structure, out);
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

void PartitionDraws::DrawNumeric(bst_feature_t f, std::size_t n_splits, RandomSource* structure,
                                 std::vector<Split>* out) {
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
      taken_.push_back(i + UniformBelow(structure, n_cuts - i));
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
      cut = static_cast<bst_bin_t>(UniformBelow(structure, n_cuts));
    }
  }
  std::sort(cuts_.begin(), cuts_.end());
  for (auto rank : rank_) {
    out->push_back({f, cuts_[rank], UniformBelow(structure, 2) == 0, false, 0});
  }
}

void PartitionDraws::DrawCategorical(bst_feature_t f, std::size_t n_splits, RandomSource* structure,
                                     std::vector<Split>* out) {
  // One category and a random half of the others go right at every split.
  for (std::size_t i = 0; i < n_splits; ++i) {
    bool default_left = UniformBelow(structure, 2) == 0;
    auto bin = static_cast<bst_bin_t>(UniformBelow(structure, offers_.NumBins(f)));
    auto name = 1 + UniformBelow(structure, kMaxUniform);
    out->push_back({f, bin, default_left, true, name});
  }
}

Partition NamedPartitions::Make(std::size_t choice, bst_feature_t f, std::size_t i) {
  PublicWords words{name_, {choice, f, i}};
  made_.clear();
  draws_.Draw(f, n_splits_, &words, &made_);
  return {made_.data(), made_.size()};
}
}  // namespace xgboost::dp
