#include "plugin_cpp/random/exponential.h"

#include <algorithm>  // for make_heap, max, max_element, min, minmax_element, pop_heap
#include <limits>     // for numeric_limits
#include <numeric>    // for iota
#include <vector>     // for vector

#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
namespace {
/** @brief Accept a candidate with probability exp(-deficit * eps_num / den). */
bool Accept(RandomSource* rng, std::uint64_t deficit, std::uint64_t eps_num, std::uint64_t den) {
  auto const numerator = u128{deficit} * eps_num;
  auto const quotient = numerator / den;
  // The quotient may be huge: BernoulliExp stops at the first failure.
  return BernoulliExp(rng, quotient, numerator - quotient * den, den);
}

void CheckScale(std::uint64_t eps_num, std::uint64_t den) {
  CHECK_LT(eps_num, kMaxEpsNum);
  CHECK(den >= 1 && den < kMaxSelectionDen) << "den must be in [1, 2^63).";
}

/**
 * @brief Groups in descending order of their bounds, then ascending index, with their largest
 *        utility.
 */
class GroupsInOrder {
 public:
  explicit GroupsInOrder(GroupedUtilities* utilities)
      : utilities_{utilities}, bounds_{utilities->Bounds().data()} {
    auto n = utilities->Bounds().size();
    CHECK(n > 0 && utilities->PerGroup() > 0) << "There is no candidate to choose from.";
    left_.resize(n);
    std::iota(left_.begin(), left_.end(), std::size_t{0});
    std::make_heap(left_.begin(), left_.end(), After{bounds_});
  }

  [[nodiscard]] bool IsEmpty() const { return left_.empty() && at_ == next_.size(); }
  [[nodiscard]] std::size_t Top() const { return at_ < next_.size() ? next_[at_] : left_.front(); }
  [[nodiscard]] std::int64_t TopBound() const { return bounds_[this->Top()]; }
  /** @brief Take the top group. @return Its largest utility. */
  [[nodiscard]] std::int64_t Pop() {
    if (at_ == next_.size()) {
      // Growing batches, for several threads. Early computation does not change the result.
      n_batch_ = std::min(2 * n_batch_, left_.size());
      next_.resize(n_batch_);
      for (auto& group : next_) {
        std::pop_heap(left_.begin(), left_.end(), After{bounds_});
        group = left_.back();
        left_.pop_back();
      }
      largest_.resize(n_batch_);
      utilities_->Largest({next_.data(), next_.size()}, largest_.data());
      at_ = 0;
    }
    return largest_[at_++];
  }

 private:
  struct After {
    std::int64_t const* bounds;
    bool operator()(std::size_t a, std::size_t b) const {
      return bounds[a] < bounds[b] || (bounds[a] == bounds[b] && a > b);
    }
  };

  GroupedUtilities* utilities_;
  std::int64_t const* bounds_;
  std::vector<std::size_t> left_;  // a heap
  std::vector<std::size_t> next_;  // the next groups, with known utilities
  std::vector<std::int64_t> largest_;
  std::size_t n_batch_{1};
  std::size_t at_{0};
};
}  // namespace

std::size_t SelectExponential(RandomSource* rng, common::Span<std::int64_t const> utilities,
                              std::uint64_t eps_num, std::uint64_t den) {
  CHECK(!utilities.empty()) << "There is no candidate to choose from.";
  CheckScale(eps_num, den);
  auto const* u = utilities.data();
  auto const n = utilities.size();
  auto const [lowest, highest] = std::minmax_element(u, u + n);
  CHECK(*lowest > -kMaxUtility && *highest < kMaxUtility) << "|utility| must be below 2^62.";
  auto const best = *highest;

  while (true) {
    auto const c = UniformBelow(rng, n);
    if (Accept(rng, static_cast<std::uint64_t>(best - u[c]), eps_num, den)) {
      return c;
    }
  }
}

std::size_t SelectExponential(RandomSource* rng, GroupedUtilities* utilities, std::uint64_t eps_num,
                              std::uint64_t den) {
  CheckScale(eps_num, den);
  // Visit groups by descending bounds until no other can exceed the best so far by more than one
  // nat: a looser `most` would only lengthen the loop below.
  auto const nat = eps_num == 0 ? std::uint64_t{1} << 63 : den / eps_num;
  GroupsInOrder groups{utilities};
  auto const bounds = utilities->Bounds();
  auto const [lowest, highest] = std::minmax_element(bounds.cbegin(), bounds.cend());
  CHECK(*lowest > -kMaxUtility && *highest < kMaxUtility) << "|utility| must be below 2^62.";
  auto most = groups.Pop();
  while (!groups.IsEmpty() && groups.TopBound() > most &&
         static_cast<std::uint64_t>(groups.TopBound() - most) > nat) {
    most = std::max(most, groups.Pop());
  }
  if (!groups.IsEmpty()) {
    most = std::max(most, groups.TopBound());
  }

  auto const per_group = utilities->PerGroup();
  while (true) {
    auto const c = UniformBelow(rng, bounds.size() * per_group);
    // One trial for the bound of the group, and one for the distance of the candidate to it.
    auto const bound = std::min(bounds.data()[c / per_group], most);
    if (!Accept(rng, static_cast<std::uint64_t>(most - bound), eps_num, den)) {
      continue;
    }
    auto const u = utilities->At(c / per_group, c % per_group);
    CHECK(u <= bound && u > -kMaxUtility) << "A utility is above its bound.";
    if (Accept(rng, static_cast<std::uint64_t>(bound - u), eps_num, den)) {
      return c;
    }
  }
}

std::size_t SelectArgmax(common::Span<std::int64_t const> utilities) {
  CHECK(!utilities.empty()) << "There is no candidate to choose from.";
  auto const* u = utilities.data();
  return static_cast<std::size_t>(std::max_element(u, u + utilities.size()) - u);
}

std::size_t SelectArgmax(GroupedUtilities* utilities) {
  GroupsInOrder groups{utilities};
  auto best = std::numeric_limits<std::int64_t>::min();
  auto first = std::numeric_limits<std::size_t>::max();
  while (!groups.IsEmpty() && groups.TopBound() >= best) {
    auto group = groups.Top();
    auto largest = groups.Pop();
    if (largest > best || (largest == best && group < first)) {
      best = largest;
      first = group;
    }
  }
  std::size_t i = 0;
  while (utilities->At(first, i) != best) {
    ++i;
  }
  return first * utilities->PerGroup() + i;
}
}  // namespace xgboost::dp
