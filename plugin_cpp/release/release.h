/**
 * The one room that draws. Exact sums go in with their bound, noisy ones come out, the same on
 * every worker, and the draw is in the ledger before it is made. Here alone are the source of the
 * noise, the masks, rank 0 with its broadcast, and the noise-free algorithm, which lets sums pass.
 *
 * In the clear rank 0 adds the noise to the sums over all workers. Masked sums are those of no
 * worker: each adds its share of the noise to its own.
 *
 * Proof: docs/proofs/distributed.md
 * Proof: docs/proofs/masked-sums.md
 */
#pragma once

#include <cstddef>     // for size_t
#include <cstdint>     // for int64_t, uint32_t, uint64_t
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
/** @brief Released numbers, and the variance of the noise on each; 0 without noise. */
template <typename T>
struct Released {
  std::vector<T> values;
  double variance{0};
};

/** @brief An exact number over all workers. Fails where they mask their sums. */
[[nodiscard]] GlobalInt SumOverWorkers(Context const* ctx, Masking const& masking, LocalInt value);

/** @brief The utilities of the candidates of a choice, exact over all workers. */
using UtilitiesOf = std::function<common::Span<std::int64_t const>(std::size_t choice)>;
/** @brief The same where they are computed when they are asked for. */
using GroupsOf = std::function<GroupedUtilities*(std::size_t choice)>;

class Release {
 public:
  /**
   * @param noise_free Release exact values, for tests and comparisons; nothing is recorded.
   * @param test_key   Of noise that somebody knows, or empty; see MakeRandomSource.
   * @param stream     Of the source.
   * @param person_level The unit of privacy of what is released, see Ledger.
   */
  Release(Context const* ctx, bool noise_free, std::string const& test_key, Masking const& masking,
          std::uint32_t stream, bool person_level);

  /**
   * @brief Take the pads that the workers have agreed on, where sums are masked. Fails for those of
   *        other workers.
   *
   * @param plan_id Of the training that they were made for.
   * @param last    Whether no other release of this training needs them.
   */
  void OpenPads(std::string const& plan_id, bool last);

  /**
   * @brief Fail on all workers where one has another plan than rank 0, which alone draws noise
   *        that is not masked.
   */
  void CheckAgreement(std::string const& plan_text) const;

  /**
   * @brief A source of the same words on all workers, for choices that read no data and are public.
   *
   * Where sums are masked its key follows from what the workers have proved to each other, and
   * nobody is asked for it.
   */
  [[nodiscard]] std::unique_ptr<RandomSource> SharedSource(std::string const& test_key,
                                                           std::uint32_t stream) const;

  /** @brief Whether this worker has the rows of all. */
  [[nodiscard]] bool HasAllRows() const;
  /** @brief Exact sums over all workers. Fails where they are masked. */
  [[nodiscard]] std::vector<GlobalSum> SumOverWorkers(std::vector<LocalSum> sums) const;
  /** @brief The same into memory of the caller, with room for as many. */
  void SumOverWorkers(std::vector<LocalSum>* sums, GlobalSum* out) const;

  /**
   * @brief Add the noise of an event, whose bound holds for these numbers.
   *
   * @param exact Sums or integers: of this worker, equally many on all, or of all workers.
   * @param part  Of several draws that the event's bound holds for together.
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
   * @brief Make some choices by the exponential mechanism, whose rows are disjoint: one event.
   *
   * @param utilities UtilitiesOf or GroupsOf: called on rank 0 alone, for one choice after another.
   *
   * @return The index that was chosen, for each choice.
   */
  template <typename Utilities>
  [[nodiscard]] std::vector<std::int64_t> Select(SelectionEvent const& event, std::size_t n_choices,
                                                 Utilities const& utilities);

  void BeginRound(RoundEvent const& round, bool record);
  [[nodiscard]] Json SaveEvents() const { return ledger_.SaveEvents(); }

 private:
  [[nodiscard]] Released<NoisyInt> Draw(NoiseEvent const& event, std::vector<std::int64_t> exact,
                                        bool is_local, std::size_t part);
  /** @brief Add this worker's shares of the noise, and sum over workers under masks. */
  [[nodiscard]] std::vector<std::int64_t> SumMasked(std::vector<std::int64_t> local,
                                                    NoiseEvent const& event, std::size_t part);

  Context const* ctx_;
  Masking masking_;
  std::unique_ptr<RandomSource> rng_;   // null for the noise-free algorithm
  std::shared_ptr<MaskedSums> masked_;  // null once a sum has failed
  Ledger ledger_;
};
}  // namespace xgboost::dp
