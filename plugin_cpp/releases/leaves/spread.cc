#include "plugin_cpp/releases/leaves/spread.h"

#include <algorithm>  // for fill, fill_n, max, min
#include <array>      // for array
#include <cmath>      // for abs, sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t, uint32_t, uint64_t
#include <utility>    // for move
#include <variant>    // for get_if

#include "common/threading_utils.h"        // for ParallelFor, Sched
#include "plugin_cpp/large_pages.h"        // for ResizeInLargePages
#include "plugin_cpp/random/samplers.h"    // for IntegerSqrt128, u128
#include "plugin_cpp/rows/person_bound.h"  // for CutTo
#include "plugin_cpp/wide.h"               // for XGB_DP_WIDE
#include "xgboost/logging.h"               // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::size_t kMost = PersonGroup::kMost;
constexpr std::int32_t kBlocks = 4;  // of each thread

/** @brief The largest integer whose quotient by `n` is at most that of `value`. */
std::int64_t FloorDiv(std::int64_t value, std::int64_t n) {
  return value / n - (value % n < 0 ? 1 : 0);
}

/**
 * @brief What rows add to the leaves that they are in: at the first row of each, 0 at the others.
 *
 * Row j of person l is at j kMost + l.
 */
XGB_DP_WIDE void SumByLeaf(double const* leaves, double const* rows, std::size_t n_rows,
                           double* sums) {
  for (std::size_t j = 0; j < n_rows; ++j) {
    auto const* own = leaves + j * kMost;
    double sum[kMost] = {}, is_first[kMost];
    std::fill_n(is_first, kMost, 1.0);
    // Products, not a choice for each: GCC 12 vectorises that one wrongly (-O3, AVX2).
    for (std::size_t i = 0; i < j; ++i) {
      for (std::size_t l = 0; l < kMost; ++l) {
        is_first[l] *= leaves[i * kMost + l] == own[l] ? 0.0 : 1.0;
      }
    }
    for (std::size_t i = j; i < n_rows; ++i) {
      for (std::size_t l = 0; l < kMost; ++l) {
        sum[l] += (leaves[i * kMost + l] == own[l] ? 1.0 : 0.0) * rows[i * kMost + l];
      }
    }
    for (std::size_t l = 0; l < kMost; ++l) {
      sums[j * kMost + l] = is_first[l] * sum[l];
    }
  }
}

/** @brief The factor of each leaf by the sums of the norms in it and of all of them. */
template <std::size_t kLanes>
inline void FindFactors(double const* norms, double const* totals, double most, std::size_t n,
                        double* factors) {
  for (std::size_t at = 0; at < n * kLanes; at += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      auto root = std::sqrt(totals[l] * norms[at + l]);
      // In an order in which not-a-number leaves the sums as they are; what holds comes later.
      factors[at + l] = most / (most < root ? root : most);
    }
  }
}

/** @brief Sums times their factors, as integers in their place; and the squares of these. */
template <std::size_t kLanes>
inline void Scale(double const* factors, std::size_t n, double* sums, double* squares) {
  for (std::size_t at = 0; at < n * kLanes; at += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      auto value = RoundWithin(sums[at + l] * factors[at + l], -0x1p50, 0x1p50);
      sums[at + l] = value;
      squares[l] += value * value;
    }
  }
}

XGB_DP_WIDE void FindFactorsWide(double const* norms, double const* totals, double most,
                                 std::size_t n, double* factors) {
  FindFactors<kMost>(norms, totals, most, n, factors);
}

XGB_DP_WIDE void ScaleWide(double const* factors, std::size_t n, double* sums, double* squares) {
  Scale<kMost>(factors, n, sums, squares);
}

/** @brief What a group of at most kLanes persons adds to leaves of trees that share a structure. */
template <std::size_t kLanes>
class LeavesOfGroup {
 public:
  LeavesOfGroup(RowBound const& bound, std::size_t n_class, std::size_t n_leaves)
      : is_ball_{bound.IsBall()},
        by_prediction_{bound.mode == RowBound::Mode::kPrediction},
        n_class_{n_class},
        unit_{static_cast<double>(bound.Unit())},
        h_max_{static_cast<double>(bound.MaxHessian())},
        most_{static_cast<double>(bound.MostGradient()) / unit_},
        most_g_{static_cast<std::uint64_t>(bound.MostGradient())},
        most_h_{static_cast<std::uint64_t>(bound.MostHessian())},
        places_(kLanes == 1 ? n_leaves : 0, kNone) {}

  /**
   * @param rows   Of the group.
   * @param given  Of all persons.
   * @param leaf   Of each row.
   * @param change Of the sums of the leaves, class by class for each of them.
   */
  template <typename LeafT>
  void operator()(PersonGroup const& group, std::uint32_t const* rows, RowsOfPersons const& given,
                  std::vector<LeafT> const& leaf, std::vector<LocalSum>* change) {
    this->Read(group, rows, given, leaf);
    if constexpr (kLanes == kMost) {
      n_leaves_ = n_;
      for (std::size_t e = 0; e < this->NumEntries(); ++e) {
        SumByLeaf(leaves_.data(), rows_.data() + e * n_ * kLanes, n_, this->Sums(e));
      }
    } else {
      this->SumByTable();
    }
    this->ScaleSums();
    for (std::size_t l = 0; l < group.persons; ++l) {
      this->Enforce(l);
    }
    // Without what the splits have of the rows, for which this comes.
    auto add = [&](auto at, auto k, auto g, auto h) {
      (*change)[static_cast<std::size_t>(at) * n_class_ + k] +=
          LocalSum{static_cast<std::int64_t>(g), static_cast<std::int64_t>(h)};
    };
    for (std::size_t k = 0; k < n_class_; ++k) {
      auto const *g = given.bounded[k].grad.data() + group.begin,
                 *h = given.bounded[k].hess.data() + group.begin;
      if constexpr (kLanes == kMost) {
        auto const *of_g = this->Sums(2 * k), *of_h = this->Sums(2 * k + 1);
        group.ForEach<kLanes>([&](auto j, auto l, auto i) {
          auto at = j * kLanes + l;
          add(leaves_[at], k, of_g[at] - static_cast<double>(g[i]),
              of_h[at] - static_cast<double>(h[i]));
        });
      } else {
        for (std::size_t j = 0; j < n_; ++j) {
          add(leaf[rows[j]], k, -g[j], -h[j]);
        }
        for (std::size_t i = 0; i < n_leaves_; ++i) {
          add(leaves_[i], k, this->Sums(2 * k)[i], this->Sums(2 * k + 1)[i]);
        }
      }
    }
  }

 private:
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

  /** @brief A gradient and a Hessian of each class, and the norm. */
  [[nodiscard]] std::size_t NumEntries() const { return 2 * n_class_ + 1; }
  /** @brief Of an entry, leaf by leaf. */
  [[nodiscard]] double* Sums(std::size_t entry) { return sums_.data() + entry * n_ * kLanes; }

  template <typename LeafT>
  void Read(PersonGroup const& group, std::uint32_t const* rows, RowsOfPersons const& given,
            std::vector<LeafT> const& leaf) {
    n_ = group.rows;
    auto size = n_ * kLanes;
    leaves_.resize(size);
    rows_.resize(size * this->NumEntries());
    sums_.resize(rows_.size());
    if (group.persons < kLanes) {
      std::fill(leaves_.begin(), leaves_.end(), 0.0);
      std::fill(rows_.begin(), rows_.end(), 0.0);
    }
    group.ForEach<kLanes>([&](auto j, auto l, auto i) {
      leaves_[j * kLanes + l] = static_cast<double>(leaf[rows[i]]);
    });
    for (std::size_t k = 0; k < n_class_; ++k) {
      auto *g = rows_.data() + 2 * k * size, *h = g + size;
      auto const *from_g = given.given[k].grad.data() + group.begin,
                 *from_h = given.given[k].hess.data() + group.begin;
      group.ForEach<kLanes>([&](auto j, auto l, auto i) {
        g[j * kLanes + l] = static_cast<double>(from_g[i]);
        h[j * kLanes + l] = static_cast<double>(from_h[i]);
      });
    }
    auto *g = rows_.data(), *h = g + size, *norms = g + 2 * n_class_ * size;
    totals_.fill(0.0);
    group.ForEach<kLanes>([&](auto j, auto l, auto i) {
      auto at = j * kLanes + l;
      if (!by_prediction_) {
        norms[at] = this->Norm(g[at], h[at]);
      } else {
        norms[at] =
            static_cast<double>(given.norms.empty() ? given.norm : given.norms[group.begin + i]);
      }
      totals_[l] += norms[at];
    });
  }

  [[nodiscard]] double Norm(double g, double h) const {
    g = std::abs(g);
    return is_ball_ ? std::sqrt(g * g + h * h) / unit_ : std::max(g / unit_, h / h_max_);
  }

  /** @brief Sums of the leaves that the rows of one person are in, in the order of their first. */
  void SumByTable() {
    n_leaves_ = 0;
    for (std::size_t j = 0; j < n_; ++j) {
      auto& place = places_[static_cast<std::size_t>(leaves_[j])];
      if (place == kNone) {
        place = static_cast<std::uint32_t>(n_leaves_);
        leaves_[n_leaves_++] = leaves_[j];
        for (std::size_t e = 0; e < this->NumEntries(); ++e) {
          this->Sums(e)[place] = 0.0;
        }
      }
      for (std::size_t e = 0; e < this->NumEntries(); ++e) {
        this->Sums(e)[place] += rows_[e * n_ + j];
      }
    }
    for (std::size_t i = 0; i < n_leaves_; ++i) {
      places_[static_cast<std::size_t>(leaves_[i])] = kNone;
    }
  }

  void ScaleSums() {
    factors_.resize(n_leaves_ * kLanes);
    for (auto& squares : squares_) {
      squares.fill(0.0);
    }
    auto const* norms = this->Sums(2 * n_class_);
    if constexpr (kLanes == kMost) {
      FindFactorsWide(norms, totals_.data(), most_, n_leaves_, factors_.data());
    } else {
      FindFactors<kLanes>(norms, totals_.data(), most_, n_leaves_, factors_.data());
    }
    for (std::size_t e = 0; e < 2 * n_class_; ++e) {
      auto* squares = squares_[e % 2].data();
      if constexpr (kLanes == kMost) {
        ScaleWide(factors_.data(), n_leaves_, this->Sums(e), squares);
      } else {
        Scale<kLanes>(factors_.data(), n_leaves_, this->Sums(e), squares);
      }
    }
  }

  /** @brief Hold the norm of the vector of all sums of a person, whatever they are. */
  void Enforce(std::size_t l) {
    auto g2 = squares_[0][l], h2 = squares_[1][l];
    auto most_g = static_cast<double>(most_g_), most_h = static_cast<double>(most_h_);
    // Squares of some integers are right to 2^-53 of their sum each.
    bool is_surely_within =
        is_ball_ ? g2 + h2 <= most_g * most_g * kSurely
                 : g2 <= most_g * most_g * kSurely && h2 <= most_h * most_h * kSurely;
    if (n_leaves_ * n_class_ > kManyLeaves || !is_surely_within) {
      this->Cut(l);
    }
  }

  void Cut(std::size_t l) {
    u128 g2 = 0, h2 = 0;
    this->ForEachLeaf(l, [&](double* g, double* h) {
      auto of_g = static_cast<std::uint64_t>(std::abs(*g));
      auto of_h = static_cast<std::uint64_t>(*h);
      g2 += static_cast<u128>(of_g) * of_g;
      h2 += static_cast<u128>(of_h) * of_h;
    });
    if (is_ball_) {
      g2 = h2 = g2 + h2;
    }
    auto most_h = is_ball_ ? most_g_ : most_h_;
    if (g2 <= static_cast<u128>(most_g_) * most_g_ && h2 <= static_cast<u128>(most_h) * most_h) {
      return;
    }
    auto size_g = NoLess(g2), size_h = NoLess(h2);
    this->ForEachLeaf(l, [&](double* g, double* h) {
      *g = static_cast<double>(CutTo(static_cast<std::int64_t>(*g), most_g_, size_g));
      *h = static_cast<double>(CutTo(static_cast<std::int64_t>(*h), most_h, size_h));
    });
  }

  /** @brief Calls a function with the sums of each leaf and class of a person. */
  template <typename Each>
  void ForEachLeaf(std::size_t l, Each&& each) {
    for (std::size_t k = 0; k < n_class_; ++k) {
      for (std::size_t at = l; at < n_leaves_ * kLanes; at += kLanes) {
        each(this->Sums(2 * k) + at, this->Sums(2 * k + 1) + at);
      }
    }
  }

  /** @brief The root of a sum of squares, rounded up. */
  [[nodiscard]] static std::uint64_t NoLess(u128 squares) {
    auto root = IntegerSqrt128(squares);
    return root + (static_cast<u128>(root) * root < squares ? 1 : 0);
  }

  static constexpr double kSurely = 1.0 - 1e-9;
  static constexpr std::size_t kManyLeaves = 100000;

  bool is_ball_, by_prediction_;
  std::size_t n_class_;
  double unit_, h_max_, most_;
  std::uint64_t most_g_, most_h_;
  std::size_t n_{0};         // rows of each person
  std::size_t n_leaves_{0};  // of each person, where the first row of one stands for it
  std::vector<double> leaves_, factors_;  // persons side by side
  std::vector<double> rows_, sums_;       // the same of each entry
  std::array<double, kLanes> totals_;     // of norms
  std::array<std::array<double, kLanes>, 2> squares_;
  std::vector<std::uint32_t> places_;  // of leaves among those of one person
};

/**
 * @brief What persons with several rows add to the leaves, beyond what splits have of them.
 *
 * @param position The leaf of each row.
 */
template <typename LeafT>
std::vector<LocalSum> ChangeOfLeaves(Context const* ctx, RowBound const& bound,
                                     Persons const& persons, RowsOfPersons const& given,
                                     std::vector<bst_node_t> const& leaves,
                                     std::vector<bst_node_t> const& position, std::size_t n_class) {
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
    changes[b].resize(leaves.size() * n_class);
    LeavesOfGroup<kMost> many{bound, n_class, leaves.size()};
    LeavesOfGroup<1> one{bound, n_class, leaves.size()};
    for (auto i = b * groups.size() / n_blocks; i < (b + 1) * groups.size() / n_blocks; ++i) {
      auto const* rows = persons.RowsOfSeveral().data() + groups[i].begin;
      if (groups[i].persons > 1) {
        many(groups[i], rows, given, leaf, &changes[b]);
      } else {
        one(groups[i], rows, given, leaf, &changes[b]);
      }
    }
  });
  std::vector<LocalSum> change(leaves.size() * n_class);
  for (auto const& of_block : changes) {
    for (std::size_t at = 0; at < change.size(); ++at) {
      change[at] += of_block[at];
    }
  }
  return change;
}
}  // namespace

void SpreadPersons(Context const* ctx, RowBound const& bound, Persons const& persons,
                   RowsOfPersons const& given, std::vector<ClassGradients> const& gradients,
                   std::vector<bst_node_t> const& leaves, std::vector<bst_node_t> const& position,
                   Release const& release, std::vector<LeafSums>* p_sums) {
  auto& sums = *p_sums;
  auto n_class = gradients.size(), n_leaves = leaves.size();
  CHECK(sums.size() == n_class && position.size() == persons.NumRows());
  auto change_of = n_leaves <= 256 ? ChangeOfLeaves<std::uint8_t> : ChangeOfLeaves<std::uint32_t>;
  auto change = change_of(ctx, bound, persons, given, leaves, position, n_class);

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
