/**
 * Counts between public edges: of labels (or the lower ends of intervals), of weights, or of both
 * with the same number of edges. A row adds one to a single cell of each.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for is_sorted, upper_bound
#include <cstddef>    // for size_t
#include <utility>    // for pair
#include <vector>     // for vector

#include "plugin_cpp/mechanisms/label_sums.h"  // for Request
#include "xgboost/json.h"                      // for Json
#include "xgboost/logging.h"                   // for CHECK

namespace xgboost::dp {
Json ReleaseLabelRange(Request const& request) {
  constexpr double kLargest = 1e38;
  bool times = request.in.Has("times") && request.in.Bool("times");
  std::vector<std::pair<bool, std::vector<double>>>
      lists;  // whether the edges are for weights; the edges
  for (auto [key, is_weight] : {std::pair{"edges", false}, {"weight_edges", true}}) {
    if (request.in.Has(key)) {
      lists.emplace_back(is_weight, request.in.Reals(key, -kLargest, kLargest));
    }
  }
  CHECK(!lists.empty());
  std::size_t n_cells = request.in.Int("num_class", 2, 1 << 20);
  for (auto const& [is_weight, edges] : lists) {
    CHECK((edges.size() + 1) * lists.size() == n_cells);
    CHECK(std::is_sorted(edges.cbegin(), edges.cend()));
  }
  auto labels = request.Info().labels.HostView();
  auto first_times = request.Info().labels_lower_bound_.ConstHostSpan();
  auto weights = request.Info().weights_.ConstHostSpan();
  CHECK(!times || first_times.size() == request.Info().num_row_);
  return request.Noisy(request.Sum(n_cells, [&](std::size_t i, auto&& add) {
    std::size_t first = 0;
    for (auto const& [is_weight, edges] : lists) {
      double number = is_weight ? (weights.empty() ? 1.0f : weights[i])
                      : times   ? first_times[i]
                                : labels(i, 0);
      // Every row has a cell, even with NaN, which is refused elsewhere.
      auto cell = std::upper_bound(edges.cbegin(), edges.cend(), number) - edges.cbegin();
      add(first + static_cast<std::size_t>(cell), request.One());
      first += edges.size() + 1;
    }
  }));
}
}  // namespace xgboost::dp
