/**
 * Conditions on combinations of fields of a plan: assumptions of the proofs, and limits that
 * prevent overflow.
 */
#include <algorithm>   // for adjacent_find, all_of, max
#include <cstddef>     // for size_t
#include <cstdint>     // for uint64_t
#include <functional>  // for greater_equal

#include "plugin_cpp/json_reader.h"  // for Require
#include "plugin_cpp/plan/plan.h"    // for Plan

namespace xgboost::dp {
namespace {
void CheckFeatureWeights(Plan const& plan) {
  auto const& weights = plan.feature_weights;
  Require(weights.empty() || weights.size() == static_cast<std::size_t>(plan.n_features),
          "`feature_weights` must have one entry for each feature, or none.");
  Require(weights.empty() || !plan.cyclic_features,
          "features that are taken in turn cannot have weights.");
}

void CheckOffered(Plan const& plan) {
  auto const& offered = plan.offered;
  if (offered.empty()) {
    return;
  }
  Require(!plan.IsPersonLevel(), "`offered` is not proved where the unit is a person.");
  Require(offered.size() == static_cast<std::size_t>(plan.features_per_tree) &&
              std::adjacent_find(offered.cbegin(), offered.cend(), std::greater_equal<>{}) ==
                  offered.cend(),
          "`offered` must have `features_per_tree` features, each of them once and ascending.");
  Require(plan.feature_weights.empty() && !plan.cyclic_features,
          "features that are offered to every tree are not drawn.");
}

void CheckRowBound(Plan const& plan) {
  Require(plan.IsSquaredLoss() || plan.IsMulticlass() || plan.IsBinary() || plan.loss,
          "objective `" + plan.objective + "` has no proved row bound.");
  Require(plan.IsMulticlass() || plan.num_class == std::max(plan.NumOutputs(), 1),
          "`num_class` needs softmax, or a loss with as many outputs.");
  Require(
      !plan.loss || plan.loss->KnowsNorms() || plan.row_bound.mode != RowBound::Mode::kPrediction,
      "the clip by predictions needs a loss whose norms are known.");
  Require(plan.NumOutputs() <= 1 || plan.row_bound.mode == RowBound::Mode::kPrediction,
          "several outputs need the clip by predictions, which bounds them together.");
  Require(!plan.row_bound.HasOutputBounds() ||
              (plan.loss && plan.row_bound.mode == RowBound::Mode::kPrediction),
          "bounds of single outputs need a loss that is clipped by predictions.");
  Require(!plan.IsMulticlass() || plan.row_bound.IsBall(),
          "softmax needs the clip by row weights or by predictions.");
  Require(plan.IsBinary() || plan.IsMulticlass() || plan.loss ||
              plan.row_bound.mode != RowBound::Mode::kPrediction,
          "the clip by predictions needs logistic loss, softmax or a loss that tells its norm.");
  Require((plan.IsBinary() && !plan.loss) || plan.row_bound.positive_weight == 1.0,
          "`positive_weight` is for two classes of one label.");
  Require(plan.row_bound.weight_unit == 1.0 || plan.row_bound.max_weight > 0.0,
          "a unit of weights needs a bound of weights.");
  static_cast<void>(plan.row_bound.MaxHessian());  // throws if it does not fit
  Require(static_cast<std::uint64_t>(plan.row_bound.MaxGradientSum()) < kMaxScoreRange,
          "`max_rows_per_person` does not fit the grid.");
  // As doubles, before any integer can overflow.
  auto gradient = static_cast<double>(plan.row_bound.MaxGradientSum());
  auto hessian = plan.row_bound.IsBall() && !plan.leaf.spread
                     ? 0.0
                     : static_cast<double>(plan.row_bound.MaxLeafHessian());
  // Spread leaves also release a third of all sums.
  double most = plan.leaf.spread ? 8e18 : 9e18;
  Require(plan.num_class * (gradient * gradient + hessian * hessian) < most,
          "the sensitivity of leaves overflows.");
}

/** @brief Whether every row has the same Hessian, so that sums of Hessians count rows. */
bool HessiansCountRows(Plan const& plan) {
  // Squared loss or gradient boosting, with a clip that does not change the Hessian. The row-weight
  // clip shrinks it for rows with large residuals, and a unit of weights for all rows.
  auto const& bound = plan.row_bound;
  return (plan.IsSquaredLoss() || bound.unit_hessian) && !bound.IsBall() &&
         (bound.max_weight == 0.0 || bound.max_weight >= 1.0) && bound.weight_unit == 1.0;
}

/** @brief Refuse combinations without a proved bound for all rows of a person. */
void CheckPersons(Plan const& plan) {
  Require(
      !plan.leaf.spread || (plan.IsPersonLevel() && plan.leaf.noise == LeafNoise::kGaussian &&
                            !plan.HasNoisySums() && (plan.num_class == 1 || plan.SharesSplits())),
      "persons count more in leaves of one structure with Gaussian noise of their own only.");
  if (!plan.IsPersonLevel()) {
    return;
  }
  Require(plan.score != Score::kGain && plan.leaf.noise != LeafNoise::kOutput,
          "the published gain and output perturbation need rows that count one each; those of a "
          "person share what a person may count.");
  Require(plan.row_bound.mode != RowBound::Mode::kFilter,
          "rows that are left out one by one have no bound for persons.");
  Require(plan.row_bound.MaxHessian() > 0,
          "the norm of a row of a person needs a `hessian_bound` above 0.");
}

void CheckSplits(Plan const& plan) {
  bool selects = plan.split == SplitChoice::kExponential;
  Require(plan.split_levels == 1 || (selects && !plan.no_split),
          "only the exponential mechanism fills several levels, and then all of them.");
  Require(selects || !plan.no_split,
          "random splits and noisy histograms have no utility to compare with `no_split`.");
  Require(plan.score != Score::kGain || HessiansCountRows(plan),
          "the published gain is unbounded under Hessians that vary.");
  Require(!plan.SharesSplits() || (plan.num_class > 1 && selects && plan.score == Score::kL1 &&
                                   plan.row_bound.mode == RowBound::Mode::kPrediction),
          "trees of several classes share splits that selections choose by the score `l1`, of rows "
          "whose classes are bounded together.");
  Require(plan.score != Score::kNewton || plan.score_clip > 0,
          "the Newton score needs a weight clip `score_clip`.");
}

void CheckLeaves(Plan const& plan) {
  bool output = plan.leaf.noise == LeafNoise::kOutput;
  Require(!plan.SharesLeaves(0) || (plan.SharesSplits() && !output),
          "outputs that have the same leaves need the same splits, and released sums.");
  Require(plan.leaf.noise == LeafNoise::kGaussian || !plan.HasNoisySums(),
          "leaves that are read from noisy histograms have no noise of their own.");
  Require(!output || HessiansCountRows(plan),
          "the sensitivity of a leaf value is proved for Hessians that count rows.");
  // The integer of a Hessian of one counts rows.
  Require(
      (!output && plan.score != Score::kGain) || RowQuantiser{plan.row_bound}(0.0, 1.0).second >= 1,
      "`hessian_weight` is too small: on the grid of gradients a row counts nothing.");
  Require(!plan.leaf.geometric_clip || plan.leaf.eta_warmup == 1.0,
          "the geometric clip follows one learning rate of all rounds.");
  // Up to here the arithmetic of output perturbation is accurate enough.
  Require(!output || plan.leaf.min_child_weight + plan.leaf.lambda <= 1048576.0,
          "`min_child_weight` or `lambda` is too large for output perturbation.");
}

void CheckCorrection(Plan const& plan) {
  Require(!plan.correction.is_on ||
              ((plan.IsSquaredLoss() || (plan.loss && plan.loss->LargestMean() > 0)) &&
               plan.parallel_trees == 1 && !plan.ReadsSomeRows() &&
               plan.leaf.noise != LeafNoise::kOutput && !plan.masking.IsOn()),
          "the correction of the mean is that of a regression with sums of all rows in the clear.");
}

void CheckFeatures(Plan const& plan) {
  Require(plan.features.size() == static_cast<std::size_t>(plan.n_features),
          "`features` must have one entry for each feature.");
  Require(plan.monotone.size() == plan.features.size(),
          "`monotone` needs one entry for each feature.");
  for (std::size_t f = 0; f < plan.features.size(); ++f) {
    Require(plan.monotone[f] == 0 || plan.features[f].kind != FeaturePlan::Kind::kCategorical,
            "categories have no order to be monotone in.");
  }
}

void CheckCandidates(Plan const& plan) {
  if (plan.NumPrivateFeatures() == 0) {
    return;
  }
  auto const& candidates = plan.candidates;
  bool tree = candidates.kind == CandidateKind::kQuantileTree;
  Require(candidates.rounds <= plan.rounds, "`candidates.rounds` are more than all rounds.");
  Require(!tree || !candidates.laplace, "quantile trees have Gaussian noise.");
  Require(!candidates.hessian || (plan.num_class == 1 && candidates.shift == 0),
          "Hessian weights are those of one class, on their own grid.");
  Require(!candidates.hessian || !plan.ReadsSomeRows() || candidates.rounds == plan.rounds,
          "rounds that read some rows only release candidates always or never.");
  Require(tree || std::all_of(plan.features.cbegin(), plan.features.cend(),
                              [](auto const& f) {
                                return f.kind != FeaturePlan::Kind::kPrivate || f.grid.size() >= 2;
                              }),
          "noisy histograms need a public grid.");
}

/** @brief Refuse masked sums except with Gaussian noise on sums of all rows, the proven case. */
void CheckMasking(Plan const& plan) {
  if (!plan.masking.IsOn()) {
    return;
  }
  bool laplace = plan.NumPrivateFeatures() > 0 && plan.candidates.laplace;
  Require(plan.split != SplitChoice::kExponential && plan.leaf.noise == LeafNoise::kGaussian &&
              !laplace && !plan.IsSampled() && !plan.IsPersonLevel(),
          "masked sums have Gaussian noise and read all rows, each of which is a unit of privacy; "
          "selections need exact sums.");
  if (plan.noise_free) {
    return;
  }
  // Throws if a share does not fit.
  static_cast<void>(
      plan.masking.ShareOf(plan.HasNoisySums() ? plan.histogram_sigma2 : plan.leaf.sigma2));
  if (plan.NumPrivateFeatures() > 0) {
    static_cast<void>(plan.masking.ShareOf(plan.candidates.sigma2));
  }
}
}  // namespace

void CheckPlan(Plan const& plan) {
  Require(plan.ensemble == 1 || !plan.IsSampled(), "disjoint parts are not sampled in addition.");
  CheckFeatures(plan);
  CheckFeatureWeights(plan);
  CheckOffered(plan);
  CheckRowBound(plan);
  CheckPersons(plan);
  CheckSplits(plan);
  CheckLeaves(plan);
  CheckCorrection(plan);
  CheckCandidates(plan);
  CheckMasking(plan);
}
}  // namespace xgboost::dp
