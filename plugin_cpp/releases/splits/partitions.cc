#include "plugin_cpp/releases/splits/partitions.h"

#include <algorithm>  // for max_element, transform
#include <cstdlib>    // for abs
#include <utility>    // for move

#include "common/threading_utils.h"              // for ParallelFor
#include "plugin_cpp/grow/partition_draws.h"     // for NamedPartitions
#include "plugin_cpp/plan/draws.h"               // for SplitEvent
#include "plugin_cpp/random/exponential.h"       // for GroupedUtilities
#include "plugin_cpp/random/samplers.h"          // for UniformBelow, kMaxUniform
#include "plugin_cpp/releases/splits/history.h"  // for SplitHistory
#include "plugin_cpp/releases/splits/score.h"    // for DispatchScore, ClassNorm, UtilityOfOneNat

namespace xgboost::dp {
namespace {
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
  Contest(Context const* ctx, Plan const& plan, Offers const& offers,
          ExactLevels<GlobalSum> const& levels, NamedPartitions const& partitions,
          std::size_t n_splits)
      : ctx_{ctx},
        plan_{plan},
        offers_{offers},
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
      auto& own = workspaces_[omp_get_thread_num()];
      this->Compute(j, &own);
      bounds_[j] = *std::max_element(own.utilities.cbegin(), own.utilities.cend());
      for (std::size_t i = 0; i < per_group_; ++i) {
        utilities_[j * per_group_ + i] = own.utilities[i % own.utilities.size()];
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
      auto& own = workspaces_[omp_get_thread_num()];
      this->Compute(groups[k], &own);
      out[k] = *std::max_element(own.utilities.cbegin(), own.utilities.cend());
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
      offers_.ForEachSum(f, sums, [&](GlobalSum const& bin) {
        bound += std::abs(bin.grad);
        missing -= bin.grad;
      });
      bound += std::abs(missing);
    }
    return bound;
  }

  [[nodiscard]] std::size_t NumMade(bst_feature_t f, Workspace const& own) const {
    return own.partitions.IsOnlyOne(f) ? 1 : per_group_;
  }

  /** @brief The utilities of all partitions of a feature; of one that has only one, that. */
  void Compute(std::size_t j, Workspace* own) const {
    auto f = nodes_.front().features[j];
    own->utilities.assign(this->NumMade(f, *own), priors_[j]);
    if (plan_.SharesSplits()) {
      this->AddNorms(f, own);
      return;
    }
    DispatchScore(plan_, [&](auto const& score) {
      for (auto const& sums : sums_) {
        own->sums.Reset(offers_.Bins(f, sums, &own->bins), sums.total);
        for (std::size_t i = 0; i < own->utilities.size(); ++i) {
          own->utilities[i] += this->ScoreOf(score, f, i, own);
        }
      }
    });
  }

  /** @brief The utility of one partition, in a choice with bounds. */
  [[nodiscard]] std::int64_t ComputeOne(std::size_t j, std::size_t i) {
    auto f = nodes_.front().features[j];
    auto& own = workspaces_.front();
    auto utility = priors_[j];
    for (auto const& sums : sums_) {
      own.sums.Reset(offers_.Bins(f, sums, &own.bins), sums.total);
      utility += this->ScoreOf(L1Score{plan_}, f, i % this->NumMade(f, own), &own);
    }
    return utility;
  }

  template <typename ScoreT>
  [[nodiscard]] std::int64_t ScoreOf(ScoreT const& score, bst_feature_t f, std::size_t i,
                                     Workspace* own) const {
    own->sums.Cells(own->partitions.Make(choice_, f, i), &own->cells);
    std::int64_t utility = 0;
    for (auto const& cell : own->cells) {
      utility += score(cell);
    }
    return utility;
  }

  /** @brief The same where the trees of all classes share the splits. */
  void AddNorms(bst_feature_t f, Workspace* own) const {
    auto n_cells = n_splits_ + 1;
    for (auto const& node : nodes_) {
      own->norms.assign(own->utilities.size() * n_cells, ClassNorm{});
      for (std::size_t k = 0; k < levels_.NumClasses(); ++k) {
        auto sums = levels_.Sums(node.nidx, k);
        own->sums.Reset(offers_.Bins(f, sums, &own->bins), sums.total);
        auto norm = own->norms.begin();
        for (std::size_t i = 0; i < own->utilities.size(); ++i) {
          own->sums.Cells(own->partitions.Make(choice_, f, i), &own->cells);
          for (auto const& cell : own->cells) {
            (norm++)->Add(cell.grad);
          }
        }
      }
      for (std::size_t at = 0; at < own->norms.size(); ++at) {
        own->utilities[at / n_cells] += own->norms[at].Floor();
      }
    }
  }

  Context const* ctx_;
  Plan const& plan_;
  Offers const& offers_;
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
  NamedPartitions made{parts_.offers, UniformBelow(parts_.structure, kMaxUniform), n_splits};
  Contest contest{parts_.ctx, plan, parts_.offers, levels, made, n_splits};
  common::Span<OpenNode const> all{nodes};
  GroupsOf utilities = [&](std::size_t choice) {
    contest.Begin(
        choice, tree.oblivious ? all : all.subspan(choice, 1),
        tree.history->Offsets(tree.class_idx, nodes[choice].features, UtilityOfOneNat(plan)));
    return &contest;
  };
  auto chosen = parts_.release->Select(SplitEvent(plan), n_choices, utilities);

  Partitions partitions;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto choice = tree.oblivious ? 0 : i;
    auto idx = static_cast<std::size_t>(chosen[choice]);
    auto partition =
        made.Make(choice, nodes[choice].features[idx / per_feature], idx % per_feature);
    partitions.Add(partition.data(), n_splits);
  }
  return partitions;
}
}  // namespace xgboost::dp
