/**
 * The one room that draws. Exact sums go in with their bound, noisy ones come out, the same on every
 * worker, and the draw is in the ledger before it is made. Here alone are the source of the noise,
 * the masks, rank 0 with its broadcast, and the noise-free algorithm, which lets sums pass.
 *
 * In the clear rank 0 adds the noise to the sums over all workers. Masked sums are those of no
 * worker: each adds its share of the noise to its own.
 *
 * Proof: docs/proofs/distributed.md
 * Proof: docs/proofs/masked-sums.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint32_t
#include <memory>   // for unique_ptr
#include <optional>  // for optional
#include <string>   // for string
#include <utility>  // for forward
#include <vector>   // for vector

#include "plugin_cpp/release/source.h"        // for RandomSource
#include "plugin_cpp/release/ledger.h"       // for Ledger, NoiseEvent, SelectionEvent
#include "plugin_cpp/release/masked_sums.h"  // for MaskedSums, Masking
#include "plugin_cpp/release/sums.h"         // for LocalSum, GlobalSum, NoisySum
#include "plugin_cpp/release/workers.h"      // for FromRankZero
#include "xgboost/context.h"                 // for Context

namespace xgboost::dp {
/** @brief Released numbers, and the variance of the noise on each; 0 without noise. */
template <typename T>
struct Released {
  std::vector<T> values;
  double variance{0};
};

/** @brief An exact number over all workers. Fails where they mask their sums. */
[[nodiscard]] GlobalInt SumOverWorkers(Context const* ctx, Masking const& masking, LocalInt value);

class Release {
 public:
  /**
   * @param noise_free Release exact values, for tests and comparisons; nothing is recorded.
   * @param test_key   Of noise that somebody knows, or empty; see MakeRandomSource.
   * @param stream     Of the source.
   */
  Release(Context const* ctx, bool noise_free, std::string const& test_key, Masking const& masking,
          std::uint32_t stream);

  /**
   * @brief Take the pads that the workers have agreed on, where sums are masked.
   *
   * @param plan_id Of the training that they were made for.
   * @param last    Whether no other release of this training needs them.
   */
  void OpenPads(std::string const& plan_id, bool last);

  /** @brief Exact sums over all workers. Fails where they are masked. */
  [[nodiscard]] std::vector<GlobalSum> SumOverWorkers(std::vector<LocalSum> sums) const;

  /**
   * @brief Add the noise of an event, whose bound holds for these numbers.
   *
   * @param exact Of this worker, equally many on all; or of all workers.
   * @param part  Of several draws that the event's bound holds for together.
   */
  [[nodiscard]] Released<NoisySum> AddNoise(NoiseEvent const& event,
                                            std::vector<LocalSum> const& exact,
                                            std::size_t part = 0);
  [[nodiscard]] Released<NoisySum> AddNoise(NoiseEvent const& event,
                                            std::vector<GlobalSum> const& exact,
                                            std::size_t part = 0);
  [[nodiscard]] Released<NoisyInt> AddNoise(NoiseEvent const& event,
                                            std::vector<LocalInt> const& exact,
                                            std::size_t part = 0);
  [[nodiscard]] Released<NoisyInt> AddNoise(NoiseEvent const& event,
                                            std::vector<GlobalInt> const& exact,
                                            std::size_t part = 0);

  /**
   * @brief Make some choices by the exponential mechanism, whose rows are disjoint: one event.
   *
   * @param utilities utilities(i): those of the candidates of choice i, exact over all workers.
   *                  Called on rank 0 alone, for one choice after the other.
   *
   * @return The index that was chosen, for each choice.
   */
  template <typename Fn>
  [[nodiscard]] std::vector<std::int64_t> Select(SelectionEvent const& event,
                                                 std::size_t n_choices, Fn&& utilities) {
    this->BeginSelection(event);
    return FromRankZero(ctx_, [&] {
      std::vector<std::int64_t> chosen;
      for (std::size_t i = 0; i < n_choices; ++i) {
        chosen.push_back(this->Choose(event, utilities(i)));
      }
      return chosen;
    });
  }

  /** @brief See Ledger. */
  void BeginRound(RoundEvent const& round, bool record);
  [[nodiscard]] Json SaveEvents() const { return ledger_.SaveEvents(); }

 private:
  [[nodiscard]] Released<NoisyInt> Draw(NoiseEvent const& event, std::vector<std::int64_t> exact,
                                        bool is_local, std::size_t part);
  void BeginSelection(SelectionEvent const& event);
  [[nodiscard]] std::int64_t Choose(SelectionEvent const& event,
                                    std::vector<std::int64_t> const& utilities);

  Context const* ctx_;
  Masking masking_;
  std::unique_ptr<RandomSource> rng_;  // null for the noise-free algorithm
  std::optional<MaskedSums> masked_;   // empty where sums travel in the clear
  Ledger ledger_;
};
}  // namespace xgboost::dp
