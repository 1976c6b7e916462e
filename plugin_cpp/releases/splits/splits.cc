/**
 * The private choice of splits: one exponential mechanism for a node, or one for a whole level.
 *
 * Per node: the nodes of a level hold disjoint rows, so one row touches one of the selections of a
 * level, and the level costs one selection. Oblivious: the utility is summed over the nodes of the
 * level; a row is in one of them, so that the range is the same.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#include <algorithm>  // for fill, upper_bound
#include <cmath>      // for floor
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t
#include <utility>    // for move
#include <vector>     // for vector

#include "common/threading_utils.h"                 // for ParallelFor
#include "plugin_cpp/grow/exact_levels.h"           // for ExactLevels
#include "plugin_cpp/grow/splitter.h"               // for Splitter
#include "plugin_cpp/plan/plan.h"                   // for SplitEvent
#include "plugin_cpp/releases/splits/history.h"     // for SplitHistory
#include "plugin_cpp/releases/splits/partitions.h"  // for PartitionSelector
#include "plugin_cpp/releases/splits/score.h"       // for ClassNorm, DispatchScore

namespace xgboost::dp {
namespace {
class SelectedSplits : public Splitter {
 public:
  explicit SelectedSplits(SplitterParts const& parts)
      : ctx_{parts.ctx},
        plan_{parts.plan},
        candidates_{parts.candidates},
        release_{parts.release},
        levels_{parts},
        partitions_{parts} {}

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
  void ListCandidates(FeatureList const& features);
  void AddUtilities(OpenNode const& node);
  /** @brief The same where the trees of all classes share the splits. */
  void AddNorms(OpenNode const& node);

  Context const* ctx_;
  Plan const& plan_;
  SplitCandidates const& candidates_;
  Release* release_;
  ExactLevels<GlobalSum> levels_;
  PartitionSelector partitions_;
  std::vector<std::size_t> offsets_;  // first offer of each allowed feature
  std::vector<std::int64_t> utilities_;
};

void SelectedSplits::Begin(common::Span<ClassGradients const> gradients) {
  std::vector<LocalSum> totals;
  for (auto const& of_class : gradients) {
    totals.push_back(of_class.total);
  }
  levels_.Begin(gradients, release_->SumOverWorkers(std::move(totals)));
}

Partitions SelectedSplits::Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t n_levels) {
  return n_levels > 1 ? partitions_.Select(nodes, tree, n_levels, levels_)
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
  UtilitiesOf utilities = [&](std::size_t choice) {
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
      // A public bonus: it moves with no row, so the range stays.
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

Splitters::Add<SelectedSplits> const kAdded{SplitChoice::kExponential};
}  // namespace
}  // namespace xgboost::dp
