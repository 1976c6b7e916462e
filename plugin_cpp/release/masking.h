/**
 * The shares of noise in masked sums. Up to c of W workers may collude, and every worker knows its
 * own noise. The ledger therefore claims only the noise of the other W - c shares.
 *
 * Proof: docs/proofs/masked-sums.md
 */
#pragma once

#include <cstdint>  // for int32_t, uint64_t

#include "plugin_cpp/random/samplers.h"  // for kMaxGaussianSigma2
#include "xgboost/logging.h"             // for CHECK

namespace xgboost::dp {
struct Masking {
  std::int32_t workers{0};  // 0: sums are not masked, and rank 0 adds the noise
  std::int32_t colluders{0};

  static constexpr std::int32_t kMaxWorkers = 1 << 16;
  /** @brief The sum of smaller shares is not proved to be close enough to a discrete Gaussian. */
  static constexpr std::uint64_t kMinShare = std::uint64_t{1} << 10;

  [[nodiscard]] bool IsOn() const { return workers > 0; }
  /** @brief Variance parameter of one worker's share, if the ledger claims `sigma2`. */
  [[nodiscard]] std::uint64_t ShareOf(std::uint64_t sigma2) const {
    CHECK(IsOn() && sigma2 >= 1 && sigma2 <= kMaxGaussianSigma2);
    auto honest = static_cast<std::uint64_t>(workers - colluders);
    // One more than the equal share, because a sum of shares is not exactly a discrete Gaussian.
    auto share = (sigma2 + honest - 1) / honest + 1;
    CHECK(share >= kMinShare && share <= kMaxGaussianSigma2)
        << "A worker's share of the noise is too small or too large for its proof. Use fewer "
           "workers or, if `dp_epsilon` is very small, a larger one.";
    return share;
  }
  /** @brief Variance of the noise on a released sum, from the shares of all workers. */
  [[nodiscard]] double DrawnVariance(std::uint64_t sigma2) const {
    return IsOn() && sigma2 > 0 ? static_cast<double>(ShareOf(sigma2)) * workers
                                : static_cast<double>(sigma2);
  }
};
}  // namespace xgboost::dp
