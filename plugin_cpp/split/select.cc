#include "plugin_cpp/split/select.h"

#include <algorithm>  // for fill, upper_bound
#include <cmath>      // for floor

#include "common/threading_utils.h"       // for ParallelFor
#include "plugin_cpp/plan/sensitivity.h"  // for SplitEvent
#include "plugin_cpp/split/score.h"       // for DispatchScore, UtilityOfOneNat

namespace xgboost::dp {
void SelectedSplits::Begin(std::vector<PackedPair> const& gpair, LocalSum const& total) {
  levels_.Begin(gpair, release_->SumOverWorkers(std::vector<LocalSum>{total}).front());
}

Partitions SelectedSplits::Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t n_levels) {
  return n_levels > 1 ? partitions_.Select(nodes, tree, n_levels, levels_, release_)
                      : this->ChooseSplits(nodes, tree);
}

LeafSums SelectedSplits::End(std::vector<bst_node_t> const& leaves,
                             std::vector<bst_node_t>* positions) {
  levels_.Positions(positions);
  std::vector<GlobalSum> sums;
  for (auto nidx : leaves) {
    sums.push_back(levels_.Total(nidx));
  }
  return sums;
}

void SelectedSplits::ListOffers(FeatureList const& features) {
  offsets_.assign(1, 0);
  for (auto f : features) {
    offsets_.push_back(offsets_.back() + offers_.Size(f));
  }
}

void SelectedSplits::AddUtilities(OpenNode const& node) {
  auto sums = levels_[node.nidx];
  DispatchScore(plan_, [&](auto const& score) {
    common::ParallelFor(node.features.size(), ctx_->Threads(), [&](auto i) {
      auto f = node.features[i];
      auto* out = utilities_.data() + offsets_[i];
      auto order = plan_.monotone[f];
      offers_.ForEach(f, offers_.Bins(f, sums).data(), offers_.Missing(f, sums), sums.total,
                      [&](std::size_t idx, GlobalSum const& left, GlobalSum const& right) {
                        if (order == 0) {
                          out[idx] += score(left) + score(right);
                        } else {
                          out[idx] +=
                              order > 0 ? score.Ordered(left, right) : score.Ordered(right, left);
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
  auto chosen = release_->Select(SplitEvent(plan_), n_choices, [&](std::size_t choice) {
    auto const& features = nodes[choice].features;
    this->ListOffers(features);
    utilities_.assign(offsets_.back() + (plan_.no_split ? 1 : 0), 0);
    auto prior = tree.history->Offsets(tree.class_idx, features, UtilityOfOneNat(plan_));
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
    return &utilities_;
  });
  Partitions partitions;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto const& features = nodes[i].features;
    this->ListOffers(features);
    auto idx = static_cast<std::size_t>(chosen[tree.oblivious ? 0 : i]);
    if (idx >= offsets_.back()) {
      partitions.Add(nullptr, 0);
      continue;
    }
    auto at = std::upper_bound(offsets_.cbegin(), offsets_.cend(), idx) - offsets_.cbegin() - 1;
    auto split = offers_.At(features[at], idx - offsets_[at]);
    partitions.Add(&split, 1);
  }
  return partitions;
}
}  // namespace xgboost::dp
