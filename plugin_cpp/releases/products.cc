/**
 * Sums of products of the scores of each row with one another and with its label, from which a
 * linear start of two classes follows.
 *
 * A column of numbers has a score of each of its bins, a column of categories one coordinate of
 * each category. All are public. The scores of a row are shrunk to a bounded norm, and its label by
 * the same factor, so that its products are a vector of a bounded norm.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for adjacent_find, for_each, is_sorted, max, sort
#include <cmath>      // for isnan
#include <cstddef>    // for size_t
#include <cstdint>    // for int16_t, int32_t, int64_t, uint16_t, uint64_t
#include <limits>     // for numeric_limits
#include <utility>    // for move
#include <vector>     // for vector

#include "common/threading_utils.h"         // for ParallelFor, Sched
#include "plugin_cpp/random/samplers.h"     // for IntegerSqrt
#include "plugin_cpp/release/source.h"      // for kColumnsStream
#include "plugin_cpp/releases/intercept.h"  // for Request, AddKind
#include "plugin_cpp/rows/raw_pages.h"      // for ForEachPage
#include "xgboost/json.h"                   // for Json
#include "xgboost/logging.h"                // for CHECK

namespace xgboost::dp {
namespace {
/** @brief Half of a square is at most this over 2^kHalfBits, squared; see Scores::AddRow. */
constexpr std::int64_t kHalfRoot = 23170;
constexpr std::int32_t kHalfBits = 15;
static_assert(2 * kHalfRoot * kHalfRoot <= std::int64_t{1} << (2 * kHalfBits));

/** @brief How many of ascending cuts are not above a value, found without a branch. */
std::size_t Bin(std::vector<float> const& cuts, float value) {
  std::size_t begin = 0;
  for (auto n = cuts.size(); n > 0; n /= 2) {
    auto half = n - n / 2;
    begin += cuts[begin + half - 1] <= value ? half : 0;
  }
  return begin;
}

/** @brief Which scores cells have, beside a constant that all rows have; and those of the rows. */
class Scores {
 public:
  Scores(JsonReader const& in, std::int32_t shift)
      : most_{static_cast<std::int64_t>(IntegerSqrt(std::uint64_t{1} << shift))},
        constant_{in.Int("constant_score", 1, most_)} {
    auto const& scored = in.List("scored");
    for (bool of_categories : {false, true}) {  // a constant, numbers, and categories
      for (auto const& json : scored) {
        JsonReader of{json, "scored."};
        auto n_categories = of.Int("categories", 0, 1 << 16);
        if ((n_categories > 0) == of_categories) {
          this->AddColumn(of, n_categories);
        }
      }
    }
    std::sort(columns_.begin(), columns_.end(),
              [](auto const& a, auto const& b) { return a.index < b.index; });
    CHECK(std::adjacent_find(columns_.cbegin(), columns_.cend(), [](auto const& a, auto const& b) {
            return a.index == b.index;
          }) == columns_.cend());
    CHECK_EQ(this->NumSums(), static_cast<std::size_t>(in.Int("sums", 2, 1 << 18)));
  }

  /** @brief Sums of pairs of positions, and of each with the label. */
  [[nodiscard]] std::size_t NumSums() const { return n_ * (n_ + 1) / 2 + n_; }

  void Read(Context const* ctx, DMatrix* p_fmat) {
    auto n_rows = p_fmat->Info().num_row_;
    values_.resize(n_rows * n_numbers_);
    // A row has no score of a category that it misses: 0 at any position.
    categories_.resize(n_rows * n_categorical_);
    ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
      auto view = page.GetView();
      common::ParallelFor(view.Size(), ctx->Threads(), common::Sched::Static(),
                          [&](auto i) { this->ReadRow(page.base_rowid + i, view[i]); });
    });
  }
  /**
   * @brief Calls add(k, value) for each sum that a row adds to. The squares of its values sum up to
   *        4^shift at most.
   */
  template <typename Add>
  void AddRow(std::size_t row, bool is_positive, Add&& add) const {
    auto const* numbers = values_.data() + row * n_numbers_;
    auto const* categories = categories_.data() + row * n_categorical_;
    // The label has shrunk as the constant of the row has; below 2^(13 + 13 + 15).
    auto label = (is_positive ? most_ : -most_) * numbers[0] * kHalfRoot;
    auto add_one = [&](std::size_t at, std::int64_t value) {
      // Rounded towards zero, which makes no norm larger.
      add(this->Pair(at) + at, value * value * kHalfRoot / (1 << kHalfBits));
      add(n_ * (n_ + 1) / 2 + at, value * label / (constant_ << kHalfBits));
    };
    for (std::size_t i = 0; i < n_numbers_; ++i) {
      std::int32_t value = numbers[i];
      auto first = this->Pair(i);
      add_one(i, value);
      for (auto j = i + 1; j < n_numbers_; ++j) {
        add(first + j, value * numbers[j]);  // both are at most 2^13
      }
      for (std::size_t c = 0; c < n_categorical_; ++c) {
        add(first + categories[c].position, value * categories[c].value);
      }
    }
    for (std::size_t c = 0; c < n_categorical_; ++c) {
      std::int32_t value = categories[c].value;
      add_one(categories[c].position, value);
      for (auto d = c + 1; d < n_categorical_; ++d) {
        add(this->Pair(categories[c].position) + categories[d].position,
            value * categories[d].value);
      }
    }
  }

 private:
  struct Column {
    bst_feature_t index;
    std::int64_t n_categories;         // 0 for numbers
    std::vector<float> cuts;           // of numbers, ascending: a bin begins at each
    std::vector<std::int64_t> scores;  // of each bin and of missing cells; or of any category
    std::size_t first;                 // position of its first coordinate
    std::size_t cell;                  // of a row, among its numbers or its categories
  };
  struct Cell {
    std::uint16_t position;
    std::int16_t value;
  };

  void AddColumn(JsonReader const& in, std::int64_t n_categories) {
    auto cuts = in.Reals("cuts", -1e39, 1e39);
    Column column{static_cast<bst_feature_t>(in.Int("index", 0, (1 << 30) - 1)),
                  n_categories,
                  {cuts.cbegin(), cuts.cend()},
                  in.Ints<std::int64_t>("scores", -most_, most_),
                  n_,
                  n_categories == 0 ? n_numbers_ : n_categorical_};
    CHECK_EQ(column.scores.size(), n_categories == 0 ? cuts.size() + 2 : 1);
    CHECK(std::is_sorted(cuts.cbegin(), cuts.cend()));
    n_ += std::max<std::int64_t>(n_categories, 1);
    ++(n_categories == 0 ? n_numbers_ : n_categorical_);
    CHECK_LE(n_, std::size_t{std::numeric_limits<std::uint16_t>::max()});
    columns_.push_back(std::move(column));
  }

  /** @brief Where the sum of positions i and j, not below i, is: at Pair(i) + j. */
  [[nodiscard]] std::size_t Pair(std::size_t i) const { return i * n_ - i * (i + 1) / 2; }

  /** @brief Keep the scores of a row, with a norm of most_ at most. */
  void ReadRow(std::size_t i, SparsePage::Inst const& row) {
    auto* numbers = values_.data() + i * n_numbers_;
    auto* categories = categories_.data() + i * n_categorical_;
    numbers[0] = static_cast<std::int16_t>(constant_);
    auto const* cell = row.data();
    auto const* last = cell + row.size();
    for (auto const& column : columns_) {
      while (cell != last && cell->index < column.index) {
        ++cell;
      }
      bool is_missing = cell == last || cell->index != column.index || std::isnan(cell->fvalue);
      if (column.n_categories == 0) {
        auto const& cuts = column.cuts;
        auto bin = is_missing ? cuts.size() + 1 : Bin(cuts, cell->fvalue);
        numbers[column.cell] = static_cast<std::int16_t>(column.scores[bin]);
      } else if (!is_missing && cell->fvalue >= 0 &&
                 cell->fvalue < static_cast<float>(column.n_categories)) {
        auto position = column.first + static_cast<std::size_t>(cell->fvalue);
        categories[column.cell] = {static_cast<std::uint16_t>(position),
                                   static_cast<std::int16_t>(column.scores.front())};
      }
    }
    this->Bound(numbers, categories);
  }

  /** @brief Shrink the scores of a row, rounded towards zero, to a norm of most_ at most. */
  void Bound(std::int16_t* numbers, Cell* categories) const {
    auto each = [&](auto&& fn) {
      std::for_each(numbers, numbers + n_numbers_, fn);
      std::for_each(categories, categories + n_categorical_, [&](Cell& cell) { fn(cell.value); });
    };
    std::int64_t norm2 = 0;
    each([&](std::int16_t value) { norm2 += std::int64_t{value} * value; });
    if (norm2 <= most_ * most_) {
      return;
    }
    auto norm = static_cast<std::int64_t>(IntegerSqrt(norm2 - 1)) + 1;  // rounded up
    each([&](std::int16_t& value) { value = static_cast<std::int16_t>(value * most_ / norm); });
  }

  std::int64_t most_;      // largest norm of the scores of a row: its square is at most 2^shift
  std::int64_t constant_;  // score of the constant of a row that is not shrunk
  std::vector<Column> columns_;  // by index
  std::size_t n_{1};             // positions; the constant has the first one
  std::size_t n_numbers_{1};     // of them with a constant or a column of numbers
  std::size_t n_categorical_{0};
  std::vector<std::int16_t> values_;  // of the constant and the numbers, row by row
  std::vector<Cell> categories_;      // row by row
};

Json ReleaseProducts(Request const& asked) {
  CHECK(asked.in.Has("again")) << "A linear start follows an intercept.";
  Scores scores{asked.in, asked.shift};
  scores.Read(asked.ctx, asked.matrix);
  auto labels = asked.Info().labels.HostView();
  return asked.Noisy(asked.Sum(scores.NumSums(), [&](std::size_t i, auto&& add) {
    scores.AddRow(i, labels(i, 0) > 0.5f, add);
  }));
}

AddKind const kAdded{"products", {ReleaseProducts, "products", kColumnsStream, false}};
}  // namespace
}  // namespace xgboost::dp
