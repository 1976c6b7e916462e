#include "plugin_cpp/release/masking.h"

#include <algorithm>  // for max
#include <cstdint>    // for int32_t, uint64_t

#include "plugin_cpp/random/samplers.h"  // for kMaxGaussianSigma2
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
std::uint64_t Masking::ShareOf(std::uint64_t sigma2) const {
  CHECK(IsOn() && sigma2 >= 1 && sigma2 <= kMaxGaussianSigma2);
  auto honest = static_cast<std::uint64_t>(workers - colluders);
  // One more than the fair part: it pays for what a sum of shares is not quite a discrete Gaussian.
  auto share = (sigma2 + honest - 1) / honest + 1;
  CHECK(share >= kMinShare && share <= kMaxGaussianSigma2)
      << "One worker's share of the noise is too small or too large to be accounted for. Take fewer "
         "workers; with a very small `dp_epsilon`, a larger one.";
  return share;
}

double Masking::DrawnVariance(std::uint64_t sigma2) const {
  // Zero without noise.
  return IsOn() && sigma2 > 0 ? static_cast<double>(ShareOf(sigma2)) * workers
                              : static_cast<double>(sigma2);
}

Masking ReadMasking(JsonReader const& in) {
  Masking out;
  out.workers = static_cast<std::int32_t>(in.Int("workers", 0, Masking::kMaxWorkers));
  out.colluders =
      static_cast<std::int32_t>(in.Int("colluders", 0, std::max(out.workers - 1, 0)));
  CHECK_NE(out.workers, 1) << "dp_plan: there is nothing to mask with one worker."
                           << JsonReader::kMend;
  return out;
}
}  // namespace xgboost::dp
