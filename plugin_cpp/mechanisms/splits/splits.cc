/**
 * Choice of splits by the exponential mechanism: one selection per node, or one for a whole level.
 *
 * Per node: the nodes of a level have disjoint rows, so a row affects only one selection, and the
 * level costs one selection. Oblivious: the utility is summed over the nodes of the level. A row is
 * in a single node, so the range is the same.
 *
 * One selection can also fill m levels. It chooses a feature and a partition of its values into 2^m
 * cells, from a few random partitions of each feature that are drawn without reading the data. The
 * utility is the sum of the score over all cells. A row is in one cell, so the range is the same as
 * for a single split, and m levels cost one selection.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#include <algorithm>  // for fill, max_element, min, sort, transform, upper_bound
#include <cmath>      // for floor
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t, uint64_t
#include <cstdlib>    // for abs
#include <memory>     // for make_unique, unique_ptr
#include <utility>    // for move, swap
#include <vector>     // for vector

#include "common/threading_utils.h"                // for ParallelFor
#include "plugin_cpp/grow/exact_levels.h"          // for ExactLevels
#include "plugin_cpp/grow/splitter.h"              // for Splitter
#include "plugin_cpp/mechanisms/splits/history.h"  // for SplitHistory
#include "plugin_cpp/mechanisms/splits/score.h"    // for ClassNorm, DispatchScore
#include "plugin_cpp/plan/plan.h"                  // for SplitEvent
#include "plugin_cpp/random/exponential.h"         // for GroupedUtilities
#include "plugin_cpp/random/public_words.h"        // for PublicWords
#include "plugin_cpp/random/samplers.h"            // for UniformBelow, kMaxUniform
#include "plugin_cpp/simd.h"                       // for XGB_DP_SIMD

namespace xgboost::dp {
namespace {
/**
 * @brief List the ranks of the cuts in heap order: the middle cut splits node `at`, and so on
 *        recursively.
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
 * @brief Random partitions of one selection, a fixed number for each feature of each choice. They
 *        do not depend on data. They are derived from a public name, so they can be computed on
 *        demand.
 */
class NamedPartitions {
 public:
  NamedPartitions(SplitCandidates const& candidates, std::uint64_t name, std::size_t n_splits)
      : candidates_{candidates}, name_{name}, rank_(n_splits) {
    RankHeap(0, n_splits, 0, &rank_);
  }

  /** @brief The i-th random partition of a feature, or its only partition. */
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
   * @brief Whether a numeric feature has so few bins that every bin, and the missing values, can
   *        have a cell of their own. No other partition is better.
   */
  [[nodiscard]] bool IsOnlyOne(bst_feature_t f) const {
    return !candidates_.IsCategorical(f) && candidates_.NumBins(f) <= rank_.size();
  }

 private:
  void DrawNumeric(bst_feature_t f, RandomSource* words) {
    // Cuts between two bins. The last cut of a feature isolates missing values.
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

  /** @brief Draw ascending cuts, distinct if the feature has enough of them. */
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
      // Restore the pool.
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

  /**
   * @brief Draw categorical splits. At each, one category and a random half of the others go right.
   */
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
  std::vector<bst_bin_t> pool_;    // 0, 1, 2, ...
  std::vector<bst_bin_t> cuts_;    // of the current partition
  std::vector<std::size_t> taken_;
  std::vector<Split> made_;
};

/** @brief The sum of the gradients of some bins, and of their absolute values. */
struct GradientSums {
  std::int64_t sum, absolute;
};

XGB_DP_SIMD GradientSums SumGradients(PackedPair const* words, std::size_t n) {
  GradientSums out{0, 0};
  for (std::size_t i = 0; i < n; ++i) {
    auto grad = words[i].Grad();
    out.sum += grad;
    out.absolute += std::abs(grad);
  }
  return out;
}

/** @brief Memory of a thread, reused for all features. */
struct Workspace {
  NamedPartitions partitions;
  std::vector<GlobalSum> bins;
  FeatureSums<GlobalSum> sums;
  std::vector<GlobalSum> cells;
  std::vector<ClassNorm> norms;         // of the cells of all partitions of a feature
  std::vector<std::int64_t> utilities;  // of the partitions of a feature
};

/** @brief The utilities of the partitions of one choice, grouped by feature. */
class PartitionUtilities final : public GroupedUtilities {
 public:
  PartitionUtilities(Context const* ctx, Plan const& plan, SplitCandidates const& candidates,
                     ExactLevels<GlobalSum> const& levels, NamedPartitions const& partitions,
                     std::size_t n_splits)
      : plan_{plan},
        candidates_{candidates},
        levels_{levels},
        n_splits_{n_splits},
        per_group_{static_cast<std::size_t>(plan.split_candidates)},
        is_bounded_{!plan.SharesSplits() && plan.score == Score::kL1},
        workspaces_(ctx->Threads(), Workspace{partitions, {}, {}, {}, {}, {}}) {}

  /**
   * @param nodes  The nodes that share the choice, at least one.
   * @param priors Additive terms of the features.
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
    common::ParallelFor(features.size(), this->NumThreads(), [&](auto j) {
      if (is_bounded_) {
        bounds_[j] = priors_[j] + this->UpperBound(features[j]);
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
    common::ParallelFor(groups.size(), this->NumThreads(), [&](auto k) {
      auto& work = workspaces_[omp_get_thread_num()];
      this->Compute(groups[k], &work);
      out[k] = *std::max_element(work.utilities.cbegin(), work.utilities.cend());
    });
  }

 private:
  /**
   * @brief The threads of the context, without a system call for each choice; one thread for few
   *        histograms, which take less time than to wake the others.
   */
  [[nodiscard]] std::int32_t NumThreads() const {
    bool is_short = sums_.size() * bounds_.size() < 256;
    return is_short ? 1 : static_cast<std::int32_t>(workspaces_.size());
  }
  /**
   * @brief The score of the finest partition, with a cell for each bin and for missing values.
   * Cells of other partitions are unions of these, and |G| is subadditive.
   */
  [[nodiscard]] std::int64_t UpperBound(bst_feature_t f) const {
    std::int64_t bound = 0;
    for (auto const& sums : sums_) {
      GradientSums bins{0, 0};
      if (sums.words) {
        bins = SumGradients(candidates_.Words(f, sums), candidates_.NumBins(f));
      } else {
        candidates_.ForEachSum(f, sums, [&](GlobalSum const& bin) {
          bins.sum += bin.grad;
          bins.absolute += std::abs(bin.grad);
        });
      }
      bound += bins.absolute + std::abs(sums.total.grad - bins.sum);
    }
    return bound;
  }

  [[nodiscard]] std::size_t NumMade(bst_feature_t f, Workspace const& work) const {
    return work.partitions.IsOnlyOne(f) ? 1 : per_group_;
  }

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
          work->utilities[i] += this->Utility(score, f, i, work);
        }
      }
    });
  }

  /** @brief The utility of one partition, for a choice with bounds. */
  [[nodiscard]] std::int64_t ComputeOne(std::size_t j, std::size_t i) {
    auto f = nodes_.front().features[j];
    auto& work = workspaces_.front();
    auto utility = priors_[j];
    for (auto const& sums : sums_) {
      work.sums.Reset(candidates_.Bins(f, sums, &work.bins), sums.total);
      utility += this->Utility(L1Score{plan_}, f, i % this->NumMade(f, work), &work);
    }
    return utility;
  }

  template <typename ScoreT>
  [[nodiscard]] std::int64_t Utility(ScoreT const& score, bst_feature_t f, std::size_t i,
                                     Workspace* work) const {
    work->sums.Cells(work->partitions.Make(choice_, f, i), &work->cells);
    std::int64_t utility = 0;
    for (auto const& cell : work->cells) {
      utility += score(cell);
    }
    return utility;
  }

  /** @brief Add the utilities of the partitions of a feature, for splits shared by all classes. */
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

  Plan const& plan_;
  SplitCandidates const& candidates_;
  ExactLevels<GlobalSum> const& levels_;
  std::size_t n_splits_;
  std::size_t per_group_;
  bool is_bounded_;  // otherwise all utilities are computed
  std::size_t choice_{0};
  common::Span<OpenNode const> nodes_;
  std::vector<NodeSums<GlobalSum>> sums_;  // of the nodes, of the first class
  std::vector<std::int64_t> priors_, bounds_;
  std::vector<std::int64_t> utilities_;  // of all partitions, without bounds
  std::vector<Workspace> workspaces_;    // of each thread
};
class SelectedSplits : public Splitter {
 public:
  explicit SelectedSplits(SplitterParts const& parts)
      : ctx_{parts.ctx},
        plan_{parts.plan},
        candidates_{parts.candidates},
        release_{parts.release},
        structure_{parts.structure},
        levels_{parts} {}

  void Begin(common::Span<ClassGradients const> gradients) override;
  [[nodiscard]] Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t n_levels) override;
  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool last) override {
    levels_.Follow(nodes, partitions, children, last);
  }
  [[nodiscard]] std::vector<LeafSums> End(std::vector<bst_node_t> const& leaves,
                                          std::vector<bst_node_t>* positions) override;

 private:
  [[nodiscard]] Partitions ChooseSplits(std::vector<OpenNode> const& nodes, TreeSpec const& tree);
  /** @brief Choose the splits of `n_levels` levels below every node. */
  [[nodiscard]] Partitions ChoosePartitions(std::vector<OpenNode> const& nodes,
                                            TreeSpec const& tree, std::int32_t n_levels);
  void ListCandidates(FeatureList const& features);
  void AddUtilities(OpenNode const& node);
  /** @brief Add the utilities of the candidates of a node, for splits shared by all classes. */
  void AddNorms(OpenNode const& node);

  Context const* ctx_;
  Plan const& plan_;
  SplitCandidates const& candidates_;
  Release* release_;
  RandomSource* structure_;
  ExactLevels<GlobalSum> levels_;
  std::vector<std::size_t> offsets_;  // first candidate of each allowed feature
  std::vector<std::int64_t> utilities_;
};

void SelectedSplits::Begin(common::Span<ClassGradients const> gradients) {
  std::vector<LocalSum> totals;
  for (auto const& class_gradients : gradients) {
    totals.push_back(class_gradients.total);
  }
  levels_.Begin(gradients, release_->SumOverWorkers(std::move(totals)));
}

Partitions SelectedSplits::Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t n_levels) {
  return n_levels > 1 ? this->ChoosePartitions(nodes, tree, n_levels)
                      : this->ChooseSplits(nodes, tree);
}

std::vector<LeafSums> SelectedSplits::End(std::vector<bst_node_t> const& leaves,
                                          std::vector<bst_node_t>* positions) {
  levels_.Positions(positions);
  std::vector<LeafSums> out;
  for (std::size_t k = 0; k < levels_.NumClasses(); ++k) {
    std::vector<GlobalSum> sums;
    for (auto nidx : leaves) {
      sums.push_back(levels_.Total(nidx, k));
    }
    out.emplace_back(std::move(sums));
  }
  return out;
}

void SelectedSplits::ListCandidates(FeatureList const& features) {
  offsets_.assign(1, 0);
  for (auto f : features) {
    offsets_.push_back(offsets_.back() + candidates_.Size(f));
  }
}

void SelectedSplits::AddNorms(OpenNode const& node) {
  auto n_class = levels_.NumClasses();
  common::ParallelFor(node.features.size(), ctx_->Threads(), [&](auto i) {
    auto f = node.features[i];
    auto order = plan_.monotone[f];
    std::vector<ClassNorm> left_norms(candidates_.Size(f)), right_norms(candidates_.Size(f));
    std::vector<GlobalSum> memory;
    for (std::size_t k = 0; k < n_class; ++k) {
      auto sums = levels_.Sums(node.nidx, k);
      candidates_.ForEach(f, candidates_.Bins(f, sums, &memory).data(),
                          candidates_.Missing(f, sums), sums.total,
                          [&](std::size_t idx, GlobalSum const& left, GlobalSum const& right) {
                            if (order == 0) {
                              left_norms[idx].Add(left.grad);
                              right_norms[idx].Add(right.grad);
                            } else {
                              L1Score score{plan_};
                              left_norms[idx].Add(order > 0 ? score.Ordered(left, right)
                                                            : score.Ordered(right, left));
                            }
                          });
    }
    auto* out = utilities_.data() + offsets_[i];
    for (std::size_t idx = 0; idx < left_norms.size(); ++idx) {
      out[idx] += left_norms[idx].Floor() + right_norms[idx].Floor();
    }
  });
  if (plan_.no_split) {
    ClassNorm norm;
    for (std::size_t k = 0; k < n_class; ++k) {
      norm.Add(levels_.Total(node.nidx, k).grad);
    }
    utilities_.back() += norm.Floor();
  }
}

void SelectedSplits::AddUtilities(OpenNode const& node) {
  if (plan_.SharesSplits()) {
    this->AddNorms(node);
    return;
  }
  auto sums = levels_.Sums(node.nidx);
  DispatchScore(plan_, [&](auto const& score) {
    common::ParallelFor(node.features.size(), ctx_->Threads(), [&](auto i) {
      auto f = node.features[i];
      auto* out = utilities_.data() + offsets_[i];
      auto order = plan_.monotone[f];
      std::vector<GlobalSum> memory;
      candidates_.ForEach(
          f, candidates_.Bins(f, sums, &memory).data(), candidates_.Missing(f, sums), sums.total,
          [&](std::size_t idx, GlobalSum const& left, GlobalSum const& right) {
            if (order == 0) {
              out[idx] += score(left) + score(right);
            } else {
              out[idx] += order > 0 ? score.Ordered(left, right) : score.Ordered(right, left);
            }
          });
    });
    if (plan_.no_split) {
      utilities_.back() += score(sums.total);
    }
  });
}

Partitions SelectedSplits::ChooseSplits(std::vector<OpenNode> const& nodes, TreeSpec const& tree) {
  auto n_choices = tree.oblivious ? std::size_t{1} : nodes.size();
  UtilityFn utilities = [&](std::size_t choice) {
    auto const& features = nodes[choice].features;
    this->ListCandidates(features);
    utilities_.assign(offsets_.back() + (plan_.no_split ? 1 : 0), 0);
    auto prior = tree.history->Offsets(tree.class_idx, features);
    for (std::size_t i = 0; i < prior.size(); ++i) {
      std::fill(utilities_.begin() + offsets_[i], utilities_.begin() + offsets_[i + 1], prior[i]);
    }
    for (auto i = choice; i < (tree.oblivious ? nodes.size() : choice + 1); ++i) {
      this->AddUtilities(nodes[i]);
    }
    if (plan_.no_split) {
      // A public bonus does not change the range.
      utilities_.back() += static_cast<std::int64_t>(
          std::floor(plan_.gamma * static_cast<double>(plan_.row_bound.Unit())));
    }
    return common::Span<std::int64_t const>{utilities_.data(), utilities_.size()};
  };
  auto chosen = release_->Select(SplitEvent(plan_), n_choices, utilities);
  Partitions partitions;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto const& features = nodes[i].features;
    this->ListCandidates(features);
    auto idx = static_cast<std::size_t>(chosen[tree.oblivious ? 0 : i]);
    if (idx >= offsets_.back()) {
      partitions.Add(nullptr, 0);
      continue;
    }
    auto at = std::upper_bound(offsets_.cbegin(), offsets_.cend(), idx) - offsets_.cbegin() - 1;
    auto split = candidates_.At(features[at], idx - offsets_[at]);
    partitions.Add(&split, 1);
  }
  return partitions;
}

Partitions SelectedSplits::ChoosePartitions(std::vector<OpenNode> const& nodes,
                                            TreeSpec const& tree, std::int32_t n_levels) {
  auto n_splits = (std::size_t{1} << n_levels) - 1;
  auto per_feature = static_cast<std::size_t>(plan_.split_candidates);
  auto n_choices = tree.oblivious ? std::size_t{1} : nodes.size();
  NamedPartitions named{candidates_, UniformBelow(structure_, kMaxUniform), n_splits};
  PartitionUtilities all_utilities{ctx_, plan_, candidates_, levels_, named, n_splits};
  common::Span<OpenNode const> all{nodes};
  GroupedUtilityFn utilities = [&](std::size_t choice) {
    all_utilities.Begin(choice, tree.oblivious ? all : all.subspan(choice, 1),
                        tree.history->Offsets(tree.class_idx, nodes[choice].features));
    return &all_utilities;
  };
  auto chosen = release_->Select(SplitEvent(plan_), n_choices, utilities);

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
}  // namespace

std::unique_ptr<Splitter> MakeSelectedSplits(SplitterParts const& parts) {
  return std::make_unique<SelectedSplits>(parts);
}
}  // namespace xgboost::dp
