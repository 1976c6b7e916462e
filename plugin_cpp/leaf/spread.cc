#include "plugin_cpp/leaf/spread.h"

#include <algorithm>  // for max, min
#include <cmath>      // for nearbyint, sqrt
#include <cstddef>    // for size_t
#include <cstdlib>    // for abs
#include <utility>    // for move
#include <variant>    // for get_if

#include "common/threading_utils.h"        // for ParallelFor, Sched
#include "plugin_cpp/plan/sensitivity.h"   // for kRootUnit
#include "plugin_cpp/random/samplers.h"    // for IntegerSqrt128, u128
#include "plugin_cpp/rows/person_bound.h"  // for CutTo
#include "xgboost/logging.h"               // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::size_t kPersons = 1024;  // of a block

/** @brief The largest integer whose quotient by `n` is at most that of `value`. */
std::int64_t FloorDiv(std::int64_t value, std::int64_t n) {
  return value / n - (value % n < 0 ? 1 : 0);
}

/** @brief What one person adds to the leaves of the trees that share a structure. */
class PersonLeaves {
 public:
  PersonLeaves(RowBound const& bound, std::size_t n_class, std::size_t n_leaves)
      : is_ball_{bound.IsBall()},
        by_prediction_{bound.mode == RowBound::Mode::kPrediction},
        n_class_{n_class},
        unit_{static_cast<double>(bound.Unit())},
        h_max_{static_cast<double>(bound.MaxHessian())},
        most_{static_cast<double>(bound.MostGradient()) / unit_},
        most_g_{static_cast<std::uint64_t>(bound.MostGradient())},
        most_h_{static_cast<std::uint64_t>(bound.MostHessian())},
        norms_(n_leaves, kUntouched),
        sums_(n_leaves * n_class),
        bounded_(n_leaves * n_class) {}

  /**
   * @param index  Of the leaf that is a node.
   * @param change Of the sums of the leaves, class by class for each leaf.
   */
  void Add(common::Span<std::uint32_t const> rows, std::size_t begin, RowsOfPersons const& given,
           std::vector<std::uint32_t> const& index, std::vector<bst_node_t> const& position,
           std::vector<LocalSum>* change) {
    touched_.clear();
    double total = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto leaf = index[position[rows[i]]];
      if (norms_[leaf] < 0) {
        norms_[leaf] = 0;
        touched_.push_back(leaf);
      }
      for (std::size_t k = 0; k < n_class_; ++k) {
        sums_[leaf * n_class_ + k] += given.pairs[k][begin + i].Sum();
        bounded_[leaf * n_class_ + k] += given.bounded[k][begin + i].Sum();
      }
      double norm = by_prediction_ ? static_cast<double>(given.norms[begin + i])
                                   : this->Norm(given.pairs[0][begin + i].Sum());
      norms_[leaf] += norm;
      total += norm;
    }
    for (auto leaf : touched_) {
      // In an order in which not-a-number leaves the sums as they are; what holds is below.
      double factor = most_ / std::max(most_, std::sqrt(total * norms_[leaf]));
      for (auto at = leaf * n_class_; at < (leaf + 1) * n_class_; ++at) {
        auto& sum = sums_[at];
        sum.grad =
            static_cast<std::int64_t>(std::nearbyint(static_cast<double>(sum.grad) * factor));
        sum.hess =
            static_cast<std::int64_t>(std::nearbyint(static_cast<double>(sum.hess) * factor));
      }
    }
    this->Enforce();
    for (auto leaf : touched_) {
      for (auto at = leaf * n_class_; at < (leaf + 1) * n_class_; ++at) {
        (*change)[at] += sums_[at] - bounded_[at];
        sums_[at] = bounded_[at] = LocalSum{};
      }
      norms_[leaf] = kUntouched;
    }
  }

 private:
  static constexpr double kUntouched = -1;

  [[nodiscard]] double Norm(LocalSum const& row) const {
    auto g = static_cast<double>(std::abs(row.grad)), h = static_cast<double>(row.hess);
    return is_ball_ ? std::sqrt(g * g + h * h) / unit_ : std::max(g / unit_, h / h_max_);
  }

  /** @brief Hold the norm of the vector of all sums, whatever they are. */
  void Enforce() {
    u128 g2 = 0, h2 = 0;
    for (auto leaf : touched_) {
      for (auto at = leaf * n_class_; at < (leaf + 1) * n_class_; ++at) {
        auto g = static_cast<std::uint64_t>(std::abs(sums_[at].grad));
        auto h = static_cast<std::uint64_t>(sums_[at].hess);
        g2 += static_cast<u128>(g) * g;
        h2 += static_cast<u128>(h) * h;
      }
    }
    if (is_ball_) {
      g2 = h2 = g2 + h2;
    }
    auto most_h = is_ball_ ? most_g_ : most_h_;
    if (g2 <= static_cast<u128>(most_g_) * most_g_ && h2 <= static_cast<u128>(most_h) * most_h) {
      return;
    }
    auto size_g = NoLess(g2), size_h = NoLess(h2);
    for (auto leaf : touched_) {
      for (auto at = leaf * n_class_; at < (leaf + 1) * n_class_; ++at) {
        sums_[at].grad = CutTo(sums_[at].grad, most_g_, size_g);
        sums_[at].hess = CutTo(sums_[at].hess, most_h, size_h);
      }
    }
  }
  /** @brief The root of a sum of squares, rounded up. */
  [[nodiscard]] static std::uint64_t NoLess(u128 squares) {
    auto root = IntegerSqrt128(squares);
    return root + (static_cast<u128>(root) * root < squares ? 1 : 0);
  }

  bool is_ball_, by_prediction_;
  std::size_t n_class_;
  double unit_, h_max_, most_;
  std::uint64_t most_g_, most_h_;
  std::vector<double> norms_;           // of the rows in each leaf
  std::vector<LocalSum> sums_;          // of each leaf and class
  std::vector<LocalSum> bounded_;       // the same as the splits have them
  std::vector<std::uint32_t> touched_;  // leaves
};
}  // namespace

void SpreadPersons(Context const* ctx, RowBound const& bound, Persons const& persons,
                   RowsOfPersons const& given, std::vector<ClassGradients> const& gradients,
                   std::vector<bst_node_t> const& leaves, std::vector<bst_node_t> const& position,
                   Release const& release, std::vector<LeafSums>* p_sums) {
  auto& sums = *p_sums;
  auto n_class = gradients.size(), n_leaves = leaves.size();
  CHECK(sums.size() == n_class && position.size() == persons.NumRows());
  std::vector<std::uint32_t> index(leaves.back() + 1);
  for (std::size_t i = 0; i < n_leaves; ++i) {
    index[leaves[i]] = static_cast<std::uint32_t>(i);
  }

  auto n_blocks = (persons.NumSeveral() + kPersons - 1) / kPersons;
  auto width = n_class * n_leaves;
  std::vector<std::vector<LocalSum>> changes(n_blocks);
  common::ParallelFor(n_blocks, ctx->Threads(), common::Sched::Dyn(), [&](auto b) {
    PersonLeaves person{bound, n_class, n_leaves};
    changes[b].resize(width);
    auto end = std::min((b + 1) * kPersons, persons.NumSeveral());
    for (std::size_t i = b * kPersons; i < end; ++i) {
      person.Add(persons.Several(i), persons.BeginOf(i), given, index, position, &changes[b]);
    }
  });
  std::vector<LocalSum> change(width);
  for (auto const& of_block : changes) {
    for (std::size_t at = 0; at < width; ++at) {
      change[at] += of_block[at];
    }
  }

  constexpr auto kThird = static_cast<std::int64_t>(kRootUnit);
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
