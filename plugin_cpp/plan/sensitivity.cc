#include "plugin_cpp/plan/sensitivity.h"

#include <algorithm>  // for max, min
#include <cmath>      // for ceil, ldexp, sqrt

#include "plugin_cpp/json_reader.h"      // for JsonReader
#include "plugin_cpp/random/samplers.h"  // for IntegerSqrt
#include "xgboost/logging.h"             // for CHECK

namespace xgboost::dp {
namespace {
// Utilities are floored to integers and computed in double with values of at most 2^53: the error
// is below 16 units, four times of which the range must absorb.
constexpr double kScoreSlack = 64.0;
// The floor and the rounding before a leaf value is an integer: values are at most N + 1
// sensitivities.
constexpr std::int64_t kOutputSlack = 2;

/** @brief The largest gradient and Hessian of a row in the tree of one selection, where C = 1. */
struct Box {
  double g, h;

  /** @brief sup over its rows of max - min over |w| <= tau of -(2 w g + h w^2). */
  [[nodiscard]] double NewtonRange(double tau) const {
    return tau * h <= g ? 4.0 * tau * g : (g + tau * h) * (g + tau * h) / h;
  }
};

/** @brief The same over the rows that a bound allows. */
double NewtonRange(Plan const& plan) {
  auto const& bound = plan.row_bound;
  double tau = plan.score_clip, r = bound.hessian_weight;
  auto unit = static_cast<double>(bound.Unit());
  if (!bound.IsBall()) {
    return Box{1.0, static_cast<double>(bound.MaxHessian()) / (std::sqrt(r) * unit)}  //
        .NewtonRange(tau);
  }
  auto range = 4.0 * tau;
  if (tau * tau > 8.0 * r) {
    double s = 0.5 * (1.0 - std::sqrt(1.0 - 8.0 * r / (tau * tau)));
    double corner = (tau * (1.0 + s)) * (tau * (1.0 + s)) / std::sqrt(tau * tau * s * s + r);
    range = std::max(range, corner);
  }
  Box of_output{static_cast<double>(bound.OutputGradient()) / unit,
                static_cast<double>(bound.OutputHessian()) / (std::sqrt(r) * unit)};
  return std::min(range, of_output.NewtonRange(tau));
}

/** @brief All sums that one release of candidates may have: the rows of a person may be in any. */
std::uint64_t CellsOfCandidates(Plan const& plan) {
  auto const& candidates = plan.candidates;
  std::uint64_t cells = 0;
  for (auto const& feature : plan.features) {
    if (feature.kind != FeaturePlan::Kind::kPrivate) {
      continue;
    }
    cells += candidates.kind == CandidateKind::kQuantileTree
                 ? (std::uint64_t{1} << candidates.levels) - 1
                 // Edges that move become no more than there were, or than the bins.
                 : std::max<std::uint64_t>(feature.grid.size() - 1, candidates.max_bin);
  }
  return cells;
}

/** @brief No less than the sums that a noisy histogram of one feature of one node has. */
std::uint64_t CellsOfFeature(Plan const& plan) {
  if (plan.split == SplitChoice::kPartial) {
    return 2;
  }
  std::uint64_t most = 0;
  for (auto const& feature : plan.features) {
    std::uint64_t bins = feature.kind == FeaturePlan::Kind::kCategorical
                             ? static_cast<std::uint64_t>(feature.n_categories)
                             : feature.cuts.size() + 1;
    if (feature.kind == FeaturePlan::Kind::kPrivate) {
      auto max_bin = static_cast<std::uint64_t>(plan.candidates.max_bin);
      bins = plan.candidates.kind == CandidateKind::kQuantileTree
                 ? 4 * max_bin + 128
                 : std::max<std::uint64_t>(feature.grid.size(), max_bin) + 2;
    }
    most = std::max(most, bins + 1);  // one for missing values
  }
  return most;
}

/** @brief Sums of one release on a tree, or on all of an additive round, that a unit can touch. */
std::uint64_t TouchedCells(Plan const& plan) {
  auto features = static_cast<std::uint64_t>(plan.IsAdditive()     ? plan.n_features
                                             : plan.HasNoisySums() ? plan.features_per_tree
                                                                   : 1);
  // A row is in one cell of each feature, and in the sum of all rows; the rows of a person may be
  // in all there are.
  auto of_feature = std::uint64_t{1};
  if (plan.IsOfPersons()) {
    of_feature = plan.HasNoisySums() ? CellsOfFeature(plan) << (plan.depth - 1)
                                     : std::uint64_t{1} << plan.depth;
  }
  return features * of_feature + (plan.IsAdditive() ? 1 : 0);
}
}  // namespace

std::uint64_t ScoreRange(Plan const& plan) {
  // One unit of utility is C / B, so that all scores of C = 1 have comparable scales.
  auto unit = static_cast<double>(plan.row_bound.MostGradient());
  // The rows of a person may be in all cells of a level, each of which is rounded by itself.
  auto cells = plan.IsOfPersons() ? std::ldexp(1.0, plan.depth) : 1.0;
  double range =
      2.0 * static_cast<double>(plan.SharesSplits() ? plan.row_bound.MostGradient()
                                                    : plan.row_bound.MostGradientOfOutput());
  if (plan.score == Score::kNewton) {
    range = std::ceil(NewtonRange(plan) * unit * (1.0 + 1e-12)) + kScoreSlack * cells;
  } else if (plan.score == Score::kGain) {
    // The change lies in (-3, 1] for every lambda.
    range = 4.0 * unit + kScoreSlack;
  } else if (plan.SharesSplits() && plan.IsOfPersons()) {
    range += 2.0 * cells;  // floors of norms
  }
  // Checked as a double, before any conversion; written so that NaN fails too.
  CHECK(range >= 1.0 && range < static_cast<double>(kMaxScoreRange))
      << "The plan (`dp_plan`) is not valid: the range of the split score does not fit. Lower "
         "`dp_score_clip` or `dp_rows_per_person`.";
  return static_cast<std::uint64_t>(range);
}

SelectionEvent SplitEvent(Plan const& plan) { return {"splits", plan.eps_num, ScoreRange(plan)}; }

GaussianEvent HistogramEvent(Plan const& plan) {
  // In each level a row is in one cell of each feature.
  auto cells = static_cast<std::uint64_t>(plan.features_per_tree);
  auto num_class = static_cast<std::uint64_t>(plan.num_class);
  return {"histograms", cells * plan.row_bound.RoundSensitivity2(plan.num_class),
          plan.histogram_sigma2, TouchedCells(plan) * 2 * num_class};
}

NoiseEvent LeafEvent(Plan const& plan) {
  auto const& bound = plan.row_bound;
  auto num_class = static_cast<std::uint64_t>(plan.num_class);
  if (plan.leaf.noise == LeafNoise::kGaussian) {
    auto sensitivity2 = static_cast<std::uint64_t>(bound.RoundSensitivity2(plan.num_class));
    auto cells = TouchedCells(plan);
    if (plan.leaf.spread) {
      // Beside the leaves, a third of the sums of all rows, each rounded.
      auto root = IntegerSqrt(sensitivity2) / kRootUnit + 2 * num_class + 1;
      sensitivity2 += root * root;
      ++cells;
    }
    return GaussianEvent{"leaves", sensitivity2, plan.leaf.sigma2, cells * 2 * num_class};
  }
  auto of_round = plan.leaf.noise == LeafNoise::kLaplace
                      ? static_cast<std::uint64_t>(bound.RoundSensitivityL1(plan.num_class))
                      : num_class * (kOutputUnits + kOutputSlack);
  return LaplaceEvent{"leaves", of_round, plan.leaf.scale};
}

GaussianEvent CorrectionEvent(Plan const& plan) {
  return {"correction",
          static_cast<std::uint64_t>(kResidualUnit * kResidualUnit + kInsideUnit * kInsideUnit),
          plan.correction.sigma2, 2};
}

NoiseEvent CandidateEvent(Plan const& plan) {
  auto const& candidates = plan.candidates;
  auto touched = static_cast<std::uint64_t>(plan.NumPrivateFeatures());
  if (candidates.kind == CandidateKind::kQuantileTree) {
    touched *= candidates.levels;
  }
  auto unit = static_cast<std::uint64_t>(candidates.hessian ? plan.row_bound.MostHessian()
                                                            : std::int64_t{1} << candidates.shift);
  // As a double, before any integer can overflow.
  CHECK_LT(static_cast<double>(touched) * static_cast<double>(unit) * static_cast<double>(unit),
           4.6e18)
      << "The plan (`dp_plan`) is not valid: the sensitivity of the candidates overflows."
      << JsonReader::kMend;
  if (candidates.laplace) {
    return LaplaceEvent{"candidates", touched * unit, candidates.scale};
  }
  return GaussianEvent{"candidates", touched * unit * unit, candidates.sigma2,
                       plan.IsOfPersons() ? CellsOfCandidates(plan) : touched};
}

LedgerEntry SumsOfRound(Plan const& plan) {
  auto trees = static_cast<std::uint64_t>(plan.parallel_trees);
  if (plan.HasNoisySums()) {
    return {DrawEvent{HistogramEvent(plan)}, trees * plan.depth};
  }
  return {LeafEvent(plan), plan.IsAdditive() ? 1 : trees};
}

LedgerEntry SelectionsOfRound(Plan const& plan) {
  auto per_tree = static_cast<std::uint64_t>(plan.SelectionsOfTree());
  auto chosen = static_cast<std::uint64_t>(plan.SharesSplits() ? 1 : plan.num_class);
  return {DrawEvent{SplitEvent(plan)}, per_tree * chosen * plan.parallel_trees};
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
  if (plan.split == SplitChoice::kExponential) {
    out.entries.push_back(SelectionsOfRound(plan));
  }
  out.entries.push_back(SumsOfRound(plan));
  return out;
}

Ledger EventsOfPlan(Plan const& plan) {
  Ledger ledger{plan.IsOfPersons()};
  for (std::int32_t round = 0; round < plan.rounds; ++round) {
    bool some = plan.ReadsSomeRows();
    if (plan.ReleasesCandidates(round) && !(some && plan.candidates.hessian)) {
      ledger.Announce({CandidateEvent(plan), 1});
    }
    if (some) {
      ledger.BeginRound(EventOfRound(plan, round), plan.IsSampled() || round % plan.ensemble == 0);
      continue;
    }
    ledger.Announce(SumsOfRound(plan));
    if (plan.split == SplitChoice::kExponential) {
      ledger.Announce(SelectionsOfRound(plan));
    }
  }
  if (plan.correction.is_on) {
    ledger.Announce({NoiseEvent{CorrectionEvent(plan)}, CorrectionPlan::kTimes});
  }
  return ledger;
}
}  // namespace xgboost::dp
