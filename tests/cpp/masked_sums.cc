/**
 * @brief Entry points for the tests of masked sums and of what they are proved with.
 */
#include "xgboost/c_api.h"  // for XGB_DLL

#include <algorithm>  // for copy, copy_n
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t, int64_t, uint8_t, uint64_t

#include "c_api/c_api_error.h"               // for API_BEGIN, API_END
#include "plugin_cpp/release/masked_sums.h"  // for MaskedSums
#include "plugin_cpp/release/sha256.h"       // for Digest, Hmac, Sha256
#include "xgboost/logging.h"                 // for CHECK

namespace xgboost::dp {
namespace {
Digest DigestAt(std::uint8_t const* bytes) {
  Digest out;
  std::copy_n(bytes, out.size(), out.begin());
  return out;
}

MaskedSums* SumsAt(void* handle) {
  CHECK(handle);
  return static_cast<MaskedSums*>(handle);
}
}  // namespace

/** @brief Masked sums of one worker, without a network. See MaskedSums for what follows. */
XGB_DLL int XGDPTestSums(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds,
                         std::uint8_t const* session, void** out) {
  API_BEGIN();
  *out = new MaskedSums{rank, world, seeds, DigestAt(session)};
  API_END();
}

XGB_DLL int XGDPTestSendShares(void* handle, char const* what, std::uint64_t const* values,
                               std::size_t size, std::uint64_t* out) {
  API_BEGIN();
  auto words = SumsAt(handle)->SendShares(what, {values, values + size});
  std::copy(words.cbegin(), words.cend(), out);
  API_END();
}

XGB_DLL int XGDPTestAcknowledge(void* handle, std::uint64_t const* messages, std::size_t size,
                                std::uint64_t* out) {
  API_BEGIN();
  auto words = SumsAt(handle)->Acknowledge({messages, messages + size});
  std::copy(words.cbegin(), words.cend(), out);
  API_END();
}

XGB_DLL int XGDPTestUnmask(void* handle, std::uint64_t const* acknowledgements, std::size_t size,
                           std::int64_t* out) {
  API_BEGIN();
  auto sums = SumsAt(handle)->Unmask({acknowledgements, acknowledgements + size});
  std::copy(sums.cbegin(), sums.cend(), out);
  API_END();
}

XGB_DLL int XGDPTestFree(void* handle) {
  API_BEGIN();
  delete SumsAt(handle);
  API_END();
}

/** @brief SHA-256 of a text, or HMAC with it under a key of 32 bytes. */
XGB_DLL int XGDPTestHash(std::uint8_t const* key, char const* text, std::size_t size,
                         std::uint8_t* out) {
  API_BEGIN();
  auto digest = key ? Hmac(DigestAt(key), {text, size}) : Sha256{}.Append(text, size).Finish();
  std::copy(digest.cbegin(), digest.cend(), out);
  API_END();
}
}  // namespace xgboost::dp
