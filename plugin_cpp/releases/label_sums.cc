#include "plugin_cpp/releases/label_sums.h"

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
/** @brief A number of a range as one on [-1, 1]: a grid integer of at most 2^shift. */
std::int64_t OnGrid(double value, LabelRange range, std::int32_t shift) {
  double half = (range.upper - range.lower) / 2;
  double centred = (value - range.lower - half) / half;
  // What is not a number is refused elsewhere; here it must only not break the bound. The
  // logarithm of a time of 0 and the exponential of a large margin are infinite, and at an end.
  centred = std::isnan(centred) ? 0.0 : std::clamp(centred, -1.0, 1.0);
  return static_cast<std::int64_t>(std::nearbyint(std::ldexp(centred, shift)));
}

LabelRange ReadRange(JsonReader const& in, std::string const& name) {
  LabelRange range{in.Real(name + "_lower"), in.Real(name + "_upper")};
  CHECK_LT(range.lower, range.upper);
  return range;
}

std::size_t ReadCount(JsonReader const& in) { return in.Int("num_class", 2, 1 << 20); }

/** @brief The number of rows: each adds one. */
Json CountRows(Request const& asked) {
  CHECK(!asked.in.Has("n_public"));
  return asked.Noisy(asked.Sum(1, [&](std::size_t, auto&& add) { add(0, asked.One()); }));
}

/** @brief The number of rows of each class: a row adds one to one of them. */
Json CountClasses(Request const& asked) {
  auto n_class = ReadCount(asked.in);
  auto labels = asked.Info().labels.HostView();
  return asked.Noisy(asked.Sum(n_class, [&](std::size_t i, auto&& add) {
    auto label = labels(i, 0);
    if (label >= 0 && label < static_cast<float>(n_class)) {
      add(static_cast<std::size_t>(label), asked.One());
    }
  }));
}

/**
 * @brief The number of labels in equal cells of their range, those beyond it at its ends: a row
 *        adds one to one of them.
 */
Json CountCells(Request const& asked) {
  auto range = ReadRange(asked.in, "target");
  auto n_cells = ReadCount(asked.in);
  auto labels = asked.Info().labels.HostView();
  auto n = static_cast<double>(n_cells);
  return asked.Noisy(asked.Sum(n_cells, [&](std::size_t i, auto&& add) {
    double label = labels(i, 0);
    double cell = std::floor((label - range.lower) / (range.upper - range.lower) * n);
    // A label that is not a number is refused elsewhere.
    cell = std::isfinite(cell) ? std::clamp(cell, 0.0, n - 1.0)
                               : (label > range.upper ? n - 1.0 : 0.0);
    add(static_cast<std::size_t>(cell), asked.One());
  }));
}

/**
 * @brief The sums of labels on [-1, 1], then the number of rows where nobody knows it, and the sum
 *        of exp(base_margin) where it is asked for: a row adds at most one to each.
 *
 * @param ranges Of the label, or of each of several targets.
 * @param times  Whether labels are logarithms of the first times of intervals.
 */
std::vector<LocalInt> SumLabels(Request const& asked, std::vector<LabelRange> const& ranges,
                                bool times, std::optional<LabelRange> exposures) {
  bool of_rows = !asked.in.Has("n_public");
  auto n_rows = asked.Info().num_row_;
  auto labels = asked.Info().labels.HostView();
  auto first_times = asked.Info().labels_lower_bound_.ConstHostSpan();
  auto margins = asked.Info().base_margin_.HostView();
  auto n_labels = ranges.size();
  CHECK(!times || first_times.size() == n_rows);
  CHECK(!exposures || margins.Shape(0) == n_rows);
  CHECK(n_rows == 0 || times || n_labels == 1 || labels.Shape(1) == n_labels)
      << "The request for an intercept is for another number of targets.";
  auto n_sums = n_labels + (of_rows ? 1 : 0) + (exposures ? 1 : 0);
  return asked.Sum(n_sums, [&](std::size_t i, auto&& add) {
    for (std::size_t k = 0; k < n_labels; ++k) {
      double label = times ? std::log(static_cast<double>(first_times[i])) : labels(i, k);
      add(k, OnGrid(label, ranges[k], asked.shift));
    }
    if (of_rows) {
      add(n_labels, asked.One());
    }
    if (exposures) {
      add(n_sums - 1,
          OnGrid(std::exp(static_cast<double>(margins(i, 0))), *exposures, asked.shift));
    }
  });
}

/** @brief The sum of the share of its columns that a row has: cells neither 0 nor missing. */
LocalInt PresentCells(Request const& asked, std::int64_t n_columns) {
  LocalInt sum{0};
  ForEachPage(asked.ctx, asked.matrix, [&](SparsePage const& page) {
    auto view = page.GetView();
    for (std::size_t i = 0; i < view.Size(); ++i) {
      std::int64_t present = 0;
      for (auto const& entry : view[i]) {
        present += entry.fvalue != 0.0f ? 1 : 0;
      }
      sum.value += (std::min(present, n_columns) << asked.shift) / n_columns;
    }
  });
  return sum;
}

Json SumBinary(Request const& asked) {
  auto sums = SumLabels(asked, {{0, 1}}, false, {});
  if (asked.in.Has("columns")) {
    sums.push_back(PresentCells(asked, asked.in.Int("columns", 1, 1 << 30)));
  }
  return asked.Noisy(sums);
}

Json SumTargets(Request const& asked) {
  return asked.Noisy(SumLabels(asked, ReadRanges(asked.in), false, {}));
}

Json SumRegression(Request const& asked) {
  std::optional<LabelRange> exposures;
  if (asked.in.Has("exposure_lower")) {
    exposures = ReadRange(asked.in, "exposure");
  }
  bool times = asked.in.Has("times") && asked.in.Bool("times");
  return asked.Noisy(SumLabels(asked, {ReadRange(asked.in, "target")}, times, exposures));
}

constexpr RequestKind Intercept(Json (*release)(Request const&), bool reads_columns = false) {
  return {release, "intercept", kLabelSumsStream, true, reads_columns};
}

AddKind const kRows{"rows", {CountRows, "rows", kLabelSumsStream}};
AddKind const kBinary{"binary", Intercept(SumBinary, true)},
    kClasses{"multiclass", Intercept(CountClasses)}, kCells{"cells", Intercept(CountCells)},
    kTargets{"targets", Intercept(SumTargets)}, kRegression{"regression", Intercept(SumRegression)};

std::map<std::string, RequestKind>& Kinds() {
  static std::map<std::string, RequestKind> all;
  return all;
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
}  // namespace

AddKind::AddKind(char const* kind, RequestKind how) {
  CHECK(Kinds().emplace(kind, how).second) << "Two files add the same kind of request.";
}

Json Request::Noisy(std::vector<LocalInt> const& sums) const {
  Array out;
  for (auto sum : release->AddNoise(event, sums).values) {
    out.GetArray().emplace_back(Integer{sum.Value()});
  }
  return Json{std::move(out)};
}

std::string ReleaseBeforeTrees(Context const* ctx, std::shared_ptr<DMatrix> const& p_fmat,
                               std::shared_ptr<Persons const> const& persons,
                               std::string const& text) {
  auto json = Json::Load(StringView{text});
  JsonReader in{json, "request."};
  auto known_kind = Kinds().find(in.Text("kind"));
  CHECK(known_kind != Kinds().cend()) << "The request before the trees is of an unknown kind.";
  auto const& kind = known_kind->second;
  auto shift = static_cast<std::int32_t>(in.Int("shift", 0, 26));
  auto known = ReadKnownNoise(in);
  NoiseEvent event{kind.name, false, ReadSigma2(in, known.is_none)};
  auto person_level = in.Enum<bool>("unit", {{"row", false}, {"person", true}});
  auto plan_id = in.Text("plan_id");
  auto masking = ReadMasking(in.Part("masking"));
  CHECK(kind.may_be_masked || !masking.IsOn()) << "This release has no masked sums.";
  CHECK(!in.Has("columns") || (kind.reads_columns && !in.Has("n_public") && !person_level));
  CHECK((persons != nullptr) == person_level)
      << "The request before the trees and the DMatrix disagree on the unit of privacy: give the "
         "ids of persons as `dp_privacy_id`.";

  Release release{ctx, known.is_none, known.key, masking, kind.stream, person_level};
  release.OpenPads(plan_id, false);  // the training goes on with them
  Persons::Keep(p_fmat, plan_id, persons, in.Has("again") && in.Bool("again"));
  CheckNumRows(ctx, masking, p_fmat->Info().num_row_, kMaxRows);
  Request asked{in, ctx, p_fmat.get(), persons.get(), shift, event, &release};
  return Answer(kind.release(asked), release);
}
}  // namespace xgboost::dp
