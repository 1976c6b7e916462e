#include "plugin_cpp/release/release.h"

#include <utility>  // for move
#include <variant>  // for get_if, visit

#include "plugin_cpp/random/exponential.h"  // for SelectArgmax, SelectExponential
#include "plugin_cpp/random/samplers.h"     // for DiscreteGaussian, DiscreteLaplace
#include "plugin_cpp/release/pads.h"        // for FindPads
#include "xgboost/logging.h"                // for CHECK

namespace xgboost::dp {
namespace {
constexpr char kStays[] = "Exact sums of a masked training stay with their worker.";

template <typename Owner>
std::vector<std::int64_t> Flat(std::vector<ExactSum<Owner>> const& sums) {
  std::vector<std::int64_t> out;
  out.reserve(2 * sums.size());
  for (auto const& sum : sums) {
    out.insert(out.end(), {sum.grad, sum.hess});
  }
  return out;
}

template <typename Owner>
std::vector<std::int64_t> Flat(std::vector<ExactInt<Owner>> const& numbers) {
  std::vector<std::int64_t> out;
  out.reserve(numbers.size());
  for (auto const& number : numbers) {
    out.push_back(number.value);
  }
  return out;
}

Released<NoisySum> Pairs(Released<NoisyInt> const& numbers) {
  Released<NoisySum> out{{}, numbers.variance};
  for (std::size_t i = 0; i < numbers.values.size(); i += 2) {
    out.values.push_back({numbers.values[i], numbers.values[i + 1], 1});
  }
  return out;
}
}  // namespace

Release::Release(Context const* ctx, bool noise_free, std::string const& test_key,
                 Masking const& masking, std::uint32_t stream)
    : ctx_{ctx}, masking_{masking} {
  if (!noise_free) {
    rng_ = masking.IsOn() ? MakeShareSource(test_key, stream) : MakeRandomSource(test_key, stream);
  }
  if (masking.IsOn()) {
    masked_.emplace(ctx, masking, rng_.get());
  }
}

void Release::OpenPads(std::string const& plan_id, bool last) {
  if (masked_) {
    masked_->Open(FindPads(plan_id, last));
  }
}

std::vector<GlobalSum> Release::SumOverWorkers(std::vector<LocalSum> sums) const {
  CHECK(!masked_) << kStays;
  static_assert(sizeof(LocalSum) == 2 * sizeof(std::int64_t));
  dp::SumOverWorkers(ctx_, reinterpret_cast<std::int64_t*>(sums.data()), 2 * sums.size());
  std::vector<GlobalSum> out;
  out.reserve(sums.size());
  for (auto const& sum : sums) {
    out.emplace_back(sum.grad, sum.hess);
  }
  return out;
}

GlobalInt SumOverWorkers(Context const* ctx, Masking const& masking, LocalInt value) {
  CHECK(!masking.IsOn()) << kStays;
  SumOverWorkers(ctx, &value.value, 1);
  return GlobalInt{value.value};
}

Released<NoisySum> Release::AddNoise(NoiseEvent const& event, std::vector<LocalSum> const& exact,
                                     std::size_t part) {
  return Pairs(this->Draw(event, Flat(exact), true, part));
}
Released<NoisySum> Release::AddNoise(NoiseEvent const& event, std::vector<GlobalSum> const& exact,
                                     std::size_t part) {
  return Pairs(this->Draw(event, Flat(exact), false, part));
}
Released<NoisyInt> Release::AddNoise(NoiseEvent const& event, std::vector<LocalInt> const& exact,
                                     std::size_t part) {
  return this->Draw(event, Flat(exact), true, part);
}
Released<NoisyInt> Release::AddNoise(NoiseEvent const& event, std::vector<GlobalInt> const& exact,
                                     std::size_t part) {
  return this->Draw(event, Flat(exact), false, part);
}

Released<NoisyInt> Release::Draw(NoiseEvent const& event, std::vector<std::int64_t> exact,
                                 bool is_local, std::size_t part) {
  auto const* gaussian = std::get_if<GaussianEvent>(&event);
  auto const* laplace = std::get_if<LaplaceEvent>(&event);
  CHECK(!masked_ || (gaussian && is_local)) << "Masked sums are a worker's own, with Gaussian noise.";
  Released<NoisyInt> out;
  if (rng_) {
    std::visit([&](auto const& e) { ledger_.Record(e, part); }, event);
    out.variance = gaussian ? masking_.DrawnVariance(gaussian->sigma2)
                            : 2.0 * static_cast<double>(laplace->scale) *
                                  static_cast<double>(laplace->scale);
  }
  if (masked_) {
    exact = masked_->Release(std::move(exact), rng_ ? gaussian->sigma2 : 0);
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

void Release::BeginSelection(SelectionEvent const& event) {
  CHECK(!masked_) << "A selection needs exact sums, which no worker has of a masked training.";
  if (rng_) {
    ledger_.Record(event, 0);
  }
}

std::int64_t Release::Choose(SelectionEvent const& event,
                             std::vector<std::int64_t> const& utilities) {
  common::Span<std::int64_t const> span{utilities.data(), utilities.size()};
  if (!rng_) {
    return static_cast<std::int64_t>(SelectArgmax(span));
  }
  auto chosen = SelectExponential(rng_.get(), span, event.eps_num, event.range << kEpsBits);
  WipeStack();
  return static_cast<std::int64_t>(chosen);
}

void Release::BeginRound(RoundEvent const& round, bool record) {
  if (rng_) {
    ledger_.BeginRound(round, record);
  }
}
}  // namespace xgboost::dp
