/**
 * Sums for each column and each of two classes, over the rows with a cell above 0. A row with n
 * such cells adds 1 / sqrt(n) for each of them, so it adds a vector of norm at most one. The
 * privacy unit is a row.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint64_t
#include <limits>   // for numeric_limits
#include <vector>   // for vector

#include "plugin_cpp/mechanisms/label_sums.h"  // for Request
#include "plugin_cpp/random/samplers.h"        // for IntegerSqrt
#include "plugin_cpp/rows/raw_pages.h"         // for ForEachPage
#include "xgboost/json.h"                      // for Json

namespace xgboost::dp {
Json ReleaseColumnSums(Request const& request) {
  auto n_columns = static_cast<std::size_t>(request.in.Int("columns", 1, 1 << 30));
  std::vector<LocalInt> sums(2 * n_columns);
  auto labels = request.Info().labels.HostView();
  std::vector<std::size_t> cells;
  std::size_t row = 0;
  ForEachPage(request.ctx, request.matrix, [&](SparsePage const& page) {
    auto view = page.GetView();
    for (std::size_t i = 0; i < view.Size(); ++i, ++row) {
      auto first_column = labels(row, 0) > 0.5f ? n_columns : 0;
      cells.clear();
      for (auto const& entry : view[i]) {
        if (entry.fvalue >= std::numeric_limits<float>::min() && entry.index < n_columns) {
          cells.push_back(first_column + entry.index);
        }
      }
      // The norm of the row is at most 2^shift.
      auto square = std::uint64_t{1} << (2 * request.shift);
      std::int64_t each = cells.empty() ? 0 : IntegerSqrt(square / cells.size());
      for (auto k : cells) {
        sums[k].value += each;
      }
    }
  });
  return request.Noisy(sums);
}
}  // namespace xgboost::dp
