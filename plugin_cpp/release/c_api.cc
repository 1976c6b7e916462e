/**
 * C entry points of masked sums, for xgb_dp/request/masking.py and for tests.
 */
#include "xgboost/c_api.h"  // for XGB_DLL

#include <algorithm>  // for copy_n
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, uint8_t, uint64_t
#include <memory>     // for make_shared
#include <vector>     // for vector

#include "c_api/c_api_error.h"        // for API_BEGIN, API_END
#include "plugin_cpp/release/pads.h"  // for PairPads, KeepPads, DropPads
#include "xgboost/logging.h"          // for CHECK

namespace xgboost::dp {
/** @brief Keep `world` pairwise keys of 32 bytes for the training `id` of this thread. */
XGB_DLL int XGDPKeepPads(char const* id, std::int32_t rank, std::int32_t world,
                         std::uint8_t const* seeds) {
  API_BEGIN();
  CHECK(id && seeds);
  KeepPads(id, std::make_shared<PairPads>(rank, world, seeds));
  API_END();
}

/** @brief Wipe the keys that this thread keeps, if any. */
XGB_DLL int XGDPDropPads() {
  API_BEGIN();
  DropPads();
  API_END();
}

/** @brief What one worker would send for `n_sums` sums of `size` zeros, one after the other. */
XGB_DLL int XGDPTestMask(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds,
                         std::size_t n_sums, std::size_t size, std::uint64_t* out) {
  API_BEGIN();
  PairPads pads{rank, world, seeds};
  for (std::size_t i = 0; i < n_sums; ++i) {
    std::vector<std::uint64_t> words(size);
    pads.Mask(&words);
    std::copy_n(words.cbegin(), size, out + i * size);
  }
  API_END();
}
}  // namespace xgboost::dp
