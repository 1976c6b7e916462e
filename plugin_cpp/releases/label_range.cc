/**
 * The number of labels, or of first times of intervals, between edges; of weights; or of both,
 * which have equally many: a row adds one to one of the cells of each.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for is_sorted, upper_bound
#include <cstddef>    // for size_t
#include <utility>    // for pair
#include <vector>     // for vector

#include "plugin_cpp/release/source.h"       // for kLabelRangeStream
#include "plugin_cpp/releases/label_sums.h"  // for Request, AddKind
#include "xgboost/json.h"                    // for Json
#include "xgboost/logging.h"                 // for CHECK

namespace xgboost::dp {
namespace {
Json CountBetween(Request const& asked) {
  constexpr double kLargest = 1e38;
  bool times = asked.in.Has("times") && asked.in.Bool("times");
  std::vector<std::pair<bool, std::vector<double>>> lists;  // whether of weights, and their edges
  for (auto [key, of_weights] : {std::pair{"edges", false}, {"weight_edges", true}}) {
    if (asked.in.Has(key)) {
      lists.emplace_back(of_weights, asked.in.Reals(key, -kLargest, kLargest));
    }
  }
  CHECK(!lists.empty());
  std::size_t n_cells = asked.in.Int("num_class", 2, 1 << 20);
  for (auto const& [of_weights, edges] : lists) {
    CHECK((edges.size() + 1) * lists.size() == n_cells);
    CHECK(std::is_sorted(edges.cbegin(), edges.cend()));
  }
  auto labels = asked.Info().labels.HostView();
  auto first_times = asked.Info().labels_lower_bound_.ConstHostSpan();
  auto weights = asked.Info().weights_.ConstHostSpan();
  CHECK(!times || first_times.size() == asked.Info().num_row_);
  return asked.Noisy(asked.Sum(n_cells, [&](std::size_t i, auto&& add) {
    std::size_t first = 0;
    for (auto const& [of_weights, edges] : lists) {
      double number = of_weights ? (weights.empty() ? 1.0f : weights[i])
                      : times    ? first_times[i]
                                 : labels(i, 0);
      // One cell of every row, also of what is not a number, which is refused elsewhere.
      auto cell = std::upper_bound(edges.cbegin(), edges.cend(), number) - edges.cbegin();
      add(first + static_cast<std::size_t>(cell), asked.One());
      first += edges.size() + 1;
    }
  }));
}

AddKind const kAdded{"range", {CountBetween, "range", kLabelRangeStream}};
}  // namespace
}  // namespace xgboost::dp
