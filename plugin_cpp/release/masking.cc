#include "plugin_cpp/release/masking.h"

#include "plugin_cpp/random/samplers.h"  // for kMaxGaussianSigma2
#include "xgboost/logging.h"             // for CHECK

namespace xgboost::dp {
std::uint64_t Masking::ShareOf(std::uint64_t sigma2) const {
  CHECK(IsOn() && sigma2 >= 1 && sigma2 <= kMaxGaussianSigma2);
  auto honest = static_cast<std::uint64_t>(workers - colluders);
  // One more than the fair part: it pays for what a sum of shares is not quite a discrete Gaussian.
  auto share = (sigma2 + honest - 1) / honest + 1;
  CHECK(share >= kMinShare && share <= kMaxGaussianSigma2)
      << "One worker's share of the noise is too small or too large to be accounted for. Take "
         "fewer workers; with a very small `dp_epsilon`, a larger one.";
  return share;
}

double Masking::DrawnVariance(std::uint64_t sigma2) const {
  // Zero without noise.
  return IsOn() && sigma2 > 0 ? static_cast<double>(ShareOf(sigma2)) * workers
                              : static_cast<double>(sigma2);
}
}  // namespace xgboost::dp
