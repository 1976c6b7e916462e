#include "plugin_cpp/releases/intercept.h"

#include <algorithm>  // for clamp, is_sorted, min, upper_bound
#include <cmath>      // for exp, floor, isfinite, isnan, ldexp, log, nearbyint, sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t, uint64_t
#include <limits>     // for numeric_limits
#include <utility>    // for move, exchange
#include <vector>     // for vector

#include "plugin_cpp/json_reader.h"      // for JsonReader, ReadSigma2, ReadMasking
#include "plugin_cpp/loss/loss.h"        // for LabelRange, ReadRanges
#include "plugin_cpp/plan/row_bound.h"   // for kMaxRows
#include "plugin_cpp/release/release.h"  // for Release, GaussianEvent, LocalInt
#include "plugin_cpp/release/source.h"   // for kColumnsStream, kInterceptStream, kRangeStream
#include "plugin_cpp/rows/raw_pages.h"   // for CheckNumRows, ForEachPage
#include "xgboost/json.h"                // for Json
#include "xgboost/linalg.h"              // for MatrixView
#include "xgboost/logging.h"             // for CHECK

namespace xgboost::dp {
namespace {
struct Request {
  std::string kind;
  std::int64_t num_class{0};
  std::int64_t columns{0};  // 0: the cells that are present are not asked for
  std::int32_t shift{0};
  std::uint64_t sigma2{0};
  bool n_public{false};
  bool noise_free{false};
  std::vector<LabelRange> ranges{{0, 1}};  // of the label, or of each of several targets
  std::vector<double> edges;               // between the cells of labels, rising
  bool times{false};                       // labels are first times of intervals
  bool exposures{false};
  double exposure_lower{0};
  double exposure_upper{1};
  std::string test_key;
  std::string plan_id;
  bool again{false};  // of the same persons as the first release of the plan
  Masking masking;
  bool of_persons{false};

  /** @brief Whether the sums are those of cells by class and column, and of nothing else. */
  [[nodiscard]] bool IsByColumn() const { return kind == "columns"; }
  /** @brief How many sums of labels are released, those of several classes or cells excepted. */
  [[nodiscard]] std::size_t NumLabels() const { return kind == "rows" ? 0 : ranges.size(); }
  [[nodiscard]] std::size_t NumSums() const {
    return num_class > 0 ? num_class : NumLabels() + (n_public ? 0 : 1) + (exposures ? 1 : 0);
  }
};

Request ParseRequest(std::string const& text) {
  auto json = Json::Load(StringView{text});
  JsonReader in{json, "intercept."};
  Request out;
  out.kind = in.Text("kind");
  CHECK(out.kind == "binary" || out.kind == "regression" || out.kind == "multiclass" ||
        out.kind == "targets" || out.kind == "cells" || out.kind == "range" || out.kind == "rows" ||
        out.IsByColumn());
  out.noise_free = in.Bool("noise_free");
  out.shift = in.Int("shift", 0, 26);
  out.sigma2 = ReadSigma2(in, out.noise_free);
  out.n_public = in.Has("n_public");
  CHECK(out.kind != "rows" || !out.n_public);
  out.columns = in.Has("columns") ? in.Int("columns", 1, 1 << 30) : 0;
  CHECK(!out.IsByColumn() || out.columns > 0);
  out.test_key = in.Has("test_key") ? in.Text("test_key") : "";
  CHECK(!(in.Bool("private") && (out.noise_free || !out.test_key.empty())))
      << "The request for an intercept says `private`, and asks for no noise or for noise from a "
         "fixed key: this is a bug in xgb_dp.";
  out.of_persons = in.Enum<bool>("unit", {{"row", false}, {"person", true}});
  CHECK(out.columns == 0 ||
        (!out.n_public && !out.of_persons && (out.kind == "binary" || out.IsByColumn())));
  out.plan_id = in.Text("plan_id");
  out.again = in.Has("again") && in.Bool("again");
  out.masking = ReadMasking(JsonReader{in.At("masking"), "masking."});
  if (out.kind == "multiclass" || out.kind == "cells" || out.kind == "range") {
    out.num_class = in.Int("num_class", 2, 1 << 20);
  }
  out.times = in.Has("times") && in.Bool("times");
  if (out.kind == "range") {
    constexpr double kLargest = 1e38;
    out.edges = in.Reals("edges", -kLargest, kLargest);
    CHECK(static_cast<std::int64_t>(out.edges.size()) + 1 == out.num_class);
    CHECK(std::is_sorted(out.edges.cbegin(), out.edges.cend()));
  }
  if (out.kind == "regression" || out.kind == "cells") {
    out.ranges = {{in.Real("target_lower"), in.Real("target_upper")}};
    CHECK_LT(out.ranges.front().lower, out.ranges.front().upper);
    out.exposures = in.Has("exposure_lower");
    if (out.exposures) {
      out.exposure_lower = in.Real("exposure_lower");
      out.exposure_upper = in.Real("exposure_upper");
      CHECK_LT(out.exposure_lower, out.exposure_upper);
    }
  }
  if (out.kind == "targets") {
    out.ranges = ReadRanges(in);
  }
  return out;
}

/** @brief A number of a range as one on [-1, 1]: a grid integer of at most 2^shift. */
std::int64_t OnGrid(double value, LabelRange range, std::int32_t shift) {
  double half = (range.upper - range.lower) / 2;
  double centred = (value - range.lower - half) / half;
  // What is not a number is refused elsewhere; here it must only not break the bound. The logarithm
  // of a time of 0 and the exponential of a large margin are infinite, and at an end.
  centred = std::isnan(centred) ? 0.0 : std::clamp(centred, -1.0, 1.0);
  return static_cast<std::int64_t>(std::nearbyint(std::ldexp(centred, shift)));
}

/** @brief The cell of one row's label, of equal cells of the range; those beyond it at its ends. */
std::size_t CellOf(double label, Request const& request) {
  auto n = static_cast<double>(request.num_class);
  auto range = request.ranges.front();
  double cell = std::floor((label - range.lower) / (range.upper - range.lower) * n);
  // A label that is not a number is refused elsewhere.
  cell = std::isfinite(cell) ? std::clamp(cell, 0.0, n - 1.0) : label > range.upper ? n - 1.0 : 0.0;
  return static_cast<std::size_t>(cell);
}

/** @brief What rows add to the sums: the labels and one each, one to a class, or one alone. */
class RowSums {
 public:
  RowSums(MetaInfo const& info, Request const& request)
      : request_{request},
        n_rows_{info.num_row_},
        labels_{info.labels.HostView()},
        times_{info.labels_lower_bound_.ConstHostSpan()},
        margins_{info.base_margin_.HostView()},
        unit_{std::int64_t{1} << request.shift} {
    CHECK(!request.times || times_.size() == n_rows_);
    CHECK(!request.exposures || margins_.Shape(0) == n_rows_);
    CHECK(n_rows_ == 0 || request.kind != "targets" || labels_.Shape(1) == request.ranges.size())
        << "The request for an intercept is for another number of targets.";
  }

  [[nodiscard]] std::size_t NumRows() const { return n_rows_; }

  /** @param add add(k, value): what a row adds to the k-th sum. */
  template <typename AddFn>
  void Add(std::size_t i, AddFn&& add) const {
    if (request_.kind == "rows") {
      add(0, unit_);
    } else if (request_.kind == "cells") {
      add(CellOf(labels_(i, 0), request_), unit_);
    } else if (request_.kind == "range") {
      double label = request_.times ? times_[i] : labels_(i, 0);
      // One cell of every row, also of a label that is not a number, which is refused elsewhere.
      auto cell = std::upper_bound(request_.edges.cbegin(), request_.edges.cend(), label);
      add(static_cast<std::size_t>(cell - request_.edges.cbegin()), unit_);
    } else if (request_.num_class > 0) {
      auto label = labels_(i, 0);
      if (label >= 0 && label < static_cast<float>(request_.num_class)) {
        add(static_cast<std::size_t>(label), unit_);
      }
    } else {
      for (std::size_t k = 0; k < request_.ranges.size(); ++k) {
        double label = request_.times ? std::log(static_cast<double>(times_[i])) : labels_(i, k);
        add(k, OnGrid(label, request_.ranges[k], request_.shift));
      }
      if (!request_.n_public) {
        add(request_.NumLabels(), unit_);
      }
      if (request_.exposures) {
        add(request_.NumSums() - 1,
            OnGrid(std::exp(static_cast<double>(margins_(i, 0))),
                   {request_.exposure_lower, request_.exposure_upper}, request_.shift));
      }
    }
  }

 private:
  Request const& request_;
  std::size_t n_rows_;
  linalg::MatrixView<float const> labels_;
  common::Span<float const> times_;
  linalg::MatrixView<float const> margins_;
  std::int64_t unit_;
};

std::vector<LocalInt> LocalSums(MetaInfo const& info, Persons const* persons,
                                Request const& request) {
  RowSums rows{info, request};
  auto n_rows = rows.NumRows();
  CHECK(!persons || persons->NumRows() == n_rows);
  std::vector<LocalInt> sums(request.NumSums());
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (!persons || persons->RowsOf(i) == 1) {
      rows.Add(i, [&](auto k, auto value) { sums[k].value += value; });
    }
  }
  if (!persons) {
    return sums;
  }
  // A person adds the mean of its rows, each entry rounded towards zero.
  std::vector<std::int64_t> own(sums.size());
  auto const& several = persons->RowsOfSeveral();
  for (auto const& group : persons->Groups()) {
    auto n = static_cast<std::int64_t>(group.rows);
    for (std::size_t l = 0; l < group.persons; ++l) {
      auto each = [&](auto&& add) {
        for (std::size_t j = 0; j < group.rows; ++j) {
          rows.Add(several[group.At(j, l)], add);
        }
      };
      each([&](auto k, auto value) { own[k] += value; });
      each([&](auto k, auto) { sums[k].value += std::exchange(own[k], 0) / n; });
    }
  }
  return sums;
}

/** @brief The sum over rows of the share of its columns that a row has, each at most 2^shift. */
LocalInt PresentCells(Context const* ctx, DMatrix* p_fmat, Request const& request) {
  LocalInt sum{0};
  ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
    auto rows = page.GetView();
    for (std::size_t i = 0; i < rows.Size(); ++i) {
      std::int64_t present = 0;
      for (auto const& entry : rows[i]) {
        present += entry.fvalue != 0.0f ? 1 : 0;
      }
      sum.value += (std::min(present, request.columns) << request.shift) / request.columns;
    }
  });
  return sum;
}

/** @brief The largest integer a with k a^2 at most 4^shift: k sums of a have a norm of 2^shift. */
std::int64_t ShareOfEach(std::int64_t k, std::int32_t shift) {
  auto a =
      static_cast<std::int64_t>(std::sqrt(std::ldexp(1.0, 2 * shift) / static_cast<double>(k)));
  while (a * a > (std::int64_t{1} << (2 * shift)) / k) {
    --a;
  }
  return a;
}

/**
 * @brief For each class, and each column in it, the sum over the rows whose cell of the column is
 * above 0: 1 over the root of how many such cells a row has.
 */
std::vector<LocalInt> CellsOfColumns(Context const* ctx, DMatrix* p_fmat, Request const& request) {
  auto n_columns = static_cast<std::size_t>(request.columns);
  std::vector<LocalInt> sums(2 * n_columns);
  auto labels = p_fmat->Info().labels.HostView();
  std::vector<std::size_t> own;
  std::size_t row = 0;
  ForEachPage(ctx, p_fmat, [&](SparsePage const& page) {
    auto rows = page.GetView();
    for (std::size_t i = 0; i < rows.Size(); ++i, ++row) {
      auto of_class = labels(row, 0) > 0.5f ? n_columns : 0;
      own.clear();
      for (auto const& entry : rows[i]) {
        if (entry.fvalue >= std::numeric_limits<float>::min() && entry.index < n_columns) {
          own.push_back(of_class + entry.index);
        }
      }
      if (!own.empty()) {
        auto each = ShareOfEach(static_cast<std::int64_t>(own.size()), request.shift);
        for (auto k : own) {
          sums[k].value += each;
        }
      }
    }
  });
  return sums;
}

/**
 * @brief The draw of a request.
 *
 * A row adds one unit to one class count, or at most one unit to the sum of each target and one to
 * the count, and at most one to the cells that are present or to the exposures. A person adds a
 * mean of such rows, which may be of several classes. To the sums of its class by column a row adds
 * a vector of at most one unit.
 */
GaussianEvent InterceptEvent(Request const& request) {
  auto own = request.IsByColumn() || request.kind == "rows" || request.kind == "range";
  return {own ? request.kind : "intercept", request.sigma2};
}

/** @brief Which words of a known key its noise takes; no two releases share any. */
std::uint32_t StreamOf(Request const& request) {
  return request.IsByColumn()      ? kColumnsStream
         : request.kind == "range" ? kRangeStream
                                   : kInterceptStream;
}
}  // namespace

std::string ReleaseIntercept(Context const* ctx, std::shared_ptr<DMatrix> const& p_fmat,
                             std::shared_ptr<Persons const> const& persons,
                             std::string const& text) {
  auto const& info = p_fmat->Info();
  auto request = ParseRequest(text);
  CHECK((persons != nullptr) == request.of_persons)
      << "The request for an intercept and the DMatrix disagree on the unit of privacy: give the "
         "ids of persons as `dp_privacy_id`.";
  Release release{ctx,
                  request.noise_free,
                  request.test_key,
                  request.masking,
                  StreamOf(request),
                  request.of_persons};
  release.OpenPads(request.plan_id, false);  // the training goes on with them
  Persons::Keep(p_fmat, request.plan_id, persons, request.again);
  CheckNumRows(ctx, request.masking, info.num_row_, kMaxRows);
  Json out{Object{}};
  Array released;
  auto sums = request.IsByColumn() ? CellsOfColumns(ctx, p_fmat.get(), request)
                                   : LocalSums(info, persons.get(), request);
  if (!request.IsByColumn() && request.columns > 0) {
    sums.push_back(PresentCells(ctx, p_fmat.get(), request));
  }
  for (auto sum : release.AddNoise(InterceptEvent(request), sums).values) {
    released.GetArray().emplace_back(Integer{sum.Value()});
  }
  out["sums"] = Json{std::move(released)};
  auto recorded = release.SaveEvents();
  if (!get<Array const>(recorded).empty()) {
    out["event"] = get<Array const>(recorded).front();
  }
  std::string answer;
  Json::Dump(out, &answer);
  return answer;
}
}  // namespace xgboost::dp
