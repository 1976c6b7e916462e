#include "plugin_cpp/rows/person_bound.h"

#include <algorithm>  // for any_of, copy_n, fill, max, min
#include <array>      // for array
#include <cmath>      // for abs, ldexp, sqrt
#include <limits>     // for numeric_limits

#include "common/threading_utils.h"  // for ParallelFor, Sched
#include "plugin_cpp/simd.h"         // for Prefetch, ResizeInLargePages, XGB_DP_SIMD

namespace xgboost::dp {
namespace {
constexpr std::int32_t kBits = 10;           // fractional bits of a norm
constexpr std::int32_t kTries = 4;           // to meet the bound by scaling, with unbiased rounding
constexpr std::size_t kGroups = 128;         // of a block
constexpr std::size_t kAhead = 64;           // rows to prefetch
constexpr std::uint32_t kManyRows = 100000;  // of one person

/**
 * @brief Scale integers by a factor of at most 1, so that none grows.
 *
 * Rounding errors are carried to the next rows, so sums over many rows of a person are accurate
 * even if each row has few steps of the grid.
 *
 * @param width Entries per row. Entry e of row j of person l is at (j width + e) kLanes + l.
 */
template <std::size_t kLanes>
inline void ScaleRows(double const* given, std::size_t n_rows, std::size_t width,
                      double const* scale, double* out) {
  for (std::size_t entry = 0; entry < width; ++entry) {
    double carry[kLanes] = {};
    for (std::size_t at = entry * kLanes; at < n_rows * width * kLanes; at += width * kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        auto value = given[at + l] * scale[l] + carry[l];
        auto most = std::abs(given[at + l]);
        auto rounded = RoundWithin(value, -most, most);  // of at most 2^24
        carry[l] = value - rounded;
        out[at + l] = rounded;
      }
    }
  }
}

/** @brief Upper bounds of the sizes of persons whose rows are in the ball, usually tight. */
template <std::size_t kLanes>
inline void SizeBounds(double const* kept, std::size_t n_rows, std::size_t width, double* sizes) {
  double sums[kLanes] = {};  // a loop over `sizes` itself is not vectorised
  for (std::size_t j = 0; j < n_rows; ++j) {
    double squares[kLanes] = {};
    for (std::size_t entry = 0; entry < width; ++entry) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        squares[l] += kept[l] * kept[l];
      }
      kept += kLanes;
    }
    for (std::size_t l = 0; l < kLanes; ++l) {
      // The size of a row is less than one step of 2^-kBits above its root. The additional half
      // step covers all rounding.
      sums[l] += std::sqrt(squares[l]) * 1024.0 + 1.5;
    }
  }
  std::copy_n(sums, kLanes, sizes);
}

/**
 * @brief Unpack words into entries.
 *
 * @param pairs Words of rows, interleaved by person.
 * @param step  Number of entries from one row of all persons to the next.
 * @param out   First entry of a class.
 */
template <std::size_t kLanes>
inline void Unpack(PackedPair const* pairs, std::size_t n_rows, std::size_t step, double* out) {
  for (std::size_t j = 0; j < n_rows; ++j) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      auto sum = pairs[j * kLanes + l].Sum();  // of at most 2^24 each
      out[j * step + l] = static_cast<double>(static_cast<std::int32_t>(sum.grad));
      out[j * step + kLanes + l] = static_cast<double>(static_cast<std::int32_t>(sum.hess));
    }
  }
}

/** @brief Pack entries into words. @return Change in the sums; exact for up to 2^28 rows. */
template <std::size_t kLanes>
inline LocalSum Pack(double const* kept, double const* given, std::size_t n_rows, std::size_t step,
                     PackedPair* pairs) {
  double g[kLanes] = {}, h[kLanes] = {};
  for (std::size_t j = 0; j < n_rows; ++j) {
    auto const *kept_h = kept + kLanes, *given_h = given + kLanes;
    for (std::size_t l = 0; l < kLanes; ++l) {
      pairs[j * kLanes + l] =
          PackedPair{static_cast<std::int32_t>(kept[l]), static_cast<std::int32_t>(kept_h[l])};
      g[l] += kept[l] - given[l];
      h[l] += kept_h[l] - given_h[l];
    }
    kept += step;
    given += step;
  }
  LocalSum gained;
  for (std::size_t l = 0; l < kLanes; ++l) {
    gained += LocalSum{static_cast<std::int64_t>(g[l]), static_cast<std::int64_t>(h[l])};
  }
  return gained;
}

constexpr std::size_t kMost = PersonGroup::kMaxPersons;

// The same for kMost persons, or one. Templates cannot have clones for vector instructions.

XGB_DP_SIMD void Unpack(bool many, PackedPair const* pairs, std::size_t n_rows, std::size_t step,
                        double* out) {
  many ? Unpack<kMost>(pairs, n_rows, step, out) : Unpack<1>(pairs, n_rows, step, out);
}

XGB_DP_SIMD LocalSum Pack(bool many, double const* kept, double const* given, std::size_t n_rows,
                          std::size_t step, PackedPair* pairs) {
  return many ? Pack<kMost>(kept, given, n_rows, step, pairs)
              : Pack<1>(kept, given, n_rows, step, pairs);
}

XGB_DP_SIMD void ScaleRows(bool many, double const* given, std::size_t n_rows, std::size_t width,
                           double const* scale, double* out) {
  many ? ScaleRows<kMost>(given, n_rows, width, scale, out)
       : ScaleRows<1>(given, n_rows, width, scale, out);
}

XGB_DP_SIMD void SizeBounds(bool many, double const* kept, std::size_t n_rows, std::size_t width,
                            double* sizes) {
  many ? SizeBounds<kMost>(kept, n_rows, width, sizes) : SizeBounds<1>(kept, n_rows, width, sizes);
}

struct PersonLimits {
  bool is_ball, by_prediction, has_outputs;
  std::size_t joint;  // number of classes with a joint norm
  std::uint64_t unit, h_max, output_g, output_h;
  std::uint64_t limit;  // of the size of a person
  double most;          // sum of norms, for C = 1

  PersonLimits(RowBound const& bound, std::size_t n_class)
      : is_ball{bound.IsBall()},
        by_prediction{bound.mode == RowBound::Mode::kPrediction},
        has_outputs{bound.HasOutputBounds()},
        joint{by_prediction ? n_class : 1},
        unit{static_cast<std::uint64_t>(bound.Unit())},
        h_max{static_cast<std::uint64_t>(bound.MaxHessian())},
        output_g{static_cast<std::uint64_t>(bound.OutputGradient())},
        output_h{static_cast<std::uint64_t>(bound.OutputHessian())},
        limit{static_cast<std::uint64_t>(bound.MaxGradientSum()) << kBits},
        most{static_cast<double>(bound.MaxGradientSum()) / static_cast<double>(bound.Unit())} {}
};

/** @brief Bounds at most kLanes persons together, in the classes that share one norm. */
template <std::size_t kLanes>
class GroupBound {
 public:
  explicit GroupBound(PersonLimits const& limits) : limits_{limits}, width_{2 * limits.joint} {}

  /**
   * @param rows   Rows of the group, interleaved.
   * @param norms  Worst-case norms of all rows.
   * @param first  Index of the first of these classes.
   * @param out    Integers of all classes; the bounded values replace those of these classes.
   * @param change Receives the change in the sums of these classes.
   */
  void operator()(PersonGroup const& group, std::uint32_t const* rows, WorstNorms norms,
                  std::size_t first, PersonRows* several, std::vector<ClassGradients>* out,
                  LocalSum* change) {
    group_ = group;
    rows_ = rows;
    given_.resize(group.rows * width_ * kLanes);
    kept_.resize(given_.size());
    words_.resize(group.rows * kLanes);
    if (group.persons < kLanes) {
      std::fill(words_.begin(), words_.end(), PackedPair{});
    }
    for (std::size_t k = 0; k < limits_.joint; ++k) {
      this->Read((*out)[first + k].pairs, k, several ? &(*several)[first + k] : nullptr);
    }
    if (limits_.by_prediction) {
      this->ScaleBy(norms);
    } else {
      this->FindSizes(given_);
      for (std::size_t l = 0; l < kLanes; ++l) {
        scale_[l] = std::min(static_cast<double>(limits_.limit) /
                                 static_cast<double>(std::max(sizes_[l], limits_.limit)),
                             1.0);
      }
    }
    this->Scale();
    this->FindSizes(kept_);
    this->Enforce();
    for (std::size_t k = 0; k < limits_.joint; ++k) {
      this->Write(k, &(*out)[first + k].pairs, change + k);
    }
  }

 private:
  void Read(std::vector<PackedPair> const& pairs, std::size_t k, std::vector<PackedPair>* several) {
    group_.ForEach<kLanes>(
        [&](auto j, auto l, auto i) { words_[j * kLanes + l] = pairs[rows_[i]]; });
    if (several) {
      group_.ForEach<kLanes>(
          [&](auto j, auto l, auto i) { (*several)[group_.begin + i] = words_[j * kLanes + l]; });
    }
    auto* out = given_.data() + 2 * k * kLanes;
    Unpack(kLanes == kMost, words_.data(), group_.rows, width_ * kLanes, out);
  }

  void Write(std::size_t k, std::vector<PackedPair>* pairs, LocalSum* change) {
    for (std::size_t begin = 0; begin < group_.rows; begin += kManyRows) {
      auto n = std::min<std::size_t>(group_.rows - begin, kManyRows);
      auto first = (begin * width_ + 2 * k) * kLanes;
      auto const *kept = kept_.data() + first, *given = given_.data() + first;
      auto* words = words_.data() + begin * kLanes;
      *change += Pack(kLanes == kMost, kept, given, n, width_ * kLanes, words);
    }
    group_.ForEach<kLanes>(
        [&](auto j, auto l, auto i) { (*pairs)[rows_[i]] = words_[j * kLanes + l]; });
  }

  void ScaleBy(WorstNorms norms) {
    std::array<double, kLanes> sums{};
    group_.ForEach<kLanes>([&](auto, auto l, auto i) {
      sums[l] += static_cast<double>(norms.by_row ? norms.by_row[rows_[i]] : norms.same);
    });
    for (std::size_t l = 0; l < kLanes; ++l) {
      scale_[l] = sums[l] > limits_.most ? limits_.most / sums[l] : 1.0;  // also if not a number
    }
  }

  void Scale() {
    ScaleRows(kLanes == kMost, given_.data(), group_.rows, width_, scale_.data(), kept_.data());
  }

  /** @brief Compute the sizes of all persons; 0 if they are known to be within the limit. */
  void FindSizes(std::vector<double> const& entries) {
    std::array<double, kLanes> no_less;
    no_less.fill(std::numeric_limits<double>::infinity());
    if (limits_.is_ball && !limits_.has_outputs && group_.rows < kManyRows) {
      SizeBounds(kLanes == kMost, entries.data(), group_.rows, width_, no_less.data());
    }
    for (std::size_t l = 0; l < kLanes; ++l) {
      bool is_within = no_less[l] <= static_cast<double>(limits_.limit);
      sizes_[l] = is_within ? 0 : this->Size(entries.data() + l);
    }
  }

  /** @brief An entry divided by its maximum, times B, rounded up in units of 2^-kBits. */
  [[nodiscard]] std::uint64_t Share(double entry, std::uint64_t most) const {
    auto scaled = (static_cast<std::uint64_t>(std::abs(entry)) * limits_.unit) << kBits;
    return (scaled + most - 1) / most;
  }

  /** @brief Sum of the norms of a person's rows, rounded up in units of 2^-kBits. */
  [[nodiscard]] std::uint64_t Size(double const* person) const {
    std::uint64_t size = 0;
    for (std::size_t j = 0; j < group_.rows; ++j) {
      auto const* row = person + j * width_ * kLanes;
      if (limits_.is_ball) {
        // A row keeps its own bound: the sum of squares is at most 2^40.
        std::uint64_t squares = 0;
        for (std::size_t entry = 0; entry < width_; ++entry) {
          auto value = static_cast<std::int64_t>(row[entry * kLanes]);
          squares += static_cast<std::uint64_t>(value * value);
        }
        auto scaled = squares << (2 * kBits);
        auto root = IntegerSqrt(scaled);
        auto norm = root + (root * root < scaled ? 1 : 0);
        for (std::size_t entry = 0; limits_.has_outputs && entry < width_; entry += 2) {
          norm = std::max({norm, Share(row[entry * kLanes], limits_.output_g),
                           Share(row[(entry + 1) * kLanes], limits_.output_h)});
        }
        size += norm;
      } else {
        size += std::max(Share(row[0], limits_.unit), Share(row[kLanes], limits_.h_max));
      }
    }
    return size;
  }

  /** @brief Enforce the limit exactly, for any numbers. */
  void Enforce() {
    auto is_over = [&](auto size) { return size > limits_.limit; };
    for (std::int32_t i = 0; i < kTries && std::any_of(sizes_.cbegin(), sizes_.cend(), is_over);
         ++i) {
      double margin = 1.0 - std::ldexp(1.0, 2 * i - 13);  // for the rounding of each try
      for (std::size_t l = 0; l < kLanes; ++l) {
        if (is_over(sizes_[l])) {
          scale_[l] *= static_cast<double>(limits_.limit) / static_cast<double>(sizes_[l]) * margin;
        }
      }
      this->Scale();  // does not change the others
      for (std::size_t l = 0; l < kLanes; ++l) {
        sizes_[l] = is_over(sizes_[l]) ? this->Size(kept_.data() + l) : sizes_[l];
      }
    }
    for (std::size_t l = 0; l < kLanes; ++l) {
      for (auto at = l; is_over(sizes_[l]) && at < kept_.size(); at += kLanes) {
        kept_[at] = static_cast<double>(
            ScaleDown(static_cast<std::int64_t>(kept_[at]), limits_.limit, sizes_[l]));
      }
    }
  }

  PersonLimits const& limits_;
  std::size_t width_;  // entries of a row, see ScaleRows
  PersonGroup group_{};
  std::uint32_t const* rows_{nullptr};
  std::vector<PackedPair> words_;     // of one class
  std::vector<double> given_, kept_;  // entries
  std::array<double, kLanes> scale_;
  std::array<std::uint64_t, kLanes> sizes_;
};
}  // namespace

void BoundPersons(Context const* ctx, RowBound const& bound, Persons const& persons,
                  WorstNorms norms, PersonRows* several, std::vector<ClassGradients>* out) {
  auto n_class = out->size();
  auto const& groups = persons.Groups();
  auto const& rows = persons.GroupedRows();
  PersonLimits limits{bound, n_class};
  if (several) {
    several->resize(n_class);
    for (auto& class_rows : *several) {
      ResizeInLargePages(rows.size(), &class_rows);
    }
  }
  auto n_blocks = (groups.size() + kGroups - 1) / kGroups;
  std::vector<LocalSum> changes(n_blocks * n_class);
  common::ParallelFor(n_blocks, ctx->Threads(), common::Sched::Dyn(), [&](auto b) {
    GroupBound<kMost> many{limits};
    GroupBound<1> one{limits};
    auto const* first = out->front().pairs.data();
    auto far = rows.size() - std::min(rows.size(), kAhead);
    auto end = std::min((b + 1) * kGroups, groups.size());
    for (std::size_t i = b * kGroups; i < end; ++i) {
      auto const& group = groups[i];
      auto const* group_rows = rows.data() + group.begin;
      for (auto at = group.begin; at < std::min(group.begin + group.Size(), far); ++at) {
        Prefetch(first + rows[at + kAhead]);
      }
      for (std::size_t k = 0; k < n_class; k += limits.joint) {
        auto* change = &changes[b * n_class + k];
        if (group.persons > 1) {
          many(group, group_rows, norms, k, several, out, change);
        } else {
          one(group, group_rows, norms, k, several, out, change);
        }
      }
    }
  });
  for (std::size_t k = 0; k < n_class; ++k) {
    for (std::size_t b = 0; b < n_blocks; ++b) {
      (*out)[k].total += changes[b * n_class + k];
    }
  }
}
}  // namespace xgboost::dp
