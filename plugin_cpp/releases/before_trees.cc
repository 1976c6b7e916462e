#include "plugin_cpp/releases/before_trees.h"

#include <algorithm>   // for clamp, is_sorted, min, upper_bound
#include <cmath>       // for exp, floor, isfinite, isnan, ldexp, log, nearbyint
#include <cstddef>     // for size_t
#include <cstdint>     // for int32_t, int64_t, uint32_t, uint64_t
#include <functional>  // for function
#include <limits>      // for numeric_limits
#include <optional>    // for optional
#include <utility>     // for move, pair
#include <vector>      // for vector

#include "plugin_cpp/json_reader.h"      // for JsonReader, ReadSigma2, ReadMasking
#include "plugin_cpp/loss/loss.h"        // for LabelRange, ReadRanges
#include "plugin_cpp/plan/row_bound.h"   // for kMaxRows
#include "plugin_cpp/random/samplers.h"  // for IntegerSqrt
#include "plugin_cpp/release/release.h"  // for Release, NoiseEvent, LocalInt
#include "plugin_cpp/release/source.h"   // for kColumnsStream, kInterceptStream, kRangeStream
#include "plugin_cpp/rows/raw_pages.h"   // for CheckNumRows, ForEachPage
#include "xgboost/json.h"                // for Json
#include "xgboost/logging.h"             // for CHECK

namespace xgboost::dp {
namespace {
/** @brief A number of a range as one on [-1, 1]: a grid integer of at most 2^shift. */
std::int64_t OnGrid(double value, LabelRange range, std::int32_t shift) {
  double half = (range.upper - range.lower) / 2;
  double centred = (value - range.lower - half) / half;
  // What is not a number is refused elsewhere; here it must only not break the bound. The
  // logarithm of a time of 0 and the exponential of a large margin are infinite, and at an end.
  centred = std::isnan(centred) ? 0.0 : std::clamp(centred, -1.0, 1.0);
  return static_cast<std::int64_t>(std::nearbyint(std::ldexp(centred, shift)));
}

/** @brief What a request sums. Each function below reads what it needs of the request first. */
using Sums = std::function<std::vector<LocalInt>(UnitRows const&)>;

LabelRange ReadRange(JsonReader const& in, std::string const& name) {
  LabelRange range{in.Real(name + "_lower"), in.Real(name + "_upper")};
  CHECK_LT(range.lower, range.upper);
  return range;
}

std::size_t ReadCount(JsonReader const& in) { return in.Int("num_class", 2, 1 << 20); }

/** @brief The number of rows: each adds one. */
Sums CountRows(JsonReader const& in) {
  CHECK(!in.Has("n_public"));
  return [](UnitRows const& rows) {
    return rows.Sum(1, [&](std::size_t, auto&& add) { add(0, rows.One()); });
  };
}

/** @brief The number of rows of each class: a row adds one to one of them. */
Sums CountClasses(JsonReader const& in) {
  return [n_class = ReadCount(in)](UnitRows const& rows) {
    auto labels = rows.Info().labels.HostView();
    return rows.Sum(n_class, [&](std::size_t i, auto&& add) {
      auto label = labels(i, 0);
      if (label >= 0 && label < static_cast<float>(n_class)) {
        add(static_cast<std::size_t>(label), rows.One());
      }
    });
  };
}

/**
 * @brief The number of labels in equal cells of their range, those beyond it at its ends: a row
 *        adds one to one of them.
 */
Sums CountCells(JsonReader const& in) {
  return [range = ReadRange(in, "target"), n_cells = ReadCount(in)](UnitRows const& rows) {
    auto labels = rows.Info().labels.HostView();
    auto n = static_cast<double>(n_cells);
    return rows.Sum(n_cells, [&](std::size_t i, auto&& add) {
      double label = labels(i, 0);
      double cell = std::floor((label - range.lower) / (range.upper - range.lower) * n);
      // A label that is not a number is refused elsewhere.
      cell = std::isfinite(cell) ? std::clamp(cell, 0.0, n - 1.0)
                                 : (label > range.upper ? n - 1.0 : 0.0);
      add(static_cast<std::size_t>(cell), rows.One());
    });
  };
}

/**
 * @brief The number of labels, or of first times of intervals, between edges; of weights; or of
 *        both, which have equally many: a row adds one to one of the cells of each.
 */
Sums CountBetween(JsonReader const& in) {
  constexpr double kLargest = 1e38;
  bool times = in.Has("times") && in.Bool("times");
  std::vector<std::pair<bool, std::vector<double>>> lists;  // whether of weights, and their edges
  for (auto [key, of_weights] : {std::pair{"edges", false}, {"weight_edges", true}}) {
    if (in.Has(key)) {
      lists.emplace_back(of_weights, in.Reals(key, -kLargest, kLargest));
    }
  }
  CHECK(!lists.empty());
  auto n_cells = ReadCount(in);
  for (auto const& [of_weights, edges] : lists) {
    CHECK((edges.size() + 1) * lists.size() == n_cells);
    CHECK(std::is_sorted(edges.cbegin(), edges.cend()));
  }
  return [=](UnitRows const& rows) {
    auto labels = rows.Info().labels.HostView();
    auto first_times = rows.Info().labels_lower_bound_.ConstHostSpan();
    auto weights = rows.Info().weights_.ConstHostSpan();
    CHECK(!times || first_times.size() == rows.Info().num_row_);
    return rows.Sum(n_cells, [&](std::size_t i, auto&& add) {
      std::size_t first = 0;
      for (auto const& [of_weights, edges] : lists) {
        double number = of_weights ? (weights.empty() ? 1.0f : weights[i])
                        : times    ? first_times[i]
                                   : labels(i, 0);
        // One cell of every row, also of what is not a number, which is refused elsewhere.
        auto cell = std::upper_bound(edges.cbegin(), edges.cend(), number) - edges.cbegin();
        add(first + static_cast<std::size_t>(cell), rows.One());
        first += edges.size() + 1;
      }
    });
  };
}

/**
 * @brief The sums of labels on [-1, 1], then the number of rows where nobody knows it, and the sum
 *        of exp(base_margin) where it is asked for: a row adds at most one to each.
 *
 * @param ranges Of the label, or of each of several targets.
 * @param times  Whether labels are logarithms of the first times of intervals.
 */
Sums SumLabels(JsonReader const& in, std::vector<LabelRange> const& ranges, bool times,
               std::optional<LabelRange> exposures) {
  bool of_rows = !in.Has("n_public");
  return [=](UnitRows const& rows) {
    auto n_rows = rows.Info().num_row_;
    auto labels = rows.Info().labels.HostView();
    auto first_times = rows.Info().labels_lower_bound_.ConstHostSpan();
    auto margins = rows.Info().base_margin_.HostView();
    auto n_labels = ranges.size();
    CHECK(!times || first_times.size() == n_rows);
    CHECK(!exposures || margins.Shape(0) == n_rows);
    CHECK(n_rows == 0 || times || n_labels == 1 || labels.Shape(1) == n_labels)
        << "The request for an intercept is for another number of targets.";
    auto n_sums = n_labels + (of_rows ? 1 : 0) + (exposures ? 1 : 0);
    return rows.Sum(n_sums, [&](std::size_t i, auto&& add) {
      for (std::size_t k = 0; k < n_labels; ++k) {
        double label = times ? std::log(static_cast<double>(first_times[i])) : labels(i, k);
        add(k, OnGrid(label, ranges[k], rows.shift));
      }
      if (of_rows) {
        add(n_labels, rows.One());
      }
      if (exposures) {
        add(n_sums - 1,
            OnGrid(std::exp(static_cast<double>(margins(i, 0))), *exposures, rows.shift));
      }
    });
  };
}

Sums SumBinary(JsonReader const& in) { return SumLabels(in, {{0, 1}}, false, {}); }
Sums SumTargets(JsonReader const& in) { return SumLabels(in, ReadRanges(in), false, {}); }
Sums SumRegression(JsonReader const& in) {
  std::optional<LabelRange> exposures;
  if (in.Has("exposure_lower")) {
    exposures = ReadRange(in, "exposure");
  }
  return SumLabels(in, {ReadRange(in, "target")}, in.Has("times") && in.Bool("times"), exposures);
}

/**
 * @brief For each of two classes, and each column in it, the sum over the rows whose cell of the
 *        column is above 0: 1 over the root of how many such cells a row has. So a row adds a
 *        vector of at most one. The unit is a row.
 */
Sums CellsByColumn(JsonReader const& in) {
  return [n_columns =
              static_cast<std::size_t>(in.Int("columns", 1, 1 << 30))](UnitRows const& rows) {
    std::vector<LocalInt> sums(2 * n_columns);
    auto labels = rows.Info().labels.HostView();
    std::vector<std::size_t> places;
    std::size_t row = 0;
    ForEachPage(rows.ctx, rows.matrix, [&](SparsePage const& page) {
      auto view = page.GetView();
      for (std::size_t i = 0; i < view.Size(); ++i, ++row) {
        auto of_class = labels(row, 0) > 0.5f ? n_columns : 0;
        places.clear();
        for (auto const& entry : view[i]) {
          if (entry.fvalue >= std::numeric_limits<float>::min() && entry.index < n_columns) {
            places.push_back(of_class + entry.index);
          }
        }
        // As many sums of that have a norm of 2^shift.
        std::int64_t each =
            places.empty() ? 0
                           : IntegerSqrt((std::uint64_t{1} << (2 * rows.shift)) / places.size());
        for (auto k : places) {
          sums[k].value += each;
        }
      }
    });
    return sums;
  };
}

/** @brief The sum of the share of its columns that a row has: cells neither 0 nor missing. */
LocalInt PresentCells(UnitRows const& rows, std::int64_t n_columns) {
  LocalInt sum{0};
  ForEachPage(rows.ctx, rows.matrix, [&](SparsePage const& page) {
    auto view = page.GetView();
    for (std::size_t i = 0; i < view.Size(); ++i) {
      std::int64_t present = 0;
      for (auto const& entry : view[i]) {
        present += entry.fvalue != 0.0f ? 1 : 0;
      }
      sum.value += (std::min(present, n_columns) << rows.shift) / n_columns;
    }
  });
  return sum;
}

/** @brief A kind of request: how it is read, what its draw is called, and its words of a key. */
struct Kind {
  Sums (*read)(JsonReader const& in);
  char const* release{"intercept"};
  std::uint32_t stream{kInterceptStream};  // no two releases before the same trees share one
};
}  // namespace

Json NoisySums(NoiseEvent const& event, std::vector<LocalInt> const& sums, Release* release) {
  Array out;
  for (auto sum : release->AddNoise(event, sums).values) {
    out.GetArray().emplace_back(Integer{sum.Value()});
  }
  return Json{std::move(out)};
}

std::string Answer(Json released, Release const& release) {
  Json out{Object{}};
  out["sums"] = std::move(released);
  auto recorded = release.SaveEvents();
  if (!get<Array const>(recorded).empty()) {
    out["event"] = get<Array const>(recorded).front();
  }
  std::string answer;
  Json::Dump(out, &answer);
  return answer;
}

std::string ReleaseBeforeTrees(Context const* ctx, std::shared_ptr<DMatrix> const& p_fmat,
                               std::shared_ptr<Persons const> const& persons,
                               std::string const& text) {
  auto json = Json::Load(StringView{text});
  JsonReader in{json, "intercept."};
  auto kind = in.Enum<Kind>("kind", {{"rows", {CountRows, "rows"}},
                                     {"columns", {CellsByColumn, "columns", kColumnsStream}},
                                     {"range", {CountBetween, "range", kRangeStream}},
                                     {"binary", {SumBinary}},
                                     {"multiclass", {CountClasses}},
                                     {"cells", {CountCells}},
                                     {"targets", {SumTargets}},
                                     {"regression", {SumRegression}}});
  auto sums_of = kind.read(in);
  auto shift = static_cast<std::int32_t>(in.Int("shift", 0, 26));
  auto known = ReadKnownNoise(in);
  NoiseEvent event{kind.release, false, ReadSigma2(in, known.is_none)};
  auto of_persons = in.Enum<bool>("unit", {{"row", false}, {"person", true}});
  auto plan_id = in.Text("plan_id");
  auto masking = ReadMasking(in.Part("masking"));
  auto columns = in.Has("columns") ? in.Int("columns", 1, 1 << 30) : 0;
  CHECK(columns == 0 || (!in.Has("n_public") && !of_persons &&
                         (kind.read == SumBinary || kind.read == CellsByColumn)));
  CHECK((persons != nullptr) == of_persons)
      << "The request for an intercept and the DMatrix disagree on the unit of privacy: give the "
         "ids of persons as `dp_privacy_id`.";

  Release release{ctx, known.is_none, known.key, masking, kind.stream, of_persons};
  release.OpenPads(plan_id, false);  // the training goes on with them
  Persons::Keep(p_fmat, plan_id, persons, in.Has("again") && in.Bool("again"));
  CheckNumRows(ctx, masking, p_fmat->Info().num_row_, kMaxRows);
  UnitRows rows{ctx, p_fmat.get(), persons.get(), shift};
  auto sums = sums_of(rows);
  if (columns > 0 && kind.read != CellsByColumn) {
    sums.push_back(PresentCells(rows, columns));
  }
  return Answer(NoisySums(event, sums, &release), release);
}
}  // namespace xgboost::dp
