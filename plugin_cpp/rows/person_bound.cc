#include "plugin_cpp/rows/person_bound.h"

#include <algorithm>  // for max, min
#include <cmath>      // for ldexp, sqrt
#include <cstdlib>    // for abs

#include "common/threading_utils.h"      // for ParallelFor, Sched
#include "plugin_cpp/random/samplers.h"  // for IntegerSqrt

namespace xgboost::dp {
namespace {
constexpr std::int32_t kBits = 10;      // fractional bits of a norm
constexpr std::int32_t kTries = 4;      // to meet the bound with numbers that are rounded evenly
constexpr std::size_t kPersons = 1024;  // of a block

/**
 * @brief Integers times a factor below 1, none larger than it was.
 *
 * What rounding takes from a row the next ones get, so that sums over many rows of a person are
 * right although each of them is a few steps of the grid only.
 */
void Spread(std::vector<std::int64_t> const& given, std::size_t width, double scale,
            std::vector<std::int64_t>* out) {
  for (std::size_t entry = 0; entry < width; ++entry) {
    double carry = 0;
    for (std::size_t at = entry; at < given.size(); at += width) {
      double value = static_cast<double>(given[at]) * scale + carry;
      auto most = static_cast<double>(std::abs(given[at]));
      double rounded = RoundWithin(value, -most, most);  // of at most 2^24
      carry = value - rounded;
      (*out)[at] = static_cast<std::int64_t>(rounded);
    }
  }
}
}  // namespace

PersonBound::PersonBound(RowBound const& bound, std::size_t n_class)
    : is_ball_{bound.IsBall()},
      by_prediction_{bound.mode == RowBound::Mode::kPrediction},
      joint_{by_prediction_ ? n_class : 1},
      unit_{static_cast<std::uint64_t>(bound.Unit())},
      h_max_{static_cast<std::uint64_t>(bound.MaxHessian())},
      limit_{static_cast<std::uint64_t>(bound.MostGradient()) << kBits},
      most_{static_cast<double>(bound.MostGradient()) / static_cast<double>(bound.Unit())} {}

std::uint64_t PersonBound::Size(Integers const& rows, std::size_t width) const {
  std::uint64_t size = 0;
  for (std::size_t begin = 0; begin < rows.size(); begin += width) {
    std::uint64_t scaled, root;
    if (is_ball_) {
      // A row keeps its own bound: its squares sum to at most 2^40.
      std::uint64_t squares = 0;
      for (std::size_t at = begin; at < begin + width; ++at) {
        squares += static_cast<std::uint64_t>(rows[at] * rows[at]);
      }
      scaled = squares << (2 * kBits);
      root = IntegerSqrt(scaled);
      size += root + (root * root < scaled ? 1 : 0);
    } else {
      auto g = static_cast<std::uint64_t>(std::abs(rows[begin]));
      auto h = static_cast<std::uint64_t>(rows[begin + 1]);
      scaled = std::max(g * h_max_, h * unit_) << kBits;
      size += (scaled + h_max_ - 1) / h_max_;
    }
  }
  return size;
}

bool PersonBound::IsSurelyWithin(Integers const& rows, std::size_t width) const {
  if (!is_ball_) {
    return false;
  }
  double norms = 0;
  for (std::size_t begin = 0; begin < rows.size(); begin += width) {
    double squares = 0;
    for (std::size_t at = begin; at < begin + width; ++at) {
      auto value = static_cast<double>(rows[at]);
      squares += value * value;
    }
    norms += std::sqrt(squares);
  }
  // A size has each norm rounded up to a step of 2^-kBits. The sums above are right to some 2^-50
  // of themselves for each row.
  auto n_rows = static_cast<double>(rows.size() / width);
  auto size = std::ldexp(norms * (1.0 + 1e-9), kBits) + n_rows + 1.0;
  return n_rows < 1e5 && size < static_cast<double>(limit_);
}

double PersonBound::Scale(common::Span<float const> norms, std::uint64_t size) const {
  if (!by_prediction_) {
    return std::min(static_cast<double>(limit_) / static_cast<double>(std::max(size, limit_)), 1.0);
  }
  double sum = 0;
  for (auto norm : norms) {
    sum += static_cast<double>(norm);
  }
  return sum > most_ ? most_ / sum : 1.0;  // also where the sum is not a number
}

void PersonBound::Bound(std::size_t begin, std::size_t n, std::size_t first, RowsOfPersons* rows,
                        common::Span<LocalSum> change, Scratch* scratch) const {
  auto width = 2 * joint_;
  auto& given = scratch->given;
  auto& kept = scratch->kept;
  given.resize(n * width);
  kept.resize(n * width);
  for (std::size_t k = 0; k < joint_; ++k) {
    auto const* pairs = rows->pairs[first + k].data() + begin;
    for (std::size_t i = 0; i < n; ++i) {
      auto pair = pairs[i].Sum();
      given[i * width + 2 * k] = pair.grad;
      given[i * width + 2 * k + 1] = pair.hess;
    }
  }
  // Counted exactly only where an estimate leaves it open: 0 is a size within the limit.
  auto size_of = [&](Integers const& of_rows) {
    return this->IsSurelyWithin(of_rows, width) ? 0 : this->Size(of_rows, width);
  };
  // Where the factor follows from the norms, only what it leaves is looked at.
  std::uint64_t size = by_prediction_ ? 0 : size_of(given);
  auto scale = this->Scale(
      {rows->norms.data() + (by_prediction_ ? begin : 0), by_prediction_ ? n : std::size_t{0}},
      size);
  if (scale < 1.0) {
    Spread(given, width, scale, &kept);
  } else {
    kept = given;
  }
  if (by_prediction_ || scale < 1.0) {
    size = size_of(kept);
  }
  for (std::int32_t i = 0; i < kTries && size > limit_; ++i) {
    double room = 1.0 - std::ldexp(1.0, 2 * i - 13);  // for the rounding that is new each time
    scale *= static_cast<double>(limit_) / static_cast<double>(size) * room;
    Spread(given, width, scale, &kept);
    size = this->Size(kept, width);
  }
  for (auto& value : kept) {
    value = CutTo(value, limit_, size);
  }
  for (std::size_t k = 0; k < joint_; ++k) {
    auto* bounded = rows->bounded[first + k].data() + begin;
    for (std::size_t i = 0; i < n; ++i) {
      auto at = i * width + 2 * k;
      bounded[i] = PackedPair{kept[at], kept[at + 1]};
      change[k] += LocalSum{kept[at] - given[at], kept[at + 1] - given[at + 1]};
    }
  }
}

void PersonBound::operator()(Context const* ctx, Persons const& persons, RowsOfPersons* rows,
                             std::vector<ClassGradients>* out) const {
  auto n_class = out->size();
  auto n_blocks = (persons.NumSeveral() + kPersons - 1) / kPersons;
  std::vector<LocalSum> changes(n_blocks * n_class);
  common::ParallelFor(n_blocks, ctx->Threads(), common::Sched::Dyn(), [&](auto b) {
    auto begin = static_cast<std::size_t>(b) * kPersons;
    auto end = std::min(begin + kPersons, persons.NumSeveral());
    common::Span change{changes.data() + b * n_class, n_class};
    Scratch scratch;
    for (auto i = begin; i < end; ++i) {
      for (std::size_t k = 0; k < n_class; k += joint_) {
        this->Bound(persons.BeginOf(i), persons.Several(i).size(), k, rows,
                    change.subspan(k, joint_), &scratch);
      }
    }
  });
  auto const& at = persons.RowsOfSeveral();
  for (std::size_t k = 0; k < n_class; ++k) {
    auto const& bounded = rows->bounded[k];
    auto& pairs = (*out)[k].pairs;
    common::ParallelFor(at.size(), ctx->Threads(), [&](auto i) { pairs[at[i]] = bounded[i]; });
    for (std::size_t b = 0; b < n_blocks; ++b) {
      (*out)[k].total += changes[b * n_class + k];
    }
  }
}
}  // namespace xgboost::dp
