/**
 * Sources of random words. XGBoost's `seed` never reaches them.
 */
#pragma once

#include <cstdint>  // for uint32_t
#include <memory>   // for unique_ptr
#include <string>   // for string

#include "plugin_cpp/random/chacha20.h"  // for RandomSource
#include "xgboost/context.h"             // for Context

namespace xgboost::dp {
inline constexpr std::uint32_t kLabelSumsStream = 0;
/** @brief Stream of a training: candidates, splits and leaves. */
inline constexpr std::uint32_t kTrainingStream = 1;
/** @brief Stream of the random features and splits of trees, which read no data. */
inline constexpr std::uint32_t kStructureStream = 2;
/** @brief Stream of the row samples of rank 0; the other ranks follow. */
inline constexpr std::uint32_t kSamplingStream = 3;

/**
 * @brief Stream of a discovery, above the sampling streams of all workers and below their noise
 *        shares.
 */
inline constexpr std::uint32_t kDiscoveryStream = std::uint32_t{1} << 30;
inline constexpr std::uint32_t kColumnSumsStream = kDiscoveryStream + 1;
inline constexpr std::uint32_t kLabelRangeStream = kDiscoveryStream + 2;
/** @brief First stream of the shares of noise in masked sums. */
inline constexpr std::uint32_t kShareStream = std::uint32_t{1} << 31;

/**
 * @brief A source keyed by the operating system, or by a known key for tests.
 * @param test_key Empty for a secret key. A key of 64 hexadecimal digits makes the noise known, and
 *                 the caller must mark the model as non-private.
 */
[[nodiscard]] std::unique_ptr<RandomSource> MakeRandomSource(std::string const& test_key,
                                                             std::uint32_t stream_id);

/**
 * @brief The source of this worker's shares of noise. With a known key, each worker has its own
 *        stream.
 */
[[nodiscard]] std::unique_ptr<RandomSource> MakeShareSource(std::string const& test_key,
                                                            std::uint32_t stream_id);

/** @brief The source for sampling the rows of this worker. */
[[nodiscard]] std::unique_ptr<RandomSource> MakeSampleSource(std::string const& test_key);

/**
 * @brief A source that yields the same words on all workers, keyed by rank 0. For public choices
 *        that read no data, never for noise or samples.
 */
[[nodiscard]] std::unique_ptr<RandomSource> MakeSharedSource(Context const* ctx,
                                                             std::string const& test_key,
                                                             std::uint32_t stream_id);

/** @brief A source for the same purpose, keyed by public bytes that all workers have. */
[[nodiscard]] std::unique_ptr<RandomSource> MakePublicSource(ChaChaKey const& bytes,
                                                             std::uint32_t stream_id);
}  // namespace xgboost::dp
