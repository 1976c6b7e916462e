#include "plugin_cpp/split/select.h"

#include <algorithm>  // for fill
#include <cmath>      // for floor
#include <cstdint>    // for int64_t
#include <optional>   // for optional, nullopt
#include <vector>     // for vector

#include "common/threading_utils.h"           // for ParallelFor
#include "plugin_cpp/distributed.h"           // for FromRankZero
#include "plugin_cpp/noise/exponential.h"     // for SelectExponential, SelectArgmax
#include "plugin_cpp/split/score.h"           // for DispatchScore, ScoreRange

namespace xgboost::dp {
SplitSelector::SplitSelector(Context const* ctx, Plan const& plan,
                             SplitCandidates const* candidates, RandomSource* rng)
    : ctx_{ctx},
      plan_{plan},
      candidates_{candidates},
      rng_{rng},
      den_{ScoreRange(plan) << Plan::kEpsBits},
      utilities_(candidates->Size() + (plan.no_split ? 1 : 0)) {}

void SplitSelector::AddUtilities(OpenNode const& node) {
  DispatchScore(plan_, [&](auto const& score) {
    common::ParallelFor(candidates_->NumFeatures(), ctx_->Threads(), [&](auto f) {
      candidates_->ForEach(f, node.hist, node.total, [&](std::size_t idx, GradientSum const& left) {
        utilities_[idx] += score(left) + score(node.total - left);
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
  common::Span<std::int64_t const> utilities{utilities_.data(), utilities_.size()};
  return plan_.noise_free ? SelectArgmax(utilities)
                          : SelectExponential(rng_, utilities, plan_.eps_num, den_);
}

std::vector<std::optional<Split>> SplitSelector::Select(std::vector<OpenNode> const& nodes,
                                                        bool oblivious) {
  auto winners = FromRankZero(ctx_, [&] {
    std::vector<std::int64_t> out;
    if (oblivious) {
      std::fill(utilities_.begin(), utilities_.end(), 0);
      for (auto const& node : nodes) {
        this->AddUtilities(node);
      }
      out.assign(nodes.size(), this->Choose());
    } else {
      for (auto const& node : nodes) {
        std::fill(utilities_.begin(), utilities_.end(), 0);
        this->AddUtilities(node);
        out.push_back(this->Choose());
      }
    }
    return out;
  });
  std::vector<std::optional<Split>> splits;
  for (auto idx : winners) {
    if (static_cast<std::size_t>(idx) < candidates_->Size()) {
      splits.emplace_back(candidates_->At(idx));
    } else {
      splits.emplace_back(std::nullopt);
    }
  }
  return splits;
}
}  // namespace xgboost::dp
