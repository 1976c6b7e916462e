#include "plugin_cpp/plan/draws.h"

namespace xgboost::dp {
SelectionEvent SplitEvent(Plan const& plan) { return {"splits", plan.eps_num, plan.score_range}; }

GaussianEvent HistogramEvent(Plan const& plan) { return {"histograms", plan.histogram_sigma2}; }

NoiseEvent LeafEvent(Plan const& plan) {
  if (plan.leaf.noise == LeafNoise::kGaussian) {
    return GaussianEvent{"leaves", plan.leaf.sigma2};
  }
  return LaplaceEvent{"leaves", plan.leaf.scale};
}

GaussianEvent CorrectionEvent(Plan const& plan) { return {"correction", plan.correction.sigma2}; }

NoiseEvent CandidateEvent(Plan const& plan) {
  if (plan.candidates.laplace) {
    return LaplaceEvent{"candidates", plan.candidates.scale};
  }
  return GaussianEvent{"candidates", plan.candidates.sigma2};
}

RoundEvent EventOfRound(Plan const& plan, std::int32_t round) {
  RoundEvent out;
  if (plan.IsSampled()) {
    out.rate_num = plan.sampling_num;
  } else {
    out.ensemble = plan.ensemble;
    out.halving = plan.ensemble_halving;
  }
  // Candidates with unit weights read all rows.
  if (plan.candidates.hessian && plan.ReleasesCandidates(round)) {
    out.entries.emplace_back(CandidateEvent(plan), 1);
  }
  auto trees = static_cast<std::uint64_t>(plan.parallel_trees);
  if (plan.split == SplitChoice::kExponential) {
    auto chosen = static_cast<std::uint64_t>(plan.SharesSplits() ? 1 : plan.num_class);
    out.entries.emplace_back(DrawEvent{SplitEvent(plan)}, plan.SelectionsOfTree() * chosen * trees);
  }
  if (plan.HasNoisySums()) {
    out.entries.emplace_back(DrawEvent{HistogramEvent(plan)}, trees * plan.depth);
  } else {
    out.entries.emplace_back(LeafEvent(plan), trees);
  }
  return out;
}
}  // namespace xgboost::dp
