/** @brief Keys from the operating system. */
#include "plugin_cpp/random/entropy.h"

#include <cerrno>   // for errno, EINTR
#include <cstddef>  // for size_t
#include <cstring>  // for strerror

#if defined(_WIN32)
#include <windows.h>  // for ULONG

#include <bcrypt.h>  // for BCryptGenRandom
#elif defined(__linux__)
#include <sys/random.h>  // for getrandom
#elif defined(__APPLE__)
#include <sys/random.h>  // for getentropy
#else
#include <unistd.h>  // for getentropy
#endif               // defined(_WIN32)

#include "xgboost/logging.h"  // for LOG

namespace xgboost::dp {
namespace {
constexpr char kMend[] =
    " Noise from any other source could be guessed. Let the process ask the operating system for "
    "random bytes: a sandbox or a container's filter of system calls usually forbids it.";
}  // namespace

ChaChaKey SystemKey() {
  ChaChaKey key{};
#if defined(_WIN32)
  auto const status = BCryptGenRandom(nullptr, key.data(), static_cast<ULONG>(key.size()),
                                      BCRYPT_USE_SYSTEM_PREFERRED_RNG);
  if (status < 0) {
    LOG(FATAL) << "No random key for private noise: BCryptGenRandom failed with " << status
               << ". Nothing was trained." << kMend;
  }
#elif defined(__linux__)
  std::size_t filled = 0;
  while (filled < key.size()) {
    // No flags: wait until the generator of the system is seeded.
    auto const n = getrandom(key.data() + filled, key.size() - filled, 0);
    if (n > 0) {
      filled += static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      LOG(FATAL) << "No random key for private noise: getrandom failed: " << std::strerror(errno)
                 << ". Nothing was trained." << kMend;
    }
  }
#else
  if (getentropy(key.data(), key.size()) != 0) {
    LOG(FATAL) << "No random key for private noise: getentropy failed: " << std::strerror(errno)
               << ". Nothing was trained." << kMend;
  }
#endif  // defined(_WIN32)
  return key;
}
}  // namespace xgboost::dp
