#include "plugin_cpp/releases/linear_start.h"

#include <algorithm>  // for is_sorted, upper_bound
#include <cmath>      // for isnan, sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for int16_t, int32_t, int64_t, uint16_t
#include <limits>     // for numeric_limits
#include <utility>    // for move, pair
#include <vector>     // for vector

#include "plugin_cpp/json_reader.h"                     // for JsonReader, ReadKnownNoise
#include "plugin_cpp/plan/plan.h"                       // for QuantilePlan
#include "plugin_cpp/plan/row_bound.h"                  // for kMaxRows
#include "plugin_cpp/release/release.h"                 // for Release, LocalInt, NoiseEvent
#include "plugin_cpp/release/source.h"                  // for kColumnsStream, kDiscoveryStream
#include "plugin_cpp/releases/candidates/candidates.h"  // for CellSums, ReleaseTrees
#include "plugin_cpp/rows/raw_pages.h"                  // for CheckNumRows, ForEachPage
#include "xgboost/json.h"                               // for Json
#include "xgboost/logging.h"                            // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::int32_t kScoreBits = 14;
/** @brief Largest norm of the scores of a row. */
constexpr std::int64_t kMostScore = std::int64_t{1} << kScoreBits;

/** @brief A position among all scores, and the score of a row there; others are 0. */
using RowScores = std::vector<std::pair<std::size_t, std::int64_t>>;

/** @brief Shrink scores, rounded towards zero, to a norm of kMostScore at most. */
void Bound(RowScores* scores) {
  std::int64_t norm2 = 0;
  for (auto [position, value] : *scores) {
    norm2 += value * value;
  }
  if (norm2 <= kMostScore * kMostScore) {
    return;
  }
  auto norm = static_cast<std::int64_t>(std::sqrt(static_cast<double>(norm2)));
  while (norm * norm < norm2) {
    ++norm;
  }
  for (auto& [position, value] : *scores) {
    value = value * kMostScore / norm;
  }
}

/** @brief Which scores cells have, beside a constant that all rows have; and those of the rows. */
class Scores {
 public:
  explicit Scores(JsonReader const& in) : constant_{in.Int("constant", 0, kMostScore)} {
    for (auto const& json : in.List("scored")) {
      JsonReader of{json, "scored."};
      Column column{static_cast<bst_feature_t>(of.Int("index", 0, (1 << 30) - 1)),
                    of.Int("categories", 0, 1 << 16), of.Reals("cuts", -1e39, 1e39),
                    of.Ints<std::int64_t>("scores", -kMostScore, kMostScore), n_};
      bool is_number = column.n_categories == 0;
      CHECK_EQ(column.scores.size(), is_number ? column.cuts.size() + 2 : 1);
      CHECK(std::is_sorted(column.cuts.cbegin(), column.cuts.cend()));
      CHECK(columns_.empty() || columns_.back().index < column.index);
      n_ += is_number ? 1 : column.n_categories;
      CHECK_LE(n_, std::size_t{std::numeric_limits<std::uint16_t>::max()});
      columns_.push_back(std::move(column));
    }
    CHECK_EQ(this->NumSums(), static_cast<std::size_t>(in.Int("sums", 2, 1 << 30)));
  }

  /** @brief Sums of pairs of positions, and of each with the label. */
  [[nodiscard]] std::size_t NumSums() const { return n_ * (n_ + 1) / 2 + n_; }

  void Read(Context const* ctx, DMatrix* p_fmat) {
    ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
      auto view = page.GetView();
      for (std::size_t i = 0; i < view.Size(); ++i) {
        for (auto [position, value] : this->Of(view[i])) {
          // A score fits: 2^kScoreBits is below 2^15.
          cells_.push_back(
              {static_cast<std::uint16_t>(position), static_cast<std::int16_t>(value)});
        }
        begins_.push_back(cells_.size());
      }
    });
  }
  /**
   * @brief Calls add(k, value) for each sum that a row adds to. The squares of its values sum up to
   *        2 * 4^shift at most.
   */
  template <typename Add>
  void AddRow(std::size_t row, bool is_positive, std::int32_t shift, Add&& add) const {
    // A product of two positions stands for both orders of them: it weighs at most the root of 2.
    constexpr std::int64_t kRoot2 = 46340;
    constexpr std::int32_t kRoot2Bits = 15;
    static_assert(kRoot2 * kRoot2 <= std::int64_t{2} << (2 * kRoot2Bits));
    // Quotients are rounded towards zero, which makes no norm larger.
    auto one = std::int64_t{1} << (2 * kScoreBits - shift);
    for (auto i = begins_[row]; i < begins_[row + 1]; ++i) {
      std::int64_t value = cells_[i].value;
      std::size_t at = cells_[i].position;
      auto first = at * n_ - at * (at + 1) / 2;  // of the pairs (at, position), less `at`
      add(first + at, value * value / one);
      for (auto j = i + 1; j < begins_[row + 1]; ++j) {
        add(first + cells_[j].position, value * cells_[j].value * kRoot2 / (one << kRoot2Bits));
      }
      add(n_ * (n_ + 1) / 2 + at, (is_positive ? value : -value) * kMostScore / one);
    }
  }

 private:
  struct Column {
    bst_feature_t index;
    std::int64_t n_categories;         // 0 for numbers
    std::vector<double> cuts;          // of numbers, ascending: a bin begins at each
    std::vector<std::int64_t> scores;  // of each bin and of missing cells; or of any category
    std::size_t first;                 // position of its first coordinate
  };
  struct Cell {
    std::uint16_t position;
    std::int16_t value;
  };

  [[nodiscard]] RowScores Of(SparsePage::Inst const& row) const {
    RowScores scores{{0, constant_}};
    auto const* cell = row.data();
    auto const* last = cell + row.size();
    for (auto const& column : columns_) {
      while (cell != last && cell->index < column.index) {
        ++cell;
      }
      bool is_missing = cell == last || cell->index != column.index || std::isnan(cell->fvalue);
      if (column.n_categories == 0) {
        auto const& cuts = column.cuts;
        auto bin = is_missing
                       ? cuts.size() + 1
                       : std::upper_bound(cuts.cbegin(), cuts.cend(), cell->fvalue) - cuts.cbegin();
        scores.emplace_back(column.first, column.scores[bin]);
      } else if (!is_missing && cell->fvalue >= 0 &&
                 cell->fvalue < static_cast<float>(column.n_categories)) {
        scores.emplace_back(column.first + static_cast<std::size_t>(cell->fvalue),
                            column.scores.front());
      }
    }
    Bound(&scores);
    return scores;
  }

  std::int64_t constant_;
  std::vector<Column> columns_;
  std::size_t n_{1};  // positions; the constant has the first one
  std::vector<Cell> cells_;
  std::vector<std::size_t> begins_{0};  // of the cells of each row
};

/** @brief Rows of this worker, whose sums are in units of 2^-shift. */
struct UnitRows {
  Context const* ctx;
  DMatrix* matrix;
  Persons const* persons;  // null where each row counts one
  std::int32_t shift;
};

Json ReleaseProducts(UnitRows const& rows, JsonReader const& in, NoiseEvent const& event,
                     Release* release) {
  Scores scores{in};
  scores.Read(rows.ctx, rows.matrix);
  auto labels = rows.matrix->Info().labels.HostView();
  auto sums = SumUnits(
      rows.ctx, rows.matrix->Info().num_row_, rows.persons, scores.NumSums(),
      [&](std::size_t i, auto&& add) { scores.AddRow(i, labels(i, 0) > 0.5f, rows.shift, add); });
  Array out;
  for (auto sum : release->AddNoise(event, sums).values) {
    out.GetArray().emplace_back(Integer{sum.Value()});
  }
  return Json{std::move(out)};
}

/** @brief The quantile trees of some columns; a row, or a person, counts one in each. */
Json ReleaseCandidates(UnitRows const& rows, JsonReader const& in, NoiseEvent const& event,
                       Release* release) {
  CandidatePlan plan{in.Part("candidates"), event.parameter == 0};
  CHECK(plan.kind == CandidateKind::kQuantileTree && !plan.hessian && !plan.laplace);
  CHECK(plan.sigma2 == event.parameter && plan.shift == rows.shift);
  std::vector<bst_feature_t> columns;
  auto const& features = in.List("features");
  for (bst_feature_t f = 0; f < features.size(); ++f) {
    if (JsonReader{features[f], "features."}.Text("kind") == "private") {
      columns.push_back(f);
    }
  }
  CHECK(!columns.empty());
  auto one = std::int64_t{1} << rows.shift;
  auto add_rows = [&](auto&& cell, CellSums* sums) {
    ForEachPage(rows.ctx, rows.matrix, [&](SparsePage const& page) {
      sums->Add(page, cell,
                [&](auto i) { return rows.persons ? one / rows.persons->RowsOf(i) : one; });
    });
  };
  Array out;
  for (auto const& tree : ReleaseTrees({rows.ctx, plan, event, release}, columns, add_rows)) {
    out.GetArray().emplace_back(ToJson(tree));
  }
  return Json{std::move(out)};
}

struct Kind {
  Json (*release)(UnitRows const&, JsonReader const&, NoiseEvent const&, Release*);
  char const* name;
  std::uint32_t stream;
};
}  // namespace

bool IsOfLinearStart(std::string const& request) {
  auto kind = JsonReader{Json::Load(StringView{request}), "start."}.Text("kind");
  return kind == "candidates" || kind == "products";
}

std::string ReleaseLinearStart(Context const* ctx, std::shared_ptr<DMatrix> const& p_fmat,
                               std::shared_ptr<Persons const> const& persons,
                               std::string const& request) {
  auto json = Json::Load(StringView{request});
  JsonReader in{json, "start."};
  auto kind =
      in.Enum<Kind>("kind", {{"candidates", {ReleaseCandidates, "candidates", kDiscoveryStream}},
                             {"products", {ReleaseProducts, "products", kColumnsStream}}});
  auto known = ReadKnownNoise(in);
  NoiseEvent event{kind.name, false, ReadSigma2(in, known.is_none)};
  auto of_persons = in.Enum<bool>("unit", {{"row", false}, {"person", true}});
  CHECK((persons != nullptr) == of_persons)
      << "The request for a linear start and the DMatrix disagree on the unit of privacy: give the "
         "ids of persons as `dp_privacy_id`.";
  CHECK_EQ(ReadMasking(in.Part("masking")).workers, 0) << "A linear start has no masked sums.";
  Release release{ctx, known.is_none, known.key, Masking{}, kind.stream, of_persons};
  Persons::Keep(p_fmat, in.Text("plan_id"), persons, in.Bool("again"));
  CheckNumRows(ctx, Masking{}, p_fmat->Info().num_row_, kMaxRows);
  auto shift = static_cast<std::int32_t>(in.Int("shift", 0, 26));
  Json out{Object{}};
  out["sums"] = kind.release({ctx, p_fmat.get(), persons.get(), shift}, in, event, &release);
  auto recorded = release.SaveEvents();
  if (!get<Array const>(recorded).empty()) {
    out["event"] = get<Array const>(recorded).front();
  }
  std::string answer;
  Json::Dump(out, &answer);
  return answer;
}
}  // namespace xgboost::dp
