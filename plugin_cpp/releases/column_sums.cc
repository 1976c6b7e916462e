#include "plugin_cpp/releases/column_sums.h"

#include <algorithm>  // for min
#include <cmath>      // for ldexp, sqrt
#include <cstddef>    // for size_t
#include <limits>     // for numeric_limits

#include "plugin_cpp/rows/raw_pages.h"  // for ForEachPage

namespace xgboost::dp {
namespace {
/** @brief The largest integer a with k a^2 at most 4^shift: k sums of a have a norm of 2^shift. */
std::int64_t ShareOfEach(std::int64_t k, std::int32_t shift) {
  auto a =
      static_cast<std::int64_t>(std::sqrt(std::ldexp(1.0, 2 * shift) / static_cast<double>(k)));
  while (a * a > (std::int64_t{1} << (2 * shift)) / k) {
    --a;
  }
  return a;
}
}  // namespace

std::vector<LocalInt> CellsByColumn(UnitRows const& rows, std::int64_t columns) {
  auto n_columns = static_cast<std::size_t>(columns);
  std::vector<LocalInt> sums(2 * n_columns);
  auto labels = rows.matrix->Info().labels.HostView();
  std::vector<std::size_t> own;
  std::size_t row = 0;
  ForEachPage(rows.ctx, rows.matrix, [&](SparsePage const& page) {
    auto view = page.GetView();
    for (std::size_t i = 0; i < view.Size(); ++i, ++row) {
      auto of_class = labels(row, 0) > 0.5f ? n_columns : 0;
      own.clear();
      for (auto const& entry : view[i]) {
        if (entry.fvalue >= std::numeric_limits<float>::min() && entry.index < n_columns) {
          own.push_back(of_class + entry.index);
        }
      }
      if (!own.empty()) {
        auto each = ShareOfEach(static_cast<std::int64_t>(own.size()), rows.shift);
        for (auto k : own) {
          sums[k].value += each;
        }
      }
    }
  });
  return sums;
}

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
}  // namespace xgboost::dp
