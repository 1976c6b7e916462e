#include "plugin_cpp/release/release.h"

#include <utility>  // for move
#include <variant>  // for get_if, visit

#include "collective/allreduce.h"           // for Allreduce
#include "collective/communicator-inl.h"    // for GetRank, GetWorldSize
#include "plugin_cpp/random/exponential.h"  // for SelectArgmax, SelectExponential
#include "plugin_cpp/random/samplers.h"     // for DiscreteGaussian, DiscreteLaplace
#include "plugin_cpp/release/workers.h"     // for FromRankZero, SumOverWorkers
#include "xgboost/logging.h"                // for CHECK

namespace xgboost::dp {
namespace {
constexpr char kStays[] = "Exact sums of a masked training stay with their worker.";
}  // namespace

Release::Release(Context const* ctx, bool noise_free, std::string const& test_key,
                 Masking const& masking, std::uint32_t stream, bool of_persons)
    : ctx_{ctx}, masking_{masking}, ledger_{of_persons} {
  if (!noise_free) {
    rng_ = masking.IsOn() ? MakeShareSource(test_key, stream) : MakeRandomSource(test_key, stream);
  }
}

void Release::OpenPads(std::string const& plan_id, bool last) {
  if (!masking_.IsOn()) {
    return;
  }
  auto pads = FindPads(plan_id, last);
  CHECK(masking_.workers == collective::GetWorldSize() && pads->World() == masking_.workers &&
        pads->Rank() == collective::GetRank())
      << "The noise of this masked training was divided among " << masking_.workers
      << " workers, which are not those that train.";
  pads_ = std::move(pads);
}

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
  auto const* gaussian = std::get_if<GaussianEvent>(&event);
  auto const* laplace = std::get_if<LaplaceEvent>(&event);
  CHECK(!masking_.IsOn() || (gaussian && is_local))
      << "Masked sums are a worker's own, with Gaussian noise.";
  Released<NoisyInt> out;
  if (rng_) {
    std::visit([&](auto const& e) { ledger_.Record(e, part); }, event);
    out.variance =
        gaussian ? masking_.DrawnVariance(gaussian->sigma2)
                 : 2.0 * static_cast<double>(laplace->scale) * static_cast<double>(laplace->scale);
  }
  if (masking_.IsOn()) {
    exact = this->SumMasked(std::move(exact), rng_ ? gaussian->sigma2 : 0);
  } else {
    if (is_local) {
      dp::SumOverWorkers(ctx_, exact.data(), exact.size());
    }
    exact = FromRankZero(ctx_, [&] {
      for (std::size_t i = 0; rng_ && i < exact.size(); ++i) {
        exact[i] += gaussian ? DiscreteGaussian(rng_.get(), gaussian->sigma2)
                             : DiscreteLaplace(rng_.get(), laplace->scale);
      }
      return std::move(exact);
    });
  }
  WipeStack();
  for (auto value : exact) {
    out.values.push_back(NoisyInt{value});
  }
  return out;
}

std::vector<std::int64_t> Release::SumMasked(std::vector<std::int64_t> local,
                                             std::uint64_t sigma2) {
  CHECK(pads_) << "The pads of this masked training are used up: start a new one.";
  CHECK(rng_ || sigma2 == 0);
  std::vector<std::uint64_t> words(local.size() + 1);  // the last: zero, and zero it must come out
  auto share = rng_ ? masking_.ShareOf(sigma2) : 0;
  for (std::size_t i = 0; i < local.size(); ++i) {
    words[i] = static_cast<std::uint64_t>(local[i]);
    if (rng_) {
      words[i] += static_cast<std::uint64_t>(DiscreteGaussian(rng_.get(), share));
    }
  }
  SecureWipe(local.data(), local.size() * sizeof(local.front()));
  // From here until the sum has come out right there are no pads for another one.
  auto pads = std::move(pads_);
  pads->Mask(&words);
  WipeStack();
  auto result = collective::Allreduce(ctx_, linalg::MakeVec(words.data(), words.size()),
                                      collective::Op::kSum);
  CHECK(result.OK())
      << "A worker has dropped out of a masked sum, or cannot be reached. Nothing of this sum can "
         "be read. The training has ended; what was released before it is in the ledger. Start a "
         "new training with the workers that are left. "
      << result.Report();
  CHECK_EQ(words.back(), 0)
      << "The pads of a masked sum do not cancel: the workers are out of step. The training has "
         "ended, and nothing of this sum can be read.";
  pads_ = std::move(pads);
  for (std::size_t i = 0; i < local.size(); ++i) {
    local[i] = static_cast<std::int64_t>(words[i]);
  }
  return local;
}

std::vector<std::int64_t> Release::Select(SelectionEvent const& event, std::size_t n_choices,
                                          UtilitiesOf const& utilities) {
  CHECK(!masking_.IsOn())
      << "A selection needs exact sums, which no worker has of a masked training.";
  if (rng_) {
    ledger_.Record(event, 0);
  }
  return FromRankZero(ctx_, [&] {
    std::vector<std::int64_t> chosen;
    for (std::size_t i = 0; i < n_choices; ++i) {
      auto const* of_choice = utilities(i);
      common::Span<std::int64_t const> span{of_choice->data(), of_choice->size()};
      auto idx = rng_ ? SelectExponential(rng_.get(), span, event.eps_num, event.range << kEpsBits)
                      : SelectArgmax(span);
      WipeStack();
      chosen.push_back(static_cast<std::int64_t>(idx));
    }
    return chosen;
  });
}

void Release::BeginRound(RoundEvent const& round, bool record) {
  if (rng_) {
    ledger_.BeginRound(round, record);
  }
}
}  // namespace xgboost::dp
