#include "plugin_cpp/release/release.h"

#include <algorithm>  // for copy
#include <utility>    // for move

#include "collective/allgather.h"         // for Allgather
#include "collective/communicator-inl.h"  // for GetRank, GetWorldSize
#include "plugin_cpp/random/samplers.h"   // for DiscreteGaussian, DiscreteLaplace
#include "plugin_cpp/release/sha256.h"    // for Sha256
#include "plugin_cpp/release/workers.h"   // for SumOverWorkers, TakeFromRankZero
#include "xgboost/logging.h"              // for CHECK

namespace xgboost::dp {
namespace {
constexpr char kStays[] = "With masked sums, exact sums must not leave their worker.";

/** @brief The messages of all workers, by rank. */
MaskedSums::Words ExchangeAll(Context const* ctx, MaskedSums::Words const& mine) {
  MaskedSums::Words all(mine.size() * collective::GetWorldSize());
  std::copy(mine.cbegin(), mine.cend(), all.begin() + mine.size() * collective::GetRank());
  auto result = collective::Allgather(ctx, linalg::MakeVec(all.data(), all.size()));
  CHECK(result.OK())
      << "A worker has left a masked sum or cannot be reached. The training has ended; "
         "earlier releases are in the ledger. Start a new training with the remaining workers. "
      << result.Report();
  return all;
}

/** @brief A unique name of a release within its round. */
std::string NameOf(NoiseEvent const& event, std::size_t part) {
  return event.release + " " + std::to_string(event.parameter) + " " + std::to_string(part);
}
}  // namespace

Release::Release(Context const* ctx, bool noise_free, std::string const& test_key,
                 Masking const& masking, std::uint32_t stream, bool person_level)
    : ctx_{ctx}, masking_{masking}, ledger_{person_level} {
  if (!noise_free) {
    rng_ = masking.IsOn() ? MakeShareSource(test_key, stream) : MakeRandomSource(test_key, stream);
  }
}

void Release::CheckAgreement(std::string const& plan_text) const {
  if (!collective::IsDistributed()) {
    return;
  }
  auto mine = Sha256{}.Append(plan_text).Finish();
  auto first = mine;
  TakeFromRankZero(ctx_, first.data(), first.size());
  std::int64_t n_others = mine == first ? 0 : 1;
  xgboost::dp::SumOverWorkers(ctx_, &n_others, 1);
  CHECK_EQ(n_others, 0) << "The workers have different plans or states, because the booster of a "
                           "worker was replaced. No tree was grown; the ledger accounts for "
                           "earlier releases. Start a new training on all workers.";
}

void Release::OpenPads(std::string const& plan_id, bool last) {
  if (!masking_.IsOn()) {
    return;
  }
  auto sums = FindSums(plan_id, last);
  CHECK(masking_.workers == collective::GetWorldSize() && sums->World() == masking_.workers &&
        sums->Rank() == collective::GetRank())
      << "The noise of this training with masked sums was divided among " << masking_.workers
      << " workers, but the number or order of the workers has changed. Start a new training.";
  masked_ = std::move(sums);
}

std::unique_ptr<RandomSource> Release::SharedSource(std::string const& test_key,
                                                    std::uint32_t stream) const {
  if (!masking_.IsOn()) {
    return MakeSharedSource(ctx_, test_key, stream);
  }
  if (!test_key.empty()) {
    return MakeRandomSource(test_key, stream);
  }
  CHECK(masked_);
  return MakePublicSource(masked_->SharedBytes("choices that read no data"), stream);
}

bool Release::HasAllRows() const { return !collective::IsDistributed(); }

std::vector<GlobalSum> Release::SumOverWorkers(std::vector<LocalSum> sums) const {
  std::vector<GlobalSum> out(sums.size());
  this->SumOverWorkers(&sums, out.data());
  return out;
}

void Release::SumOverWorkers(std::vector<LocalSum>* sums, GlobalSum* out) const {
  CHECK(!masking_.IsOn()) << kStays;
  static_assert(sizeof(LocalSum) == 2 * sizeof(std::int64_t));
  dp::SumOverWorkers(ctx_, reinterpret_cast<std::int64_t*>(sums->data()), 2 * sums->size());
  for (auto const& sum : *sums) {
    *out++ = GlobalSum{sum.grad, sum.hess};
  }
}

GlobalInt SumOverWorkers(Context const* ctx, Masking const& masking, LocalInt value) {
  CHECK(!masking.IsOn()) << kStays;
  SumOverWorkers(ctx, &value.value, 1);
  return GlobalInt{value.value};
}

Released<NoisyInt> Release::Draw(NoiseEvent const& event, std::vector<std::int64_t> exact,
                                 bool is_local, std::size_t part) {
  CHECK(!masking_.IsOn() || (!event.is_laplace && is_local))
      << "Masked sums require local sums and Gaussian noise.";
  Released<NoisyInt> out;
  if (rng_) {
    ledger_.Record(event, part);
    auto scale = static_cast<double>(event.parameter);
    out.variance = event.is_laplace ? 2.0 * scale * scale : masking_.DrawnVariance(event.parameter);
  }
  if (masking_.IsOn()) {
    exact = this->SumMasked(std::move(exact), event, part);
  } else {
    if (is_local) {
      dp::SumOverWorkers(ctx_, exact.data(), exact.size());
    }
    for (std::size_t i = 0; rng_ && collective::GetRank() == 0 && i < exact.size(); ++i) {
      exact[i] += event.is_laplace ? DiscreteLaplace(rng_.get(), event.parameter)
                                   : DiscreteGaussian(rng_.get(), event.parameter);
    }
    TakeFromRankZero(ctx_, exact.data(), exact.size());
  }
  WipeStack();
  for (auto value : exact) {
    out.values.push_back(NoisyInt{value});
  }
  return out;
}

std::vector<std::int64_t> Release::SumMasked(std::vector<std::int64_t> local,
                                             NoiseEvent const& event, std::size_t part) {
  CHECK(masked_) << "The pads of this training with masked sums are used up. Start a new training.";
  MaskedSums::Words words(local.cbegin(), local.cend());
  if (rng_) {
    auto share = masking_.ShareOf(event.parameter);
    for (auto& word : words) {
      word += static_cast<std::uint64_t>(DiscreteGaussian(rng_.get(), share));
    }
  }
  SecureWipe(local.data(), local.size() * sizeof(std::int64_t));
  // No other sum is possible until this one succeeds.
  auto masked = std::move(masked_);
  auto messages = ExchangeAll(ctx_, masked->SendShares(NameOf(event, part), std::move(words)));
  auto acknowledgements = ExchangeAll(ctx_, masked->Acknowledge(messages));
  local = masked->Unmask(acknowledgements);
  masked_ = std::move(masked);
  return local;
}

template <typename Utilities>
std::vector<std::int64_t> Release::Select(SelectionEvent const& event, std::size_t n_choices,
                                          Utilities const& utilities) {
  CHECK(!masking_.IsOn())
      << "A selection needs exact sums, so it cannot be combined with masked sums.";
  if (rng_) {
    ledger_.Record(event, 0);
  }
  std::vector<std::int64_t> chosen(n_choices);
  for (std::size_t i = 0; collective::GetRank() == 0 && i < n_choices; ++i) {
    auto candidates = utilities(i);
    chosen[i] = static_cast<std::int64_t>(
        rng_ ? SelectExponential(rng_.get(), candidates, event.eps_num, event.range << kEpsBits)
             : SelectArgmax(candidates));
    WipeStack();
  }
  TakeFromRankZero(ctx_, chosen.data(), n_choices);
  return chosen;
}

template std::vector<std::int64_t> Release::Select(SelectionEvent const&, std::size_t,
                                                   UtilityFn const&);
template std::vector<std::int64_t> Release::Select(SelectionEvent const&, std::size_t,
                                                   GroupedUtilityFn const&);

void Release::BeginRound(RoundEvent const& round, bool record) {
  if (rng_) {
    ledger_.BeginRound(round, record);
  }
}
}  // namespace xgboost::dp
