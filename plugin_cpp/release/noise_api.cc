/**
 * C API for noise and masked sums, used by xgb_dp/engine/native.py and xgb_dp/request/masking.py.
 */
#include "xgboost/c_api.h"  // for XGB_DLL

#include <algorithm>  // for copy_n, generate_n
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t, uint8_t, uint64_t
#include <memory>     // for make_shared

#include "c_api/c_api_error.h"               // for API_BEGIN, API_END
#include "plugin_cpp/random/samplers.h"      // for DiscreteGaussian
#include "plugin_cpp/release/masked_sums.h"  // for MaskedSums, KeepSums, DropSums
#include "plugin_cpp/release/sha256.h"       // for Digest
#include "plugin_cpp/release/source.h"       // for MakeRandomSource
#include "xgboost/logging.h"                 // for CHECK

namespace xgboost::dp {
/** @brief Draw n discrete Gaussian integers with a fresh key from the operating system. */
XGB_DLL int XGDPDiscreteGaussian(std::uint64_t sigma2, std::size_t n, std::int64_t* out) {
  API_BEGIN();
  CHECK(n == 0 || out);
  auto source = MakeRandomSource("", 0);
  std::generate_n(out, n, [&] { return DiscreteGaussian(source.get(), sigma2); });
  API_END();
}

/**
 * @brief Store `world` pairwise keys of 32 bytes for the training `id` in this thread.
 *
 * @param session Digest of the agreement of the workers, 32 bytes.
 */
XGB_DLL int XGDPKeepPads(char const* id, std::int32_t rank, std::int32_t world,
                         std::uint8_t const* seeds, std::uint8_t const* session) {
  API_BEGIN();
  CHECK(id && seeds && session);
  Digest agreed;
  std::copy_n(session, agreed.size(), agreed.begin());
  KeepSums(id, std::make_shared<MaskedSums>(rank, world, seeds, agreed));
  API_END();
}

/** @brief Wipe the keys of this thread, if any. */
XGB_DLL int XGDPDropPads() {
  API_BEGIN();
  DropSums();
  API_END();
}
}  // namespace xgboost::dp
