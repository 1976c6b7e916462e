#include "plugin_cpp/releases/splits/partitions.h"

#include <algorithm>  // for min, sort, max_element, transform
#include <cstddef>    // for size_t
#include <cstdint>    // for uint64_t
#include <cstdlib>    // for abs
#include <utility>    // for swap, move
#include <vector>     // for vector

#include "common/threading_utils.h"              // for ParallelFor
#include "plugin_cpp/grow/split_candidates.h"    // for SplitCandidates, Split, Partition
#include "plugin_cpp/plan/plan.h"                // for SplitEvent
#include "plugin_cpp/random/exponential.h"       // for GroupedUtilities
#include "plugin_cpp/random/public_words.h"      // for PublicWords
#include "plugin_cpp/random/samplers.h"          // for UniformBelow, kMaxUniform
#include "plugin_cpp/release/source.h"           // for RandomSource
#include "plugin_cpp/releases/splits/history.h"  // for SplitHistory
#include "plugin_cpp/releases/splits/score.h"    // for DispatchScore, ClassNorm

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

/**
 * @brief The partitions of one selection, a fixed number of each feature of each choice, drawn
 *        without looking at the data. They follow from a public name that was drawn before, so that
 *        only those are made that are looked at.
 */
class NamedPartitions {
 public:
  NamedPartitions(SplitCandidates const& candidates, std::uint64_t name, std::size_t n_splits)
      : candidates_{candidates}, name_{name}, rank_(n_splits) {
    RankHeap(0, n_splits, 0, &rank_);
  }

  /** @brief The i-th partition of a feature; of one that has only one partition, that. */
  [[nodiscard]] Partition Make(std::size_t choice, bst_feature_t f, std::size_t i) {
    PublicWords words{name_, {choice, f, i}};
    made_.clear();
    if (candidates_.IsCategorical(f)) {
      this->DrawCategorical(f, &words);
    } else {
      this->DrawNumeric(f, &words);
    }
    return {made_.data(), made_.size()};
  }
  /**
   * @brief Whether the bins of a numeric feature, and its missing values, are so few that each has
   *        a cell of its own: that partition is at least as good as any, and is not drawn.
   */
  [[nodiscard]] bool IsOnlyOne(bst_feature_t f) const {
    return !candidates_.IsCategorical(f) && candidates_.NumBins(f) <= rank_.size();
  }

 private:
  void DrawNumeric(bst_feature_t f, RandomSource* words) {
    // Cuts between two bins. The last cut of a feature parts missing values from all others.
    auto n_cuts = candidates_.NumBins(f) - 1;
    bool is_only_one = this->IsOnlyOne(f);
    if (is_only_one) {
      for (std::size_t i = 0; i < rank_.size(); ++i) {
        cuts_.push_back(static_cast<bst_bin_t>(std::min(i, n_cuts)));
      }
    } else {
      this->DrawCuts(n_cuts, words);
    }
    for (auto rank : rank_) {
      bool default_left = !is_only_one && UniformBelow(words, 2) == 0;
      made_.push_back({f, cuts_[rank], default_left, false, 0});
    }
    cuts_.clear();
  }

  /** @brief Cuts in ascending order: distinct ones where there are enough. */
  void DrawCuts(std::size_t n_cuts, RandomSource* words) {
    auto n_splits = rank_.size();
    if (n_cuts > n_splits) {
      for (auto i = pool_.size(); i < n_cuts; ++i) {
        pool_.push_back(static_cast<bst_bin_t>(i));
      }
      taken_.clear();
      for (std::size_t i = 0; i < n_splits; ++i) {
        taken_.push_back(i + UniformBelow(words, n_cuts - i));
        std::swap(pool_[i], pool_[taken_[i]]);
        cuts_.push_back(pool_[i]);
      }
      // What was moved returns to its place.
      for (std::size_t i = 0; i < n_splits; ++i) {
        pool_[i] = static_cast<bst_bin_t>(i);
        pool_[taken_[i]] = static_cast<bst_bin_t>(taken_[i]);
      }
    } else {
      for (std::size_t i = 0; i < n_splits; ++i) {
        cuts_.push_back(static_cast<bst_bin_t>(UniformBelow(words, n_cuts)));
      }
    }
    std::sort(cuts_.begin(), cuts_.end());
  }

  /** @brief One category and a random half of the others go right at every split. */
  void DrawCategorical(bst_feature_t f, RandomSource* words) {
    for (std::size_t i = 0; i < rank_.size(); ++i) {
      bool default_left = UniformBelow(words, 2) == 0;
      auto bin = static_cast<bst_bin_t>(UniformBelow(words, candidates_.NumBins(f)));
      auto subset = 1 + UniformBelow(words, kMaxUniform);
      made_.push_back({f, bin, default_left, true, subset});
    }
  }

  SplitCandidates const& candidates_;
  std::uint64_t name_;
  std::vector<std::size_t> rank_;  // of the cuts of a partition, in heap order
  std::vector<bst_bin_t> pool_;    // counts from 0 up
  std::vector<bst_bin_t> cuts_;    // of the partition that is drawn
  std::vector<std::size_t> taken_;
  std::vector<Split> made_;
};

/** @brief What one thread works with, kept from one feature to the next. */
struct Workspace {
  NamedPartitions partitions;
  std::vector<GlobalSum> bins;
  FeatureSums<GlobalSum> sums;
  std::vector<GlobalSum> cells;
  std::vector<ClassNorm> norms;         // of the cells of all partitions of a feature
  std::vector<std::int64_t> utilities;  // of the partitions of a feature
};

/** @brief The utilities of the partitions of one choice; the groups are its features. */
class Contest final : public GroupedUtilities {
 public:
  Contest(Context const* ctx, Plan const& plan, SplitCandidates const& candidates,
          ExactLevels<GlobalSum> const& levels, NamedPartitions const& partitions,
          std::size_t n_splits)
      : ctx_{ctx},
        plan_{plan},
        candidates_{candidates},
        levels_{levels},
        n_splits_{n_splits},
        per_group_{static_cast<std::size_t>(plan.split_candidates)},
        is_bounded_{!plan.SharesSplits() && plan.score == Score::kL1},
        workspaces_(ctx->Threads(), Workspace{partitions, {}, {}, {}, {}, {}}) {}

  /**
   * @param nodes  Those that share the choice, at least one.
   * @param priors Of its features.
   */
  void Begin(std::size_t choice, common::Span<OpenNode const> nodes,
             std::vector<std::int64_t> priors) {
    choice_ = choice;
    nodes_ = nodes;
    priors_ = std::move(priors);
    sums_.clear();
    for (auto const& node : nodes) {
      sums_.push_back(levels_.Sums(node.nidx));
    }
    auto const& features = nodes.front().features;
    bounds_.resize(features.size());
    if (!is_bounded_) {
      utilities_.resize(features.size() * per_group_);
    }
    common::ParallelFor(features.size(), ctx_->Threads(), [&](auto j) {
      if (is_bounded_) {
        bounds_[j] = priors_[j] + this->BoundOf(features[j]);
        return;
      }
      auto& work = workspaces_[omp_get_thread_num()];
      this->Compute(j, &work);
      bounds_[j] = *std::max_element(work.utilities.cbegin(), work.utilities.cend());
      for (std::size_t i = 0; i < per_group_; ++i) {
        utilities_[j * per_group_ + i] = work.utilities[i % work.utilities.size()];
      }
    });
  }

  [[nodiscard]] std::size_t PerGroup() const override { return per_group_; }
  [[nodiscard]] common::Span<std::int64_t const> Bounds() const override {
    return {bounds_.data(), bounds_.size()};
  }
  [[nodiscard]] std::int64_t At(std::size_t j, std::size_t i) override {
    return is_bounded_ ? this->ComputeOne(j, i) : utilities_[j * per_group_ + i];
  }
  void Largest(common::Span<std::size_t const> groups, std::int64_t* out) override {
    if (!is_bounded_) {
      std::transform(groups.cbegin(), groups.cend(), out, [&](auto j) { return bounds_[j]; });
      return;
    }
    common::ParallelFor(groups.size(), ctx_->Threads(), [&](auto k) {
      auto& work = workspaces_[omp_get_thread_num()];
      this->Compute(groups[k], &work);
      out[k] = *std::max_element(work.utilities.cbegin(), work.utilities.cend());
    });
  }

 private:
  /**
   * @brief The score of the finest partition, with a cell for each bin and for missing values.
   * Cells of others are unions of these, and |G| of a union is at most the sum of theirs.
   */
  [[nodiscard]] std::int64_t BoundOf(bst_feature_t f) const {
    std::int64_t bound = 0;
    for (auto const& sums : sums_) {
      auto missing = sums.total.grad;
      candidates_.ForEachSum(f, sums, [&](GlobalSum const& bin) {
        bound += std::abs(bin.grad);
        missing -= bin.grad;
      });
      bound += std::abs(missing);
    }
    return bound;
  }

  [[nodiscard]] std::size_t NumMade(bst_feature_t f, Workspace const& work) const {
    return work.partitions.IsOnlyOne(f) ? 1 : per_group_;
  }

  /** @brief The utilities of all partitions of a feature; of one that has only one, that. */
  void Compute(std::size_t j, Workspace* work) const {
    auto f = nodes_.front().features[j];
    work->utilities.assign(this->NumMade(f, *work), priors_[j]);
    if (plan_.SharesSplits()) {
      this->AddNorms(f, work);
      return;
    }
    DispatchScore(plan_, [&](auto const& score) {
      for (auto const& sums : sums_) {
        work->sums.Reset(candidates_.Bins(f, sums, &work->bins), sums.total);
        for (std::size_t i = 0; i < work->utilities.size(); ++i) {
          work->utilities[i] += this->ScoreOf(score, f, i, work);
        }
      }
    });
  }

  /** @brief The utility of one partition, in a choice with bounds. */
  [[nodiscard]] std::int64_t ComputeOne(std::size_t j, std::size_t i) {
    auto f = nodes_.front().features[j];
    auto& work = workspaces_.front();
    auto utility = priors_[j];
    for (auto const& sums : sums_) {
      work.sums.Reset(candidates_.Bins(f, sums, &work.bins), sums.total);
      utility += this->ScoreOf(L1Score{plan_}, f, i % this->NumMade(f, work), &work);
    }
    return utility;
  }

  template <typename ScoreT>
  [[nodiscard]] std::int64_t ScoreOf(ScoreT const& score, bst_feature_t f, std::size_t i,
                                     Workspace* work) const {
    work->sums.Cells(work->partitions.Make(choice_, f, i), &work->cells);
    std::int64_t utility = 0;
    for (auto const& cell : work->cells) {
      utility += score(cell);
    }
    return utility;
  }

  /** @brief The same where the trees of all classes share the splits. */
  void AddNorms(bst_feature_t f, Workspace* work) const {
    auto n_cells = n_splits_ + 1;
    Partitions partitions;
    for (std::size_t i = 0; i < work->utilities.size(); ++i) {
      auto partition = work->partitions.Make(choice_, f, i);
      partitions.Add(partition.data(), partition.size());
    }
    for (auto const& node : nodes_) {
      work->norms.assign(work->utilities.size() * n_cells, ClassNorm{});
      for (std::size_t k = 0; k < levels_.NumClasses(); ++k) {
        auto sums = levels_.Sums(node.nidx, k);
        work->sums.Reset(candidates_.Bins(f, sums, &work->bins), sums.total);
        auto norm = work->norms.begin();
        for (std::size_t i = 0; i < work->utilities.size(); ++i) {
          work->sums.Cells(partitions[i], &work->cells);
          for (auto const& cell : work->cells) {
            (norm++)->Add(cell.grad);
          }
        }
      }
      for (std::size_t at = 0; at < work->norms.size(); ++at) {
        work->utilities[at / n_cells] += work->norms[at].Floor();
      }
    }
  }

  Context const* ctx_;
  Plan const& plan_;
  SplitCandidates const& candidates_;
  ExactLevels<GlobalSum> const& levels_;
  std::size_t n_splits_;
  std::size_t per_group_;
  bool is_bounded_;  // else all utilities are computed, and are their own bounds
  std::size_t choice_{0};
  common::Span<OpenNode const> nodes_;
  std::vector<NodeSums<GlobalSum>> sums_;  // of the nodes, of the first class
  std::vector<std::int64_t> priors_, bounds_;
  std::vector<std::int64_t> utilities_;  // of all partitions, where they have no bounds
  std::vector<Workspace> workspaces_;    // of each thread
};
}  // namespace

Partitions PartitionSelector::Select(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                     std::int32_t n_levels, ExactLevels<GlobalSum> const& levels) {
  auto const& plan = parts_.plan;
  auto n_splits = (std::size_t{1} << n_levels) - 1;
  auto per_feature = static_cast<std::size_t>(plan.split_candidates);
  auto n_choices = tree.oblivious ? std::size_t{1} : nodes.size();
  NamedPartitions named{parts_.candidates, UniformBelow(parts_.structure, kMaxUniform), n_splits};
  Contest contest{parts_.ctx, plan, parts_.candidates, levels, named, n_splits};
  common::Span<OpenNode const> all{nodes};
  GroupsOf utilities = [&](std::size_t choice) {
    contest.Begin(choice, tree.oblivious ? all : all.subspan(choice, 1),
                  tree.history->Offsets(tree.class_idx, nodes[choice].features));
    return &contest;
  };
  auto chosen = parts_.release->Select(SplitEvent(plan), n_choices, utilities);

  Partitions partitions;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto choice = tree.oblivious ? 0 : i;
    auto idx = static_cast<std::size_t>(chosen[choice]);
    auto partition =
        named.Make(choice, nodes[choice].features[idx / per_feature], idx % per_feature);
    partitions.Add(partition.data(), n_splits);
  }
  return partitions;
}
}  // namespace xgboost::dp
