/**
 * @brief Entry points for the tests of the samplers. They draw noise and touch no data.
 *
 * `key` is 32 bytes, or null for a fresh key of the operating system. 128-bit integers come as two
 * 64-bit words. Every function returns 0, or -1 with the message in XGBGetLastError.
 */
#include "xgboost/c_api.h"  // for XGB_DLL

#include <algorithm>  // for copy_n, generate_n, max_element, transform
#include <array>      // for array
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t, uint8_t, uint32_t, uint64_t
#include <memory>     // for unique_ptr

#include "c_api/c_api_error.h"              // for API_BEGIN, API_END
#include "plugin_cpp/random/chacha20.h"     // for ChaCha20Source, NumRefills, SecureWipe, SystemKey
#include "plugin_cpp/random/exponential.h"  // for GroupedUtilities, SelectExponential, SelectArgmax
#include "plugin_cpp/random/samplers.h"     // for DiscreteGaussian, DiscreteLaplace, UniformBelow

namespace xgboost::dp {
namespace {
std::unique_ptr<ChaCha20Source> MakeSource(std::uint8_t const* key, std::uint32_t stream_id) {
  ChaChaKey bytes{};
  if (key != nullptr) {
    std::copy_n(key, bytes.size(), bytes.begin());
  } else {
    bytes = SystemKey();
  }
  auto source = std::make_unique<ChaCha20Source>(bytes, stream_id);
  SecureWipe(bytes.data(), bytes.size());
  return source;
}

u128 Join(std::uint64_t high, std::uint64_t low) { return u128{high} << 64 | low; }

/** @brief Fill `out` with n draws from one stream of a key. */
template <typename T, typename Fn>
int Fill(std::uint8_t const* key, std::uint32_t stream_id, std::size_t n, T* out, Fn&& draw) {
  API_BEGIN();
  auto source = MakeSource(key, stream_id);
  std::generate_n(out, n, [&] { return static_cast<T>(draw(source.get())); });
  API_END();
}

/** @brief Utilities that are known. */
class KnownGroups final : public GroupedUtilities {
 public:
  KnownGroups(std::int64_t const* utilities, common::Span<std::int64_t const> bounds,
              std::size_t per_group)
      : utilities_{utilities}, bounds_{bounds}, per_group_{per_group} {}

  [[nodiscard]] std::size_t PerGroup() const override { return per_group_; }
  [[nodiscard]] common::Span<std::int64_t const> Bounds() const override { return bounds_; }
  [[nodiscard]] std::int64_t At(std::size_t group, std::size_t i) override {
    return utilities_[group * per_group_ + i];
  }
  void Largest(common::Span<std::size_t const> groups, std::int64_t* out) override {
    std::transform(groups.cbegin(), groups.cend(), out, [&](auto group) {
      auto const* first = utilities_ + group * per_group_;
      return *std::max_element(first, first + per_group_);
    });
  }

 private:
  std::int64_t const* utilities_;
  common::Span<std::int64_t const> bounds_;
  std::size_t per_group_;
};
}  // namespace

/** @brief Four blocks of the key stream: 16 words in, 64 words out. */
XGB_DLL int XGDPTestFourBlocks(std::uint32_t const* state, std::uint32_t* out) {
  API_BEGIN();
  std::array<std::uint32_t, 16> words{};
  std::copy_n(state, words.size(), words.begin());
  FourBlocks(words, out);
  API_END();
}

/** @brief 32 bytes of the operating system's generator. */
XGB_DLL int XGDPTestSystemKey(std::uint8_t* out) {
  API_BEGIN();
  auto const key = SystemKey();
  std::copy_n(key.data(), key.size(), out);
  API_END();
}

/** @brief A source that outlives the call; see XGDPTestSourceFree. */
XGB_DLL int XGDPTestSourceCreate(std::uint8_t const* key, std::uint32_t stream_id, void** out) {
  API_BEGIN();
  *out = MakeSource(key, stream_id).release();
  API_END();
}

XGB_DLL int XGDPTestSourceNext(void* handle, std::size_t n, std::uint64_t* out) {
  API_BEGIN();
  CHECK_HANDLE();
  auto* source = static_cast<ChaCha20Source*>(handle);
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = source->Next64();
  }
  API_END();
}

XGB_DLL int XGDPTestSourceFree(void* handle) {
  API_BEGIN();
  delete static_cast<ChaCha20Source*>(handle);
  API_END();
}

/** @brief See NumRefills: tells whether anything was drawn between two calls. */
XGB_DLL int XGDPTestNumRefills(std::uint64_t* out) {
  API_BEGIN();
  *out = NumRefills();
  API_END();
}

XGB_DLL int XGDPTestIntegerSqrt(std::uint64_t x, std::uint64_t* out) {
  API_BEGIN();
  *out = IntegerSqrt(x);
  API_END();
}

XGB_DLL int XGDPTestIntegerSqrt128(std::uint64_t high, std::uint64_t low, std::uint64_t* out) {
  API_BEGIN();
  *out = IntegerSqrt128(Join(high, low));
  API_END();
}

/** @brief n draws below a 64-bit bound. */
XGB_DLL int XGDPTestUniform(std::uint8_t const* key, std::uint32_t stream_id, std::uint64_t below,
                            std::size_t n, std::uint64_t* out) {
  return Fill(key, stream_id, n, out, [&](auto* rng) { return UniformBelow(rng, below); });
}

/** @brief n draws below a 128-bit bound, each as (high, low). */
XGB_DLL int XGDPTestUniform128(std::uint8_t const* key, std::uint32_t stream_id,
                               std::uint64_t below_high, std::uint64_t below_low, std::size_t n,
                               std::uint64_t* out) {
  API_BEGIN();
  auto source = MakeSource(key, stream_id);
  auto const below = Join(below_high, below_low);
  for (std::size_t i = 0; i < n; ++i) {
    auto const draw = UniformBelow128(source.get(), below);
    out[2 * i] = static_cast<std::uint64_t>(draw >> 64);
    out[2 * i + 1] = static_cast<std::uint64_t>(draw);
  }
  API_END();
}

/** @brief n coins of probability exp(-(q + a / b)); q fits 64 bits. */
XGB_DLL int XGDPTestBernoulliExp(std::uint8_t const* key, std::uint32_t stream_id, std::uint64_t q,
                                 std::uint64_t a_high, std::uint64_t a_low, std::uint64_t b_high,
                                 std::uint64_t b_low, std::size_t n, std::uint8_t* out) {
  auto a = Join(a_high, a_low), b = Join(b_high, b_low);
  return Fill(key, stream_id, n, out, [&](auto* rng) { return BernoulliExp(rng, q, a, b); });
}

XGB_DLL int XGDPTestDiscreteLaplace(std::uint8_t const* key, std::uint32_t stream_id,
                                    std::uint64_t scale, std::size_t n, std::int64_t* out) {
  return Fill(key, stream_id, n, out, [&](auto* rng) { return DiscreteLaplace(rng, scale); });
}

XGB_DLL int XGDPTestDiscreteGaussian(std::uint8_t const* key, std::uint32_t stream_id,
                                     std::uint64_t sigma2, std::size_t n, std::int64_t* out) {
  return Fill(key, stream_id, n, out, [&](auto* rng) { return DiscreteGaussian(rng, sigma2); });
}

/** @brief n independent choices among the same m utilities. */
XGB_DLL int XGDPTestSelect(std::uint8_t const* key, std::uint32_t stream_id,
                           std::int64_t const* utilities, std::size_t m, std::uint64_t eps_num,
                           std::uint64_t den, std::size_t n, std::uint64_t* out) {
  return Fill(key, stream_id, n, out,
              [&](auto* rng) { return SelectExponential(rng, {utilities, m}, eps_num, den); });
}

/**
 * @brief The same among m utilities in groups with bounds, and which of them is the largest.
 *
 * @param n Number of choices, of which the last is not drawn.
 */
XGB_DLL int XGDPTestSelectGrouped(std::uint8_t const* key, std::uint32_t stream_id,
                                  std::int64_t const* utilities, std::int64_t const* bounds,
                                  std::size_t n_groups, std::size_t per_group,
                                  std::uint64_t eps_num, std::uint64_t den, std::size_t n,
                                  std::uint64_t* out) {
  KnownGroups groups{utilities, {bounds, n_groups}, per_group};
  auto left = n;
  return Fill(key, stream_id, n, out, [&](auto* rng) {
    return --left == 0 ? SelectArgmax(&groups) : SelectExponential(rng, &groups, eps_num, den);
  });
}

XGB_DLL int XGDPTestArgmax(std::int64_t const* utilities, std::size_t m, std::uint64_t* out) {
  API_BEGIN();
  *out = SelectArgmax({utilities, m});
  API_END();
}
}  // namespace xgboost::dp
