#include "plugin_cpp/releases/candidates/histogram_cuts.h"

#include <algorithm>  // for max, max_element
#include <cmath>      // for abs
#include <cstddef>    // for size_t
#include <limits>     // for numeric_limits

namespace xgboost::dp {
std::vector<float> EqualMassCuts(std::vector<float> const& edges, std::vector<NoisyInt> const& mass,
                                 std::int32_t max_bin) {
  std::int64_t total{0};
  for (auto m : mass) {
    total += std::max<std::int64_t>(m.Value(), 0);
  }
  // Whole numbers: mass passed since the last cut against total / max_bin.
  std::int64_t passed{0};
  std::vector<float> cuts;
  for (std::size_t i = 0; i + 1 < mass.size(); ++i) {
    passed += std::max<std::int64_t>(mass[i].Value(), 0);
    if (passed > 0 && static_cast<double>(passed) * max_bin >= static_cast<double>(total)) {
      cuts.push_back(edges[i + 1]);
      passed = 0;
    }
  }
  return cuts;
}

namespace {
/** @brief A bin, or light neighbours merged to one, and the pieces that it is cut into. */
struct Merged {
  float begin, end;
  double mass;
  std::int32_t pieces;
};

std::vector<Merged> MergeLight(std::vector<float> const& edges, std::vector<NoisyInt> const& mass,
                               double target) {
  std::vector<Merged> out;
  float begin = edges.front();
  double passed{0};
  auto close = [&](float end) {
    out.push_back({begin, end, passed, 1});
    begin = end;
    passed = 0;
  };
  for (std::size_t i = 0; i < mass.size(); ++i) {
    auto m = static_cast<double>(mass[i].Value());
    if (m >= target && begin < edges[i]) {
      close(edges[i]);  // a heavy bin stands alone
    }
    passed += m;
    if (passed >= target || i + 1 == mass.size()) {
      close(edges[i + 1]);
    }
  }
  return out;
}
}  // namespace

std::vector<float> RefineEdges(std::vector<float> const& edges, std::vector<NoisyInt> const& mass,
                               std::int32_t max_bin) {
  double total{0};
  for (auto m : mass) {
    total += static_cast<double>(m.Value());
  }
  auto bins = MergeLight(edges, mass, std::max(total / max_bin, 1.0));
  // The heaviest pieces are cut, one by one, for as long as there is room and mass.
  auto room = max_bin - static_cast<std::int32_t>(bins.size());
  for (; room > 0; --room) {
    auto it = std::max_element(bins.begin(), bins.end(), [](Merged const& a, Merged const& b) {
      return a.mass / a.pieces < b.mass / b.pieces;
    });
    if (!(it->mass > 0)) {
      break;
    }
    ++it->pieces;
  }
  std::vector<float> out{bins.front().begin};
  for (auto const& bin : bins) {
    double width = static_cast<double>(bin.end) - bin.begin;
    for (std::int32_t k = 1; k <= bin.pieces; ++k) {
      auto edge =
          k == bin.pieces ? bin.end : static_cast<float>(bin.begin + width * k / bin.pieces);
      if (std::abs(edge) < std::numeric_limits<float>::min()) {
        edge = 0.0f;  // no subnormal cuts, and no -0
      }
      if (edge > out.back()) {
        out.push_back(edge);
      }
    }
  }
  return out;
}
}  // namespace xgboost::dp
