#include "plugin_cpp/mechanisms/candidates/discovery.h"

#include <cmath>    // for isnan, ldexp
#include <utility>  // for move
#include <vector>   // for vector

#include "plugin_cpp/json_reader.h"                          // for JsonReader, ReadKnownNoise
#include "plugin_cpp/mechanisms/candidates/quantile_tree.h"  // for KeyCells, WalkQuantileTrees, ToJson
#include "plugin_cpp/plan/plan.h"                            // for QuantilePlan
#include "plugin_cpp/plan/row_bound.h"                       // for kMaxRows
#include "plugin_cpp/release/release.h"                      // for Release, LocalInt
#include "plugin_cpp/release/source.h"                       // for kDiscoveryStream
#include "plugin_cpp/rows/raw_pages.h"                       // for CheckNumRows
#include "xgboost/json.h"                                    // for Json, Object, Array, Number
#include "xgboost/logging.h"                                 // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::int64_t kMaxColumns = 1 << 16;

/** @brief Exact sums of the weights of a column by the leading bits of its keys. */
struct ColumnSums {
  std::vector<std::int64_t> below;  // cumulative sums of cells
  std::int64_t missing{0};

  ColumnSums(common::Span<float const> values, common::Span<std::int64_t const> weights,
             std::int32_t key_bits, KeyCells const& cell)
      : below((std::size_t{1} << key_bits) + 1, 0) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        missing += weights[i];
      } else {
        below[cell(values[i]) + 1] += weights[i];
      }
    }
    for (std::size_t c = 1; c < below.size(); ++c) {
      below[c] += below[c - 1];
    }
  }
};

}  // namespace

std::string DiscoverNumbers(Context const* ctx, common::Span<float const> values,
                            common::Span<std::int64_t const> weights, std::size_t n_columns,
                            std::string const& text) {
  auto json = Json::Load(StringView{text});
  JsonReader in{json, "discovery."};
  auto known = ReadKnownNoise(in);
  QuantilePlan plan{in, known.is_none};
  auto n_rows = weights.size();
  CHECK(n_columns > 0 && n_columns <= kMaxColumns) << "The number of columns is 0 or too large.";
  CHECK_LT(std::ldexp(static_cast<double>(n_columns) * plan.levels, 2 * plan.shift), 4.6e18)
      << "The sensitivity of the discovery overflows.";
  CHECK_EQ(values.size(), n_rows * n_columns) << "Every column must have one value per row.";
  CheckNumRows(ctx, Masking{}, n_rows, kMaxRows);
  for (auto weight : weights) {
    CHECK(weight >= 0 && weight <= std::int64_t{1} << plan.shift)
        << "The weight of a row is out of range.";
  }
  auto key_bits = plan.levels - 1;
  KeyCells cells{plan.levels};
  std::vector<ColumnSums> columns;
  for (std::size_t k = 0; k < n_columns; ++k) {
    columns.emplace_back(values.subspan(k * n_rows, n_rows), weights, key_bits, cells);
  }
  Release release{ctx, known.is_none, known.key, Masking{}, kDiscoveryStream, in.Bool("persons")};
  // All levels of all trees are one release; an exchange is a part.
  std::size_t part = 0;
  auto noise = [&](std::vector<LocalInt> const& exact) {
    return release.AddNoise({"ranges", false, plan.sigma2}, exact, part++);
  };
  auto count = [&](std::size_t k, std::int32_t level, std::uint64_t cell) {
    auto width = key_bits - level;
    auto const& below = columns[k].below;
    return below[(cell + 1) << width] - below[cell << width];
  };
  auto trees = WalkQuantileTrees(plan, std::vector<KeyCells>(n_columns, cells), count, noise);
  std::vector<LocalInt> missing;
  for (auto const& column : columns) {
    missing.emplace_back(column.missing);
  }
  auto absent = noise(missing).values;
  Json out{Object{}};
  Array listed;
  for (std::size_t k = 0; k < n_columns; ++k) {
    auto column = ToJson(trees[k]);
    auto missing_of_column = std::ldexp(static_cast<double>(absent[k].Value()), -plan.shift);
    column["missing"] = Number{static_cast<float>(missing_of_column)};
    listed.GetArray().emplace_back(std::move(column));
  }
  out["columns"] = Json{std::move(listed)};
  out["events"] = release.SaveEvents();
  std::string answer;
  Json::Dump(out, &answer);
  return answer;
}
}  // namespace xgboost::dp
