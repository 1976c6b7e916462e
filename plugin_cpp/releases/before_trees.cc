#include "plugin_cpp/releases/before_trees.h"

#include <algorithm>   // for is_sorted
#include <functional>  // for function
#include <utility>     // for move
#include <vector>      // for vector

#include "plugin_cpp/json_reader.h"           // for JsonReader, ReadSigma2, ReadMasking
#include "plugin_cpp/loss/loss.h"             // for ReadRanges
#include "plugin_cpp/plan/row_bound.h"        // for kMaxRows
#include "plugin_cpp/release/release.h"       // for Release, GaussianEvent, LocalInt
#include "plugin_cpp/release/source.h"        // for kColumnsStream, kInterceptStream, kRangeStream
#include "plugin_cpp/releases/column_sums.h"  // for CellsByColumn, PresentCells
#include "plugin_cpp/releases/intercept.h"    // for UnitRows, CountRows, CountCells, SumLabels
#include "plugin_cpp/rows/raw_pages.h"        // for CheckNumRows
#include "xgboost/json.h"                     // for Json
#include "xgboost/logging.h"                  // for CHECK

namespace xgboost::dp {
namespace {
using Sums = std::function<std::vector<LocalInt>(UnitRows const&)>;

LabelRange ReadRange(JsonReader const& in, std::string const& name) {
  LabelRange range{in.Real(name + "_lower"), in.Real(name + "_upper")};
  CHECK_LT(range.lower, range.upper);
  return range;
}

/** @brief Cells of labels, of weights, or of both, which have equally many. */
std::vector<RowCells> ReadCells(JsonReader const& in, RowCells::Of of_label) {
  constexpr double kLargest = 1e38;
  std::vector<RowCells> lists;
  for (auto [key, of] : {std::pair{"edges", of_label}, {"weight_edges", RowCells::Of::kWeight}}) {
    if (in.Has(key)) {
      lists.push_back({of, in.Reals(key, -kLargest, kLargest)});
    }
  }
  CHECK(!lists.empty());
  auto n_cells = static_cast<std::size_t>(in.Int("num_class", 2, 1 << 20));
  for (auto const& [of, edges] : lists) {
    CHECK((edges.size() + 1) * lists.size() == n_cells);
    CHECK(std::is_sorted(edges.cbegin(), edges.cend()));
  }
  return lists;
}

Sums ReadSums(JsonReader const& in, std::string const& kind) {
  if (kind == "rows") {
    CHECK(!in.Has("n_public"));
    return CountRows;
  }
  if (kind == "columns") {
    auto columns = in.Int("columns", 1, 1 << 30);
    return [=](UnitRows const& rows) { return CellsByColumn(rows, columns); };
  }
  bool times = in.Has("times") && in.Bool("times");
  if (kind == "range") {
    auto lists = ReadCells(in, times ? RowCells::Of::kTime : RowCells::Of::kLabel);
    return [=](UnitRows const& rows) { return CountBetween(rows, lists); };
  }
  if (kind == "multiclass" || kind == "cells") {
    auto n = static_cast<std::size_t>(in.Int("num_class", 2, 1 << 20));
    if (kind == "multiclass") {
      return [=](UnitRows const& rows) { return CountClasses(rows, n); };
    }
    auto range = ReadRange(in, "target");
    return [=](UnitRows const& rows) { return CountCells(rows, range, n); };
  }
  LabelSums asked;
  asked.of_rows = !in.Has("n_public");
  if (kind == "targets") {
    asked.ranges = ReadRanges(in);
  } else if (kind == "regression") {
    asked.ranges = {ReadRange(in, "target")};
    asked.times = times;
    if (in.Has("exposure_lower")) {
      asked.exposures = ReadRange(in, "exposure");
    }
  } else {
    CHECK_EQ(kind, "binary");
  }
  return [=](UnitRows const& rows) { return SumLabels(rows, asked); };
}

/** @brief How many columns there are where their cells that are present are summed, else 0. */
std::int64_t ReadPresent(JsonReader const& in, std::string const& kind, bool of_persons) {
  if (!in.Has("columns")) {
    return 0;
  }
  CHECK(!in.Has("n_public") && !of_persons && (kind == "binary" || kind == "columns"));
  return kind == "columns" ? 0 : in.Int("columns", 1, 1 << 30);
}
}  // namespace

std::string ReleaseBeforeTrees(Context const* ctx, std::shared_ptr<DMatrix> const& p_fmat,
                               std::shared_ptr<Persons const> const& persons,
                               std::string const& text) {
  auto json = Json::Load(StringView{text});
  JsonReader in{json, "intercept."};
  auto kind = in.Text("kind");
  auto sums_of = ReadSums(in, kind);
  auto shift = static_cast<std::int32_t>(in.Int("shift", 0, 26));
  auto known = ReadKnownNoise(in);
  bool own = kind == "rows" || kind == "columns" || kind == "range";
  GaussianEvent event{own ? kind : "intercept", ReadSigma2(in, known.is_none)};
  auto of_persons = in.Enum<bool>("unit", {{"row", false}, {"person", true}});
  auto columns = ReadPresent(in, kind, of_persons);
  auto plan_id = in.Text("plan_id");
  auto masking = ReadMasking(JsonReader{in.At("masking"), "masking."});
  CHECK((persons != nullptr) == of_persons)
      << "The request for an intercept and the DMatrix disagree on the unit of privacy: give the "
         "ids of persons as `dp_privacy_id`.";

  // Which words of a known key its noise takes; no two releases share any.
  auto stream = kind == "columns" ? kColumnsStream
                : kind == "range" ? kRangeStream
                                  : kInterceptStream;
  Release release{ctx, known.is_none, known.key, masking, stream, of_persons};
  release.OpenPads(plan_id, false);  // the training goes on with them
  Persons::Keep(p_fmat, plan_id, persons, in.Has("again") && in.Bool("again"));
  CheckNumRows(ctx, masking, p_fmat->Info().num_row_, kMaxRows);
  UnitRows rows{ctx, p_fmat.get(), persons.get(), shift};
  auto sums = sums_of(rows);
  if (columns > 0) {
    sums.push_back(PresentCells(rows, columns));
  }
  Json out{Object{}};
  Array released;
  for (auto sum : release.AddNoise(event, sums).values) {
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
