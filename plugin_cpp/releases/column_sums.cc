/**
 * For each of two classes, and each column in it, the sum over the rows whose cell of the column is
 * above 0: 1 over the root of how many such cells a row has. So a row adds a vector of at most one.
 * The unit is a row.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint64_t
#include <limits>   // for numeric_limits
#include <vector>   // for vector

#include "plugin_cpp/random/samplers.h"      // for IntegerSqrt
#include "plugin_cpp/release/source.h"       // for kColumnSumsStream
#include "plugin_cpp/releases/label_sums.h"  // for Request, AddKind
#include "plugin_cpp/rows/raw_pages.h"       // for ForEachPage
#include "xgboost/json.h"                    // for Json

namespace xgboost::dp {
namespace {
Json CellsByColumn(Request const& asked) {
  auto n_columns = static_cast<std::size_t>(asked.in.Int("columns", 1, 1 << 30));
  std::vector<LocalInt> sums(2 * n_columns);
  auto labels = asked.Info().labels.HostView();
  std::vector<std::size_t> places;
  std::size_t row = 0;
  ForEachPage(asked.ctx, asked.matrix, [&](SparsePage const& page) {
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
      auto square = std::uint64_t{1} << (2 * asked.shift);
      std::int64_t each = places.empty() ? 0 : IntegerSqrt(square / places.size());
      for (auto k : places) {
        sums[k].value += each;
      }
    }
  });
  return asked.Noisy(sums);
}

AddKind const kAdded{"columns", {CellsByColumn, "columns", kColumnSumsStream, true, true}};
}  // namespace
}  // namespace xgboost::dp
