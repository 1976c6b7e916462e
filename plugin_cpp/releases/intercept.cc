#include "plugin_cpp/releases/intercept.h"

#include <algorithm>  // for clamp, upper_bound
#include <cmath>      // for exp, floor, isfinite, isnan, ldexp, log, nearbyint

#include "plugin_cpp/rows/unit_sums.h"  // for SumUnits
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
namespace {
/** @brief A number of a range as one on [-1, 1]: a grid integer of at most 2^shift. */
std::int64_t OnGrid(double value, LabelRange range, std::int32_t shift) {
  double half = (range.upper - range.lower) / 2;
  double centred = (value - range.lower - half) / half;
  // What is not a number is refused elsewhere; here it must only not break the bound. The logarithm
  // of a time of 0 and the exponential of a large margin are infinite, and at an end.
  centred = std::isnan(centred) ? 0.0 : std::clamp(centred, -1.0, 1.0);
  return static_cast<std::int64_t>(std::nearbyint(std::ldexp(centred, shift)));
}

template <typename AddRow>
std::vector<LocalInt> SumRows(UnitRows const& rows, std::size_t n_sums, AddRow&& add_row) {
  return SumUnits(rows.ctx, rows.matrix->Info().num_row_, rows.persons, n_sums, add_row);
}
}  // namespace

std::vector<LocalInt> CountRows(UnitRows const& rows) {
  return SumRows(rows, 1, [&](std::size_t, auto&& add) { add(0, rows.One()); });
}

std::vector<LocalInt> CountClasses(UnitRows const& rows, std::size_t n_class) {
  auto labels = rows.matrix->Info().labels.HostView();
  return SumRows(rows, n_class, [&](std::size_t i, auto&& add) {
    auto label = labels(i, 0);
    if (label >= 0 && label < static_cast<float>(n_class)) {
      add(static_cast<std::size_t>(label), rows.One());
    }
  });
}

std::vector<LocalInt> CountCells(UnitRows const& rows, LabelRange range, std::size_t n_cells) {
  auto labels = rows.matrix->Info().labels.HostView();
  auto n = static_cast<double>(n_cells);
  return SumRows(rows, n_cells, [&](std::size_t i, auto&& add) {
    double label = labels(i, 0);
    double cell = std::floor((label - range.lower) / (range.upper - range.lower) * n);
    // A label that is not a number is refused elsewhere.
    cell = std::isfinite(cell) ? std::clamp(cell, 0.0, n - 1.0)
                               : (label > range.upper ? n - 1.0 : 0.0);
    add(static_cast<std::size_t>(cell), rows.One());
  });
}

std::vector<LocalInt> CountBetween(UnitRows const& rows, std::vector<RowCells> const& lists) {
  auto const& info = rows.matrix->Info();
  auto labels = info.labels.HostView();
  auto times = info.labels_lower_bound_.ConstHostSpan();
  auto weights = info.weights_.ConstHostSpan();
  std::size_t n_cells = 0;
  for (auto const& list : lists) {
    CHECK(list.of != RowCells::Of::kTime || times.size() == info.num_row_);
    n_cells += list.edges.size() + 1;
  }
  auto number = [&](RowCells::Of of, std::size_t i) -> double {
    switch (of) {
      case RowCells::Of::kTime:
        return times[i];
      case RowCells::Of::kWeight:
        return weights.empty() ? 1.0 : weights[i];
      default:
        return labels(i, 0);
    }
  };
  return SumRows(rows, n_cells, [&](std::size_t i, auto&& add) {
    std::size_t first = 0;
    for (auto const& [of, edges] : lists) {
      // One cell of every row, also of what is not a number, which is refused elsewhere.
      auto cell = std::upper_bound(edges.cbegin(), edges.cend(), number(of, i));
      add(first + static_cast<std::size_t>(cell - edges.cbegin()), rows.One());
      first += edges.size() + 1;
    }
  });
}

std::vector<LocalInt> SumLabels(UnitRows const& rows, LabelSums const& asked) {
  auto const& info = rows.matrix->Info();
  auto n_rows = info.num_row_;
  auto labels = info.labels.HostView();
  auto times = info.labels_lower_bound_.ConstHostSpan();
  auto margins = info.base_margin_.HostView();
  auto n_labels = asked.ranges.size();
  CHECK(!asked.times || times.size() == n_rows);
  CHECK(!asked.exposures || margins.Shape(0) == n_rows);
  CHECK(n_rows == 0 || asked.times || n_labels == 1 || labels.Shape(1) == n_labels)
      << "The request for an intercept is for another number of targets.";
  auto n_sums = n_labels + (asked.of_rows ? 1 : 0) + (asked.exposures ? 1 : 0);
  return SumRows(rows, n_sums, [&](std::size_t i, auto&& add) {
    for (std::size_t k = 0; k < n_labels; ++k) {
      double label = asked.times ? std::log(static_cast<double>(times[i])) : labels(i, k);
      add(k, OnGrid(label, asked.ranges[k], rows.shift));
    }
    if (asked.of_rows) {
      add(n_labels, rows.One());
    }
    if (asked.exposures) {
      add(n_sums - 1,
          OnGrid(std::exp(static_cast<double>(margins(i, 0))), *asked.exposures, rows.shift));
    }
  });
}
}  // namespace xgboost::dp
