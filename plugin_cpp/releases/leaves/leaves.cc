#include "plugin_cpp/releases/leaves/leaves.h"

#include <algorithm>  // for fill_n, max, min
#include <cmath>      // for abs, sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint32_t, uint64_t
#include <utility>    // for move
#include <variant>    // for visit, get_if

#include "common/threading_utils.h"                // for ParallelFor, Sched
#include "plugin_cpp/plan/plan.h"                  // for LeafEvent
#include "plugin_cpp/random/samplers.h"            // for IntegerSqrt128, u128
#include "plugin_cpp/releases/leaves/shrinkage.h"  // for RowVariance
#include "plugin_cpp/rows/person_bound.h"          // for CutTo
#include "plugin_cpp/wide.h"                       // for Prefetch, ResizeInLargePages
#include "xgboost/logging.h"                       // for CHECK

namespace xgboost::dp {
namespace {
/**
 * @brief Shift leaves, in which persons count more the further they spread, towards the mean of all
 *        rows, which stands behind the leaves: by what this and earlier trees say of the tilt.
 */
void Centre(TreeTilt* tilt, std::vector<NodeSum>* leaves) {
  auto root = leaves->back();
  leaves->pop_back();
  NodeSum sum;
  for (auto const& leaf : *leaves) {
    sum = sum + leaf;
  }
  double lacks = root.grad / root.hess - sum.grad / sum.hess;
  double noise2 = root.noise2 / (root.hess * root.hess) + sum.noise2 / (sum.hess * sum.hess);
  double shift = tilt->Update(lacks, noise2);
  for (auto& leaf : *leaves) {
    leaf.grad += leaf.hess * shift;
  }
}

class NoisyLeaves : public LeafRelease {
 public:
  explicit NoisyLeaves(LeafParts const& parts) : parts_{parts} {}

  [[nodiscard]] std::vector<NodeSum> operator()(TreeOfRound of, LeafSums const& leaves,
                                                TreeTilt* tilt) const override {
    auto const& plan = parts_.plan;
    auto const* local = std::get_if<std::vector<LocalSum>>(&leaves);
    auto const* global = std::get_if<std::vector<GlobalSum>>(&leaves);
    auto released = local    ? parts_.release->AddNoise(LeafEvent(plan), *local, of.class_idx)
                    : global ? parts_.release->AddNoise(LeafEvent(plan), *global, of.class_idx)
                             : std::get<Released<NoisySum>>(leaves);
    std::vector<NodeSum> out;
    for (auto const& sum : released.values) {
      out.emplace_back(sum, released.variance, plan.row_bound, plan.leaf.min_child_weight);
    }
    if (plan.leaf.spread) {
      Centre(tilt, &out);
    }
    return out;
  }

 private:
  LeafParts parts_;
};

LeafReleases::Add<NoisyLeaves> const kGaussian{LeafNoise::kGaussian}, kLaplace{LeafNoise::kLaplace};
constexpr std::int32_t kBlocks = 4;  // of each thread
constexpr std::size_t kAhead = 64;   // rows, whose leaves lie anywhere

/** @brief The largest integer whose quotient by `n` is at most that of `value`. */
std::int64_t FloorDiv(std::int64_t value, std::int64_t n) {
  return value / n - (value % n < 0 ? 1 : 0);
}

/** @brief What each person adds to leaves of trees that share a structure. */
class LeavesOfPerson {
 public:
  LeavesOfPerson(Plan const& plan, std::size_t n_leaves)
      : width_{2 * static_cast<std::size_t>(plan.num_class)},
        most_g_{static_cast<std::uint64_t>(plan.row_bound.MostGradient())},
        most_h_{static_cast<std::uint64_t>(plan.row_bound.MostLeafHessian())},
        place_(n_leaves, kNone) {
    auto const& bound = plan.row_bound;
    auto unit = static_cast<double>(bound.Unit());
    most_ = static_cast<double>(most_g_) / unit;
    // A bounded gradient has at most twice the variance that leaves expect. Where that is not
    // known, a row at the largest Hessian has the largest gradient.
    auto variance = RowVariance(plan);
    of_hessian_ = variance > 0
                      ? 2.0 * variance / (std::sqrt(bound.hessian_weight) * bound.gradient_bound)
                      : most_ * unit / static_cast<double>(most_h_);
    of_hessian_ /= unit;
  }

  /**
   * @param group  Of persons, of which this is number `l`.
   * @param rows   Of the group.
   * @param given  Of all persons.
   * @param leaf   Of each row.
   * @param change Of the sums of the leaves, class by class for each of them.
   */
  template <typename LeafT>
  void operator()(PersonGroup const& group, std::size_t l, std::uint32_t const* rows,
                  RowsOfPersons const& given, std::vector<LeafT> const& leaf,
                  std::vector<LocalSum>* change) {
    auto n_class = width_ / 2;
    auto most_leaves = std::min<std::size_t>(group.rows, place_.size());
    if (leaves_.size() < most_leaves) {
      leaves_.resize(most_leaves);
      sums_.resize(most_leaves * width_);
    }
    double hessian = 0;  // integers, so that no order matters
    for (std::size_t j = 0; j < group.rows; ++j) {
      auto at = group.At(j, l);
      auto in = leaf[rows[at - group.begin]];
      auto* sums = this->SumsOf(in);
      for (std::size_t k = 0; k < n_class; ++k) {
        auto h = static_cast<double>(given.given[k].hess[at]);
        sums[2 * k] += static_cast<double>(given.given[k].grad[at]);
        sums[2 * k + 1] += h;
        hessian += h;
        // Without what the splits have of the rows, for which this comes.
        (*change)[in * n_class + k] +=
            LocalSum{-static_cast<std::int64_t>(given.bounded[k].grad[at]),
                     -static_cast<std::int64_t>(given.bounded[k].hess[at])};
      }
    }
    double factor = most_ / std::max(most_, std::sqrt(of_hessian_ * hessian));
    for (std::size_t i = 0; i < n_leaves_ * width_; ++i) {
      sums_[i] = RoundWithin(sums_[i] * factor, -0x1p50, 0x1p50);
    }
    this->Cut(0, most_g_);
    this->Cut(1, most_h_);
    auto const* sums = sums_.data();
    for (std::size_t i = 0; i < n_leaves_; ++i) {
      auto* out = change->data() + leaves_[i] * n_class;
      for (std::size_t k = 0; k < n_class; ++k, sums += 2) {
        out[k] += LocalSum{static_cast<std::int64_t>(sums[0]), static_cast<std::int64_t>(sums[1])};
      }
      place_[leaves_[i]] = kNone;
    }
    n_leaves_ = 0;
  }

 private:
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

  [[nodiscard]] double* SumsOf(std::size_t leaf) {
    auto& place = place_[leaf];
    if (place == kNone) {
      place = static_cast<std::uint32_t>(n_leaves_++);
      leaves_[place] = leaf;
      std::fill_n(sums_.data() + place * width_, width_, 0.0);
    }
    return sums_.data() + place * width_;
  }

  /** @brief Hold the norm of the gradients (`first` 0) or Hessians (1), whatever they are. */
  void Cut(std::size_t first, std::uint64_t most) {
    u128 squares = 0;
    for (auto i = first; i < n_leaves_ * width_; i += 2) {
      auto value = static_cast<std::uint64_t>(std::abs(sums_[i]));
      squares += static_cast<u128>(value) * value;
    }
    if (squares <= static_cast<u128>(most) * most) {
      return;
    }
    auto size = IntegerSqrt128(squares);
    size += static_cast<u128>(size) * size < squares ? 1 : 0;
    for (auto i = first; i < n_leaves_ * width_; i += 2) {
      sums_[i] = static_cast<double>(CutTo(static_cast<std::int64_t>(sums_[i]), most, size));
    }
  }

  std::size_t width_;  // entries of a leaf
  std::uint64_t most_g_, most_h_;
  double most_;                       // of gradients, in rows
  double of_hessian_;                 // variance of gradients, where C = 1, of a step of Hessian
  std::vector<std::uint32_t> place_;  // of leaves among those of the person
  std::size_t n_leaves_{0};           // of the person
  std::vector<std::size_t> leaves_;   // of which these come first
  std::vector<double> sums_;          // leaf by leaf
};

/**
 * @brief What persons with several rows add to the leaves, beyond what splits have of them.
 *
 * @param position The leaf of each row.
 */
template <typename LeafT>
std::vector<LocalSum> ChangeOfLeaves(Context const* ctx, Plan const& plan, Persons const& persons,
                                     RowsOfPersons const& given,
                                     std::vector<bst_node_t> const& leaves,
                                     std::vector<bst_node_t> const& position) {
  std::vector<LeafT> index(static_cast<std::size_t>(leaves.back()) + 1);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    index[leaves[i]] = static_cast<LeafT>(i);
  }
  // Read in no order: where it is small, it is in a near cache.
  std::vector<LeafT> leaf;
  ResizeInLargePages(position.size(), &leaf);
  common::ParallelFor(position.size(), ctx->Threads(),
                      [&](auto i) { leaf[i] = index[position[i]]; });

  auto const& groups = persons.Groups();
  auto n_blocks = std::min(static_cast<std::size_t>(ctx->Threads() * kBlocks), groups.size());
  std::vector<std::vector<LocalSum>> changes(n_blocks);
  common::ParallelFor(n_blocks, ctx->Threads(), common::Sched::Dyn(), [&](auto b) {
    changes[b].resize(leaves.size() * plan.num_class);
    LeavesOfPerson add{plan, leaves.size()};
    auto const& all = persons.RowsOfSeveral();
    auto far = all.size() - std::min(all.size(), kAhead);
    for (auto i = b * groups.size() / n_blocks; i < (b + 1) * groups.size() / n_blocks; ++i) {
      auto const* rows = all.data() + groups[i].begin;
      for (auto at = groups[i].begin; at < std::min(groups[i].begin + groups[i].Size(), far);
           ++at) {
        Prefetch(leaf.data() + all[at + kAhead]);
      }
      for (std::size_t l = 0; l < groups[i].persons; ++l) {
        add(groups[i], l, rows, given, leaf, &changes[b]);
      }
    }
  });
  std::vector<LocalSum> change(leaves.size() * plan.num_class);
  for (auto const& of_block : changes) {
    for (std::size_t at = 0; at < change.size(); ++at) {
      change[at] += of_block[at];
    }
  }
  return change;
}
}  // namespace

void SpreadPersons(Context const* ctx, Plan const& plan, Persons const& persons,
                   RowsOfPersons const& given, std::vector<ClassGradients> const& gradients,
                   std::vector<bst_node_t> const& leaves, std::vector<bst_node_t> const& position,
                   Release const& release, std::vector<LeafSums>* p_sums) {
  auto& sums = *p_sums;
  auto n_class = gradients.size(), n_leaves = leaves.size();
  CHECK(sums.size() == n_class && position.size() == persons.NumRows());
  auto change_of = n_leaves <= 256 ? ChangeOfLeaves<std::uint8_t> : ChangeOfLeaves<std::uint32_t>;
  auto change = change_of(ctx, plan, persons, given, leaves, position);

  constexpr auto kThird = std::int64_t{3};
  auto each = n_leaves + 1;  // the last: all rows
  std::vector<LocalSum> added;
  for (std::size_t k = 0; k < n_class; ++k) {
    auto const* local = std::get_if<std::vector<LocalSum>>(&sums[k]);
    for (std::size_t i = 0; i < n_leaves; ++i) {
      added.push_back(change[i * n_class + k]);
      if (local) {
        added.back() += (*local)[i];
      }
    }
    added.push_back(gradients[k].total);
  }
  // Of all workers, so that the quotient does not depend on how rows lie on them.
  auto all = release.SumOverWorkers(std::move(added));
  for (std::size_t k = 0; k < n_class; ++k) {
    std::vector<GlobalSum> of_class(all.cbegin() + k * each, all.cbegin() + (k + 1) * each);
    if (auto const* exact = std::get_if<std::vector<GlobalSum>>(&sums[k])) {
      for (std::size_t i = 0; i < n_leaves; ++i) {
        of_class[i] += (*exact)[i];
      }
    }
    auto& root = of_class.back();
    root.grad = FloorDiv(root.grad, kThird);
    root.hess = FloorDiv(root.hess, kThird);
    sums[k] = std::move(of_class);
  }
}
}  // namespace xgboost::dp
