#include "plugin_cpp/mechanisms/label_sums.h"

#include <algorithm>  // for clamp, min
#include <cmath>      // for exp, floor, isfinite, isnan, ldexp, log, nearbyint
#include <map>        // for map
#include <optional>   // for optional
#include <utility>    // for move

#include "plugin_cpp/loss/loss.h"       // for LabelRange, ReadRanges
#include "plugin_cpp/plan/row_bound.h"  // for kMaxRows
#include "plugin_cpp/release/source.h"  // for kLabelSumsStream
#include "plugin_cpp/rows/raw_pages.h"  // for CheckNumRows, ForEachPage
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
namespace {
/**
 * @brief Scale a number from its range to [-1, 1] and convert it to an integer of at most 2^shift.
 */
std::int64_t OnGrid(double value, LabelRange range, std::int32_t shift) {
  double half = (range.upper - range.lower) / 2;
  double centred = (value - range.lower - half) / half;
  // NaN is refused elsewhere; here it must not break the bound. The logarithm of 0 and the
  // exponential of a large margin are infinite, and become an end.
  centred = std::isnan(centred) ? 0.0 : std::clamp(centred, -1.0, 1.0);
  return static_cast<std::int64_t>(std::nearbyint(std::ldexp(centred, shift)));
}

LabelRange ReadRange(JsonReader const& in, std::string const& name) {
  LabelRange range{in.Real(name + "_lower"), in.Real(name + "_upper")};
  CHECK_LT(range.lower, range.upper);
  return range;
}

std::size_t ReadCount(JsonReader const& in) { return in.Int("num_class", 2, 1 << 20); }

Json CountRows(Request const& request) {
  CHECK(!request.in.Has("public_num_rows"));
  return request.Noisy(request.Sum(1, [&](std::size_t, auto&& add) { add(0, request.One()); }));
}

Json CountClasses(Request const& request) {
  auto n_class = ReadCount(request.in);
  auto labels = request.Info().labels.HostView();
  return request.Noisy(request.Sum(n_class, [&](std::size_t i, auto&& add) {
    auto label = labels(i, 0);
    if (label >= 0 && label < static_cast<float>(n_class)) {
      add(static_cast<std::size_t>(label), request.One());
    }
  }));
}

/**
 * @brief Count labels in equal cells of their range. Labels outside the range count in the cells at
 *        its ends.
 */
Json CountCells(Request const& request) {
  auto range = ReadRange(request.in, "target");
  auto n_cells = ReadCount(request.in);
  auto labels = request.Info().labels.HostView();
  auto n = static_cast<double>(n_cells);
  return request.Noisy(request.Sum(n_cells, [&](std::size_t i, auto&& add) {
    double label = labels(i, 0);
    double cell = std::floor((label - range.lower) / (range.upper - range.lower) * n);
    // NaN is refused elsewhere.
    cell = std::isfinite(cell) ? std::clamp(cell, 0.0, n - 1.0)
                               : (label > range.upper ? n - 1.0 : 0.0);
    add(static_cast<std::size_t>(cell), request.One());
  }));
}

/**
 * @brief Sum labels scaled to [-1, 1], count the rows if their number is not public, and optionally
 *        sum exp(base_margin). A row adds at most one to each sum.
 *
 * @param ranges Range of the label, or of each target.
 * @param times  Whether to use the logarithms of the lower ends of intervals as labels.
 */
std::vector<LocalInt> SumLabels(Request const& request, std::vector<LabelRange> const& ranges,
                                bool times, std::optional<LabelRange> exposures) {
  bool counts_rows = !request.in.Has("public_num_rows");
  auto n_rows = request.Info().num_row_;
  auto labels = request.Info().labels.HostView();
  auto first_times = request.Info().labels_lower_bound_.ConstHostSpan();
  auto margins = request.Info().base_margin_.HostView();
  auto n_labels = ranges.size();
  CHECK(!times || first_times.size() == n_rows);
  CHECK(!exposures || margins.Shape(0) == n_rows);
  CHECK(n_rows == 0 || times || n_labels == 1 || labels.Shape(1) == n_labels)
      << "The release before the trees was requested for another number of targets.";
  auto n_sums = n_labels + (counts_rows ? 1 : 0) + (exposures ? 1 : 0);
  return request.Sum(n_sums, [&](std::size_t i, auto&& add) {
    for (std::size_t k = 0; k < n_labels; ++k) {
      double label = times ? std::log(static_cast<double>(first_times[i])) : labels(i, k);
      add(k, OnGrid(label, ranges[k], request.shift));
    }
    if (counts_rows) {
      add(n_labels, request.One());
    }
    if (exposures) {
      add(n_sums - 1,
          OnGrid(std::exp(static_cast<double>(margins(i, 0))), *exposures, request.shift));
    }
  });
}

/** @brief Sum over rows of the share of columns that are neither 0 nor missing. */
LocalInt PresentCells(Request const& request, std::int64_t n_columns) {
  LocalInt sum{0};
  ForEachPage(request.ctx, request.matrix, [&](SparsePage const& page) {
    auto view = page.GetView();
    for (std::size_t i = 0; i < view.Size(); ++i) {
      std::int64_t present = 0;
      for (auto const& entry : view[i]) {
        present += entry.fvalue != 0.0f ? 1 : 0;
      }
      sum.value += (std::min(present, n_columns) << request.shift) / n_columns;
    }
  });
  return sum;
}

Json SumBinary(Request const& request) {
  auto sums = SumLabels(request, {{0, 1}}, false, {});
  if (request.in.Has("columns")) {
    sums.push_back(PresentCells(request, request.in.Int("columns", 1, 1 << 30)));
  }
  return request.Noisy(sums);
}

Json SumTargets(Request const& request) {
  return request.Noisy(SumLabels(request, ReadRanges(request.in), false, {}));
}

Json SumRegression(Request const& request) {
  std::optional<LabelRange> exposures;
  if (request.in.Has("exposure_lower")) {
    exposures = ReadRange(request.in, "exposure");
  }
  bool times = request.in.Has("times") && request.in.Bool("times");
  return request.Noisy(SumLabels(request, {ReadRange(request.in, "target")}, times, exposures));
}

struct RequestKind {
  Json (*release)(Request const& request);  // reads its fields of the request first
  char const* name;                         // of the draw
  std::uint32_t stream;  // of the key; releases before the same trees have different streams
  bool reads_columns{
      false};  // if so, the privacy unit is a row, and the number of rows is not public
};

std::map<std::string, RequestKind> const kKinds{
    {"rows", {CountRows, "rows", kLabelSumsStream}},
    {"binary", {SumBinary, "intercept", kLabelSumsStream, true}},
    {"multiclass", {CountClasses, "intercept", kLabelSumsStream}},
    {"cells", {CountCells, "intercept", kLabelSumsStream}},
    {"targets", {SumTargets, "intercept", kLabelSumsStream}},
    {"regression", {SumRegression, "intercept", kLabelSumsStream}},
    {"range", {ReleaseLabelRange, "range", kLabelRangeStream}},
    {"columns", {ReleaseColumnSums, "columns", kColumnSumsStream, true}},
};

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
}  // namespace

Json Request::Noisy(std::vector<LocalInt> const& sums) const {
  Array out;
  for (auto sum : release->AddNoise(event, sums).values) {
    out.GetArray().emplace_back(Integer{sum.Value()});
  }
  return Json{std::move(out)};
}

std::string ReleaseBeforeTrees(Context const* ctx, std::shared_ptr<DMatrix> const& p_fmat,
                               std::shared_ptr<Persons const> const& persons,
                               std::string const& request_text) {
  auto json = Json::Load(StringView{request_text});
  JsonReader in{json, "request."};
  auto known_kind = kKinds.find(in.Text("kind"));
  CHECK(known_kind != kKinds.cend())
      << "The requested release before the trees has an unknown kind.";
  auto const& kind = known_kind->second;
  auto shift = static_cast<std::int32_t>(in.Int("shift", 0, 26));
  auto known = ReadKnownNoise(in);
  NoiseEvent event{kind.name, false, ReadSigma2(in, known.is_none)};
  auto person_level = in.Enum<bool>("unit", kUnits);
  auto plan_id = in.Text("plan_id");
  auto masking = ReadMasking(in.Part("masking"));
  CHECK(!in.Has("columns") || (kind.reads_columns && !in.Has("public_num_rows") && !person_level));
  CHECK((persons != nullptr) == person_level)
      << "The release before the trees and the DMatrix have different privacy units. Pass "
         "`dp_privacy_id` to `xgboost.train`, which sets both.";

  Release release{ctx, known.is_none, known.key, masking, kind.stream, person_level};
  release.OpenPads(plan_id, false);  // the training needs them too
  Persons::Keep(p_fmat, plan_id, persons, in.Has("again") && in.Bool("again"));
  CheckNumRows(ctx, masking, p_fmat->Info().num_row_, kMaxRows);
  Request request{in, ctx, p_fmat.get(), persons.get(), shift, event, &release};
  return Answer(kind.release(request), release);
}
}  // namespace xgboost::dp
