#include "plugin_cpp/random/chacha20.h"

#include <atomic>   // for atomic
#include <cerrno>   // for errno, EINTR
#include <cstring>  // for memset, strerror

#if defined(_WIN32)
#include <process.h>  // for _getpid
#include <windows.h>  // for ULONG

#include <bcrypt.h>  // for BCryptGenRandom
#else
#include <pthread.h>     // for pthread_atfork
#include <sys/random.h>  // for getrandom, getentropy
#include <unistd.h>      // for getpid, getentropy
#endif                   // defined(_WIN32)

#include "xgboost/logging.h"  // for CHECK_EQ, CHECK_LE, LOG

namespace xgboost::dp {
namespace {
constexpr std::size_t kLanes = 4;
// One word of four consecutive blocks. A vector extension of GCC and Clang, which this code needs
// anyway for its 128-bit integers.
using Lanes = std::uint32_t __attribute__((vector_size(4 * kLanes)));

Lanes RotateLeft(Lanes x, int n) { return (x << n) | (x >> (32 - n)); }

void QuarterRound(Lanes* a, Lanes* b, Lanes* c, Lanes* d) {
  *a += *b;
  *d = RotateLeft(*d ^ *a, 16);
  *c += *d;
  *b = RotateLeft(*b ^ *c, 12);
  *a += *b;
  *d = RotateLeft(*d ^ *a, 8);
  *c += *d;
  *b = RotateLeft(*b ^ *c, 7);
}

void TwentyRounds(Lanes x[16]) {
  for (int i = 0; i < 10; ++i) {
    QuarterRound(&x[0], &x[4], &x[8], &x[12]);
    QuarterRound(&x[1], &x[5], &x[9], &x[13]);
    QuarterRound(&x[2], &x[6], &x[10], &x[14]);
    QuarterRound(&x[3], &x[7], &x[11], &x[15]);
    QuarterRound(&x[0], &x[5], &x[10], &x[15]);
    QuarterRound(&x[1], &x[6], &x[11], &x[12]);
    QuarterRound(&x[2], &x[7], &x[8], &x[13]);
    QuarterRound(&x[3], &x[4], &x[9], &x[14]);
  }
}

std::uint32_t LoadLittleEndian(std::uint8_t const* p) {
  return static_cast<std::uint32_t>(p[0]) | static_cast<std::uint32_t>(p[1]) << 8 |
         static_cast<std::uint32_t>(p[2]) << 16 | static_cast<std::uint32_t>(p[3]) << 24;
}

// Counts the forks between the first process and this one, so that a child fails at its first draw,
// and not only after it has used the words that its parent left in the buffer.
std::atomic<std::uint64_t> fork_generation{0};

std::atomic<std::uint64_t> n_refills{0};

std::uint64_t WatchForks() {
#if !defined(_WIN32)
  static int const kStatus = pthread_atfork(
      nullptr, nullptr, +[] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
  CHECK_EQ(kStatus, 0) << "Cannot install the fork handler of the private noise generator.";
#endif  // !defined(_WIN32)
  return fork_generation.load(std::memory_order_relaxed);
}

std::int64_t ProcessId() {
#if defined(_WIN32)
  return _getpid();
#else
  return getpid();
#endif  // defined(_WIN32)
}

constexpr char kFix[] =
    " Noise from any other source could be predictable. Allow the process to get random bytes from "
    "the operating system; usually a sandbox or the system call filter of a container blocks this.";

void CheckProcess(bool same) {
  CHECK(same) << "The private noise generator was copied into a forked process, which would "
                 "release the same noise as its parent. Start a new training in this process.";
}
}  // namespace

std::uint64_t ForkGeneration() { return WatchForks(); }

std::uint64_t NumRefills() { return n_refills.load(std::memory_order_relaxed); }

void SecureWipe(void* data, std::size_t n_bytes) {
  std::memset(data, 0, n_bytes);
  // The compiler must assume that this reads the memory, so it cannot drop the line above.
  __asm__ __volatile__("" : : "r"(data) : "memory");
}

__attribute__((noinline)) void WipeStack() {
  std::uint8_t region[32768];
  SecureWipe(region, sizeof(region));
}

// Not inlined, so that all it leaves on the stack lies below the frame of its caller.
__attribute__((noinline)) void FourBlocks(std::array<std::uint32_t, 16> const& state,
                                          std::uint32_t* out) {
  Lanes first[16];
  Lanes x[16];
  for (std::size_t i = 0; i < 16; ++i) {
    first[i] = Lanes{state[i], state[i], state[i], state[i]};
  }
  first[12] += Lanes{0, 1, 2, 3};
  for (std::size_t i = 0; i < 16; ++i) {
    x[i] = first[i];
  }
  TwentyRounds(x);
  for (std::size_t i = 0; i < 16; ++i) {
    x[i] += first[i];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      out[lane * 16 + i] = x[i][lane];
    }
  }
  SecureWipe(first, sizeof(first));
  SecureWipe(x, sizeof(x));
}

ChaCha20Source::ChaCha20Source(ChaChaKey const& key, std::uint32_t stream_id)
    : fork_generation_{WatchForks()}, process_id_{ProcessId()} {
  // "expand 32-byte k"
  state_[0] = 0x61707865;
  state_[1] = 0x3320646e;
  state_[2] = 0x79622d32;
  state_[3] = 0x6b206574;
  for (std::size_t i = 0; i < 8; ++i) {
    state_[4 + i] = LoadLittleEndian(key.data() + 4 * i);
  }
  state_[12] = 0;  // block counter
  state_[13] = stream_id;
}

ChaCha20Source::~ChaCha20Source() {
  SecureWipe(state_.data(), sizeof(state_));
  SecureWipe(buffer_.data(), sizeof(buffer_));
}

void ChaCha20Source::Refill() {
  n_refills.fetch_add(1, std::memory_order_relaxed);
  // A second check, for a fork that bypasses the handler (a direct system call).
  CheckProcess(ProcessId() == process_id_);
  CHECK_LE(n_blocks_ + kBlocks, std::uint64_t{1} << 32)
      << "The private noise stream is used up. Start a new training.";
  for (std::size_t i = 0; i < kBlocks; i += kLanes) {
    state_[12] = static_cast<std::uint32_t>(n_blocks_);
    FourBlocks(state_, buffer_.data() + 16 * i);
    n_blocks_ += kLanes;
  }
  WipeStack();
  pos_ = 0;
}

std::uint64_t ChaCha20Source::Next64() {
  if (fork_generation_ != fork_generation.load(std::memory_order_relaxed)) {
    CheckProcess(false);
  }
  if (pos_ == kBufferWords) {
    this->Refill();
  }
  auto const low = buffer_[pos_];
  auto const high = buffer_[pos_ + 1];
  pos_ += 2;
  return static_cast<std::uint64_t>(high) << 32 | low;
}

ChaChaKey SystemKey() {
  ChaChaKey key{};
#if defined(_WIN32)
  auto const status = BCryptGenRandom(nullptr, key.data(), static_cast<ULONG>(key.size()),
                                      BCRYPT_USE_SYSTEM_PREFERRED_RNG);
  if (status < 0) {
    LOG(FATAL) << "No random key for private noise: BCryptGenRandom failed with " << status
               << ". Nothing was trained." << kFix;
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
                 << ". Nothing was trained." << kFix;
    }
  }
#else
  if (getentropy(key.data(), key.size()) != 0) {
    LOG(FATAL) << "No random key for private noise: getentropy failed: " << std::strerror(errno)
               << ". Nothing was trained." << kFix;
  }
#endif  // defined(_WIN32)
  return key;
}
}  // namespace xgboost::dp
