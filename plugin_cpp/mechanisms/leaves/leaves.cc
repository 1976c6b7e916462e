#include "plugin_cpp/mechanisms/leaves/leaves.h"

#include <algorithm>    // for copy_n, max, min
#include <cmath>        // for abs, sqrt
#include <cstddef>      // for size_t
#include <cstdint>      // for int32_t, int64_t, uint8_t, uint32_t, uint64_t
#include <type_traits>  // for decay_t
#include <utility>      // for exchange, move
#include <variant>      // for get, get_if

#include "common/threading_utils.h"        // for ParallelFor, Sched
#include "plugin_cpp/random/samplers.h"    // for IntegerSqrt128, u128
#include "plugin_cpp/rows/person_bound.h"  // for ScaleDown
#include "plugin_cpp/simd.h"               // for Prefetch, ResizeInLargePages, XGB_DP_SIMD
#include "xgboost/logging.h"               // for CHECK

namespace xgboost::dp {
namespace {
/**
 * @brief Shift the leaves so that they agree with the mean of all rows, which is the last entry,
 *        and remove that entry. The shift combines the measured tilt of this tree and of earlier
 *        ones.
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

constexpr std::int32_t kBlocks = 4;  // per thread
constexpr std::size_t kAhead = 64;   // rows to prefetch

std::int64_t FloorDiv(std::int64_t value, std::int64_t n) {
  return value / n - (value % n < 0 ? 1 : 0);
}

/** @brief A group of persons with few rows. Row j of person l is at index j kMost + l. */
struct ShortPersons {
  static constexpr std::size_t kMost = PersonGroup::kMaxPersons,
                               kRows = kMost * PersonGroup::kMaxRows;

  // The first row of a leaf has its sums, and the others have 0: at most 2^28.
  std::int32_t leaf[kRows], grad[kRows], hess[kRows];
  std::int64_t squares_g[kMost], squares_h[kMost];  // sums of squares of a person
};

/** @brief Sum the rows of each person in each leaf, and scale the sums; see PersonLeaves. */
XGB_DP_SIMD void AddUp(std::size_t n_rows, double most, double variance_per_hessian,
                       ShortPersons* p) {
  constexpr auto kMost = ShortPersons::kMost;
  std::int32_t hessian[kMost] = {};
  double factor[kMost];
  for (std::size_t j = 0; j < n_rows; ++j) {
    std::int32_t leaf[kMost], grad[kMost] = {}, hess[kMost] = {};
    std::copy_n(p->leaf + j * kMost, kMost, leaf);
    for (auto at = j * kMost; at < n_rows * kMost; at += kMost) {
      for (std::size_t l = 0; l < kMost; ++l) {
        auto mask = -static_cast<std::int32_t>(p->leaf[at + l] == leaf[l]);
        auto g = p->grad[at + l] & mask, h = p->hess[at + l] & mask;
        grad[l] += g;
        hess[l] += h;
        p->grad[at + l] -= g;
        p->hess[at + l] -= h;
      }
    }
    for (std::size_t l = 0; l < kMost; ++l) {
      p->grad[j * kMost + l] = grad[l];
      p->hess[j * kMost + l] = hess[l];
      hessian[l] += hess[l];
    }
  }
  for (std::size_t l = 0; l < kMost; ++l) {
    auto root = std::sqrt(variance_per_hessian * static_cast<double>(hessian[l]));
    factor[l] = most / (root > most ? root : most);
    p->squares_g[l] = p->squares_h[l] = 0;
  }
  for (std::size_t at = 0; at < n_rows * kMost; at += kMost) {
    auto *grad = p->grad + at, *hess = p->hess + at;
    for (std::size_t l = 0; l < kMost; ++l) {
      auto g = RoundWithin(static_cast<double>(grad[l]) * factor[l], -0x1p28, 0x1p28);
      auto h = RoundWithin(static_cast<double>(hess[l]) * factor[l], -0x1p28, 0x1p28);
      grad[l] = static_cast<std::int32_t>(g);
      hess[l] = static_cast<std::int32_t>(h);
      p->squares_g[l] += static_cast<std::int64_t>(grad[l]) * grad[l];
      p->squares_h[l] += static_cast<std::int64_t>(hess[l]) * hess[l];
    }
  }
}

/** @brief Contributions of persons to the leaves of trees with the same structure. */
class PersonLeaves {
 public:
  PersonLeaves(Plan const& plan, std::size_t n_leaves)
      : most_g_{static_cast<std::uint64_t>(plan.row_bound.MaxGradientSum())},
        most_h_{static_cast<std::uint64_t>(plan.row_bound.MaxLeafHessian())},
        sums_(n_leaves * plan.num_class) {
    auto const& bound = plan.row_bound;
    auto unit = static_cast<double>(bound.Unit());
    most_ = static_cast<double>(most_g_) / unit;
    // A bounded gradient has at most twice the variance that leaves expect. If it is unknown,
    // assume that a row with the largest Hessian has the largest gradient.
    auto variance = RowVariance(plan);
    variance_per_hessian_ =
        variance > 0 ? 2.0 * variance / (std::sqrt(bound.hessian_weight) * bound.gradient_bound)
                     : most_ * unit / static_cast<double>(most_h_);
    variance_per_hessian_ /= unit;
  }

  /**
   * @param rows  Rows of the group.
   * @param given Row-bounded integers of all persons with several rows.
   * @param leaf  Leaf of each row.
   * @param out   Sums of the leaves; for each leaf, the sums of all classes.
   */
  template <typename LeafT>
  void operator()(PersonGroup const& group, std::uint32_t const* rows, PersonRows const& given,
                  std::vector<LeafT> const& leaf, std::vector<LocalSum>* out) {
    if (group.persons == 1 || given.size() > 1) {
      for (std::size_t l = 0; l < group.persons; ++l) {
        this->AddOne(group, l, rows, given, leaf, out);
      }
      return;
    }
    constexpr auto kMost = ShortPersons::kMost;
    if (group.persons < kMost) {
      short_ = {};
    }
    group.ForEach<kMost>([&](auto j, auto l, auto i) {
      auto at = j * kMost + l;
      auto pair = given[0][group.begin + i].Sum();
      short_.leaf[at] = leaf[rows[i]];
      short_.grad[at] = static_cast<std::int32_t>(pair.grad);
      short_.hess[at] = static_cast<std::int32_t>(pair.hess);
    });
    AddUp(group.rows, most_, variance_per_hessian_, &short_);
    for (std::size_t l = 0; l < kMost; ++l) {
      Cut(short_.squares_g[l], most_g_, group.rows,
          [&](auto j) { return &short_.grad[j * kMost + l]; });
      Cut(short_.squares_h[l], most_h_, group.rows,
          [&](auto j) { return &short_.hess[j * kMost + l]; });
    }
    for (std::size_t at = 0; at < group.rows * kMost; ++at) {
      (*out)[short_.leaf[at]] += LocalSum{short_.grad[at], short_.hess[at]};
    }
  }

 private:
  /** @brief Add the bounded sums of person number `l` of a group. */
  template <typename LeafT>
  void AddOne(PersonGroup const& group, std::size_t l, std::uint32_t const* rows,
              PersonRows const& given, std::vector<LeafT> const& leaf, std::vector<LocalSum>* out) {
    auto n_class = given.size(), n_leaves = sums_.size() / n_class;
    // The leaf of each row, or all leaves. A repeated leaf has no sums left.
    bool is_short = group.rows <= n_leaves;
    auto n_listed = is_short ? group.rows : n_leaves;
    first_.resize(n_listed);
    std::int64_t hessian = 0;
    for (std::size_t j = 0; j < group.rows; ++j) {
      auto at = group.At(j, l);
      auto first = leaf[rows[at - group.begin]] * n_class;
      for (std::size_t k = 0; k < n_class; ++k) {
        auto pair = given[k][at].Sum();
        sums_[first + k] += pair;
        hessian += pair.hess;
      }
      if (is_short) {
        first_[j] = first;
      }
    }
    for (std::size_t i = 0; i < n_leaves && !is_short; ++i) {
      first_[i] = i * n_class;
    }
    double factor =
        most_ / std::max(most_, std::sqrt(variance_per_hessian_ * static_cast<double>(hessian)));
    auto scaled = [&](std::int64_t sum) {
      return static_cast<std::int64_t>(
          RoundWithin(static_cast<double>(sum) * factor, -0x1p50, 0x1p50));
    };
    sums_of_leaves_.resize(n_listed * n_class);
    u128 squares_g = 0, squares_h = 0;
    auto* leaf_sum = sums_of_leaves_.data();
    for (auto first : first_) {
      for (std::size_t k = 0; k < n_class; ++k, ++leaf_sum) {
        auto sum = std::exchange(sums_[first + k], {});
        *leaf_sum = LocalSum{scaled(sum.grad), scaled(sum.hess)};
        squares_g += Square(leaf_sum->grad);
        squares_h += Square(leaf_sum->hess);
      }
    }
    Cut(squares_g, most_g_, sums_of_leaves_.size(),
        [this](auto i) { return &sums_of_leaves_[i].grad; });
    Cut(squares_h, most_h_, sums_of_leaves_.size(),
        [this](auto i) { return &sums_of_leaves_[i].hess; });
    leaf_sum = sums_of_leaves_.data();
    for (auto first : first_) {
      for (std::size_t k = 0; k < n_class; ++k, ++leaf_sum) {
        (*out)[first + k] += *leaf_sum;
      }
    }
  }

  static u128 Square(std::int64_t value) {
    auto size = static_cast<std::uint64_t>(std::abs(value));
    return static_cast<u128>(size) * size;
  }

  /** @brief Enforce the bound on the norm of gradients or Hessians, for any numbers. */
  template <typename Entry>
  static void Cut(u128 squares, std::uint64_t most, std::size_t n, Entry&& entry) {
    if (squares <= static_cast<u128>(most) * most) {
      return;
    }
    auto size = IntegerSqrt128(squares);
    size += static_cast<u128>(size) * size < squares ? 1 : 0;
    for (std::size_t i = 0; i < n; ++i) {
      *entry(i) = static_cast<std::decay_t<decltype(*entry(i))>>(ScaleDown(*entry(i), most, size));
    }
  }

  std::uint64_t most_g_, most_h_;
  double most_;                           // of gradients, in rows
  double variance_per_hessian_;           // variance of gradients for C = 1, per step of Hessian
  std::vector<LocalSum> sums_;            // of all leaves; 0 between persons
  std::vector<std::size_t> first_;        // index in sums_ of the leaves of a person
  std::vector<LocalSum> sums_of_leaves_;  // contributions of the person
  ShortPersons short_;
};

/**
 * @brief Sums of the local rows in each leaf, class by class.
 */
template <typename LeafT>
std::vector<LocalSum> SumLeaves(Context const* ctx, Plan const& plan, Persons const& persons,
                                PersonRows const& given,
                                std::vector<ClassGradients> const& gradients,
                                std::vector<bst_node_t> const& leaves,
                                std::vector<bst_node_t> const& position) {
  std::vector<LeafT> index(static_cast<std::size_t>(leaves.back()) + 1);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    index[leaves[i]] = static_cast<LeafT>(i);
  }
  // Small, because random reads need the cache.
  std::vector<LeafT> leaf;
  ResizeInLargePages(position.size(), &leaf);
  common::ParallelFor(position.size(), ctx->Threads(),
                      [&](auto i) { leaf[i] = index[position[i]]; });

  auto const& groups = persons.Groups();
  auto const& singles = persons.SingleRows();
  auto n_class = gradients.size();
  auto n_blocks = static_cast<std::size_t>(ctx->Threads() * kBlocks);
  std::vector<std::vector<LocalSum>> sums(n_blocks);
  common::ParallelFor(n_blocks, ctx->Threads(), common::Sched::Dyn(), [&](auto b) {
    sums[b].resize(leaves.size() * n_class);
    for (auto i = b * singles.size() / n_blocks; i < (b + 1) * singles.size() / n_blocks; ++i) {
      for (std::size_t k = 0; k < n_class; ++k) {
        sums[b][leaf[singles[i]] * n_class + k] += gradients[k].pairs[singles[i]].Sum();
      }
    }
    PersonLeaves add{plan, leaves.size()};
    auto const& all = persons.GroupedRows();
    auto far = all.size() - std::min(all.size(), kAhead);
    for (auto i = b * groups.size() / n_blocks; i < (b + 1) * groups.size() / n_blocks; ++i) {
      auto const* rows = all.data() + groups[i].begin;
      for (auto at = groups[i].begin; at < std::min(groups[i].begin + groups[i].Size(), far);
           ++at) {
        Prefetch(leaf.data() + all[at + kAhead]);
      }
      add(groups[i], rows, given, leaf, &sums[b]);
    }
  });
  for (std::size_t b = 1; b < n_blocks; ++b) {
    for (std::size_t at = 0; at < sums[0].size(); ++at) {
      sums[0][at] += sums[b][at];
    }
  }
  return std::move(sums[0]);
}
}  // namespace

std::vector<NodeSum> ReleaseLeaves(Plan const& plan, TreeIndex idx, LeafSums const& leaves,
                                   TreeTilt* tilt, Release* release) {
  if (plan.leaf.noise == LeafNoise::kOutput) {
    return ReleaseLeafValues(plan, idx, leaves, release);
  }
  auto const* local = std::get_if<std::vector<LocalSum>>(&leaves);
  auto const* global = std::get_if<std::vector<GlobalSum>>(&leaves);
  auto released = local    ? release->AddNoise(LeafEvent(plan), *local, idx.class_idx)
                  : global ? release->AddNoise(LeafEvent(plan), *global, idx.class_idx)
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

void SpreadPersons(Context const* ctx, Plan const& plan, Persons const& persons,
                   PersonRows const& given, std::vector<ClassGradients> const& gradients,
                   std::vector<bst_node_t> const& leaves, std::vector<bst_node_t> const& position,
                   Release const& release, std::vector<LeafSums>* p_sums) {
  auto& sums = *p_sums;
  auto n_class = gradients.size(), n_leaves = leaves.size();
  CHECK(sums.size() == n_class && position.size() == persons.NumRows());
  auto sum_leaves = n_leaves <= 256 ? SumLeaves<std::uint8_t> : SumLeaves<std::uint32_t>;
  auto leaf_sums = sum_leaves(ctx, plan, persons, given, gradients, leaves, position);

  constexpr auto kThird = std::int64_t{3};
  auto each = n_leaves + 1;  // the last: all rows
  std::vector<LocalSum> added;
  for (std::size_t k = 0; k < n_class; ++k) {
    for (std::size_t i = 0; i < n_leaves; ++i) {
      added.push_back(leaf_sums[i * n_class + k]);
    }
    added.push_back(gradients[k].total);
  }
  // Over all workers, so that the quotient does not depend on how rows are distributed.
  auto all = release.SumOverWorkers(std::move(added));
  for (std::size_t k = 0; k < n_class; ++k) {
    std::vector<GlobalSum> class_sums(all.cbegin() + k * each, all.cbegin() + (k + 1) * each);
    auto& root = class_sums.back();
    root.grad = FloorDiv(root.grad, kThird);
    root.hess = FloorDiv(root.hess, kThird);
    sums[k] = std::move(class_sums);
  }
}
}  // namespace xgboost::dp
