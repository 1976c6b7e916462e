#include "plugin_cpp/split/select.h"

#include <algorithm>  // for upper_bound, fill
#include <cmath>      // for floor
#include <cstdint>    // for int64_t
#include <iterator>   // for distance
#include <optional>   // for optional, nullopt
#include <vector>     // for vector

#include "common/threading_utils.h"           // for ParallelFor
#include "plugin_cpp/release/workers.h"           // for FromRankZero
#include "plugin_cpp/split/score.h"           // for DispatchScore, SelectCandidate, UtilityOfOneNat

namespace xgboost::dp {
SplitSelector::SplitSelector(Context const* ctx, Plan const& plan,
                             SplitCandidates const* candidates, RandomSource* rng,
                             RandomSource* structure)
    : ctx_{ctx},
      plan_{plan},
      candidates_{candidates},
      rng_{rng},
      structure_{structure} {}

void SplitSelector::ListCandidates(FeatureList const& features) {
  offsets_.assign(1, 0);
  for (auto f : features) {
    offsets_.push_back(offsets_.back() + candidates_->Size(f));
  }
}

void SplitSelector::AddUtilities(OpenNode const& node) {
  DispatchScore(plan_, [&](auto const& score) {
    common::ParallelFor(node.features.size(), ctx_->Threads(), [&](auto i) {
      auto f = node.features[i];
      auto* out = utilities_.data() + offsets_[i];
      auto order = plan_.monotone[f];
      candidates_->ForEach(f, node.hist, node.total, [&](std::size_t idx, GradientSum const& left) {
        auto right = node.total - left;
        if (order == 0) {
          out[idx] += score(left) + score(right);
        } else {
          out[idx] += order > 0 ? score.Ordered(left, right) : score.Ordered(right, left);
        }
      });
    });
    if (plan_.no_split) {
      utilities_.back() += score(node.total);
    }
  });
}

std::int64_t SplitSelector::Choose() {
  if (plan_.no_split) {
    // A public bonus: it moves with no row, so the range stays.
    utilities_.back() += static_cast<std::int64_t>(
        std::floor(plan_.gamma * static_cast<double>(plan_.row_bound.Unit())));
  }
  return SelectCandidate(plan_, rng_, utilities_);
}

std::int64_t SplitSelector::ChooseAtRandom() {
  auto i = UniformBelow(structure_, offsets_.size() - 1);
  return static_cast<std::int64_t>(offsets_[i] +
                                   UniformBelow(structure_, offsets_[i + 1] - offsets_[i]));
}

std::optional<Split> SplitSelector::At(FeatureList const& features, std::int64_t winner) {
  auto idx = static_cast<std::size_t>(winner);
  if (idx >= offsets_.back()) {
    return std::nullopt;
  }
  auto i = std::distance(offsets_.cbegin(),
                         std::upper_bound(offsets_.cbegin(), offsets_.cend(), idx)) - 1;
  return candidates_->At(features[i], idx - offsets_[i]);
}

std::vector<std::optional<Split>> SplitSelector::Select(std::vector<OpenNode> const& nodes,
                                                        bool oblivious, std::int64_t group,
                                                        SplitHistory const& history) {
  auto winners = FromRankZero(ctx_, [&] {
    std::vector<std::int64_t> out;
    if (plan_.split == SplitChoice::kRandom) {
      for (auto const& node : nodes) {
        this->ListCandidates(node.features);
        out.push_back(oblivious && !out.empty() ? out.front() : this->ChooseAtRandom());
      }
      return out;
    }
    auto clear = [&](OpenNode const& node) {
      this->ListCandidates(node.features);
      utilities_.assign(offsets_.back() + (plan_.no_split ? 1 : 0), 0);
      auto prior = history.Offsets(group, node.features, UtilityOfOneNat(plan_));
      for (std::size_t i = 0; i < prior.size(); ++i) {
        std::fill(utilities_.begin() + offsets_[i], utilities_.begin() + offsets_[i + 1], prior[i]);
      }
    };
    if (oblivious) {
      clear(nodes.front());
      for (auto const& node : nodes) {
        this->AddUtilities(node);
      }
      out.assign(nodes.size(), this->Choose());
    } else {
      for (auto const& node : nodes) {
        clear(node);
        this->AddUtilities(node);
        out.push_back(this->Choose());
      }
    }
    return out;
  });
  std::vector<std::optional<Split>> splits;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    this->ListCandidates(nodes[i].features);
    splits.push_back(this->At(nodes[i].features, winners[i]));
  }
  return splits;
}
}  // namespace xgboost::dp
