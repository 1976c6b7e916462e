/**
 * The only class that draws noise. It takes exact sums with a proven bound and returns noisy sums,
 * the same on all workers. A draw is in the ledger before it is made. The source of noise, masking,
 * the broadcasts of rank 0, and the noise-free variant exist only here.
 *
 * Without masks, rank 0 adds the noise to the sums over all workers. With masks, no worker sees
 * these sums; each worker adds its share of the noise to its own sums.
 *
 * Proof: docs/proofs/distributed.md
 * Proof: docs/proofs/masked-sums.md
 */
#pragma once

#include <cstddef>     // for size_t
#include <cstdint>     // for int64_t, uint32_t
#include <functional>  // for function
#include <memory>      // for shared_ptr, unique_ptr
#include <string>      // for string
#include <vector>      // for vector

#include "plugin_cpp/random/exponential.h"   // for GroupedUtilities
#include "plugin_cpp/release/ledger.h"       // for Ledger, NoiseEvent, SelectionEvent
#include "plugin_cpp/release/masked_sums.h"  // for MaskedSums
#include "plugin_cpp/release/masking.h"      // for Masking
#include "plugin_cpp/release/source.h"       // for RandomSource
#include "plugin_cpp/release/sums.h"         // for LocalSum, GlobalSum, NoisySum
#include "xgboost/context.h"                 // for Context
#include "xgboost/span.h"                    // for Span

namespace xgboost::dp {
/** @brief Released numbers, and the variance of their noise; 0 without noise. */
template <typename T>
struct Released {
  std::vector<T> values;
  double variance{0};
};

/** @brief The exact sum over all workers. Fails if the training masks its sums. */
[[nodiscard]] GlobalInt SumOverWorkers(Context const* ctx, Masking const& masking, LocalInt value);

/**
 * @brief Function that returns the exact utilities of the candidates of a choice, over all workers.
 */
using UtilityFn = std::function<common::Span<std::int64_t const>(std::size_t choice)>;
/** @brief Function like UtilityFn, but for utilities that are computed on demand. */
using GroupedUtilityFn = std::function<GroupedUtilities*(std::size_t choice)>;

class Release {
 public:
  /**
   * @param noise_free   Release exact values without a record, for tests and comparisons.
   * @param test_key     Key of known noise, or empty; see MakeRandomSource.
   * @param stream       Stream of the source.
   * @param person_level Whether the privacy unit is a person.
   */
  Release(Context const* ctx, bool noise_free, std::string const& test_key, Masking const& masking,
          std::uint32_t stream, bool person_level);

  /**
   * @brief With masked sums, use the pads of this training. Fails if other workers made them.
   *
   * @param last Whether no other release of this training needs them.
   */
  void OpenPads(std::string const& plan_id, bool last);

  /**
   * @brief Fail on all workers if the plan of any worker differs from rank 0's. Without masks,
   *        rank 0 draws all noise from its own plan.
   */
  void CheckAgreement(std::string const& plan_text) const;

  /**
   * @brief A source that yields the same words on all workers, for choices that read no data.
   *
   * With masked sums, its key is derived from the authenticated transcript of the workers.
   */
  [[nodiscard]] std::unique_ptr<RandomSource> SharedSource(std::string const& test_key,
                                                           std::uint32_t stream) const;

  /** @brief Whether this worker has all rows. */
  [[nodiscard]] bool HasAllRows() const;
  /** @brief Exact sums over all workers. Fails if the training masks its sums. */
  [[nodiscard]] std::vector<GlobalSum> SumOverWorkers(std::vector<LocalSum> sums) const;
  /** @brief Write the exact sums over all workers to `out`, which the caller allocates. */
  void SumOverWorkers(std::vector<LocalSum>* sums, GlobalSum* out) const;

  /**
   * @brief Add the noise of an event to numbers for which its sensitivity bound holds.
   *
   * @param exact Sums or integers of this worker, or of all workers; equally many on each.
   * @param part  Index among several draws with a joint bound.
   *
   * @return NoisySums or NoisyInts, in order.
   */
  template <typename Exact>
  [[nodiscard]] auto AddNoise(NoiseEvent const& event, std::vector<Exact> const& exact,
                              std::size_t part = 0) {
    constexpr auto kEach = sizeof(Exact) / sizeof(std::int64_t);
    auto const* first = reinterpret_cast<std::int64_t const*>(exact.data());
    auto noisy = this->Draw(event, {first, first + kEach * exact.size()}, Exact::kIsLocal, part);
    if constexpr (kEach == 1) {
      return noisy;
    } else {
      Released<NoisySum> pairs{{}, noisy.variance};
      for (std::size_t i = 0; i < noisy.values.size(); i += kEach) {
        pairs.values.push_back({noisy.values[i], noisy.values[i + 1], 1});
      }
      return pairs;
    }
  }

  /**
   * @brief Make choices on disjoint rows by the exponential mechanism, as one event.
   *
   * @param utilities UtilityFn or GroupedUtilityFn, called on rank 0 for each choice in order.
   *
   * @return The chosen index, for each choice.
   */
  template <typename Utilities>
  [[nodiscard]] std::vector<std::int64_t> Select(SelectionEvent const& event, std::size_t n_choices,
                                                 Utilities const& utilities);

  void BeginRound(RoundEvent const& round, bool record);
  [[nodiscard]] Json SaveEvents() const { return ledger_.SaveEvents(); }

 private:
  [[nodiscard]] Released<NoisyInt> Draw(NoiseEvent const& event, std::vector<std::int64_t> exact,
                                        bool is_local, std::size_t part);
  /** @brief Add this worker's shares of the noise, mask, and sum over all workers. */
  [[nodiscard]] std::vector<std::int64_t> SumMasked(std::vector<std::int64_t> local,
                                                    NoiseEvent const& event, std::size_t part);

  Context const* ctx_;
  Masking masking_;
  std::unique_ptr<RandomSource> rng_;   // null for the noise-free algorithm
  std::shared_ptr<MaskedSums> masked_;  // null once a sum has failed
  Ledger ledger_;
};
}  // namespace xgboost::dp
