#include "plugin_cpp/rows/sampling.h"

#include "plugin_cpp/plan/plan.h"      // for Plan
#include "xgboost/logging.h"      // for CHECK

namespace xgboost::dp {
void DrawSample(RandomSource* rng, std::int64_t num, std::size_t n_rows,
                std::vector<std::uint8_t>* out) {
  CHECK(num >= 1 && num <= Plan::kSampleAll);
  out->resize(n_rows);
  std::uint64_t coins{0};
  for (std::size_t i = 0; i < n_rows; ++i) {
    // Two coins of 32 bits from each word.
    coins = i % 2 == 0 ? rng->Next64() : coins >> 32;
    (*out)[i] = static_cast<std::int64_t>(coins & 0xffffffffU) < num;
  }
}

void DrawParts(RandomSource* rng, std::int32_t parts, bool halving, std::size_t n_rows,
               std::vector<std::uint16_t>* out) {
  CHECK(parts >= 1 && parts <= Plan::kMaxParts);
  out->resize(n_rows);
  for (auto& part : *out) {
    if (!halving) {
      part = static_cast<std::uint16_t>(UniformBelow(rng, parts));
      continue;
    }
    part = 0;
    while (part + 1 < parts && UniformBelow(rng, 2) == 0) {
      ++part;
    }
  }
}
}  // namespace xgboost::dp
