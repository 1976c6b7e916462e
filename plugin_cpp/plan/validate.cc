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
          "`feature_weights` must be empty or have one entry per feature.");
  Require(weights.empty() || !plan.cyclic_features, "cyclic features cannot have weights.");
}

void CheckOffered(Plan const& plan) {
  auto const& offered = plan.offered;
  if (offered.empty()) {
    return;
  }
  Require(!plan.IsPersonLevel(), "`offered` is not proved for persons.");
  Require(offered.size() == static_cast<std::size_t>(plan.features_per_tree) &&
              std::adjacent_find(offered.cbegin(), offered.cend(), std::greater_equal<>{}) ==
                  offered.cend(),
          "`offered` must contain `features_per_tree` distinct features in ascending order.");
  Require(plan.feature_weights.empty() && !plan.cyclic_features,
          "`offered` cannot be combined with feature weights or cyclic features.");
}

void CheckRowBound(Plan const& plan) {
  Require(plan.IsSquaredLoss() || plan.IsMulticlass() || plan.IsBinary() || plan.loss,
          "objective `" + plan.objective + "` has no proved row bound.");
  Require(plan.IsMulticlass() || plan.num_class == std::max(plan.NumOutputs(), 1),
          "`num_class` must be the number of outputs of the loss.");
  Require(
      !plan.loss || plan.loss->KnowsNorms() || plan.row_bound.mode != RowBound::Mode::kPrediction,
      "the prediction clip requires a loss with known norms.");
  Require(plan.NumOutputs() <= 1 || plan.row_bound.mode == RowBound::Mode::kPrediction,
          "several outputs require the prediction clip, which bounds them jointly.");
  Require(!plan.row_bound.HasOutputBounds() ||
              (plan.loss && plan.row_bound.mode == RowBound::Mode::kPrediction),
          "bounds per output require a loss with the prediction clip.");
  Require(!plan.IsMulticlass() || plan.row_bound.IsBall(),
          "softmax requires the row-weight clip or the prediction clip.");
  Require(plan.IsBinary() || plan.IsMulticlass() || plan.loss ||
              plan.row_bound.mode != RowBound::Mode::kPrediction,
          "the prediction clip requires logistic loss, softmax or a loss with known norms.");
  Require((plan.IsBinary() && !plan.loss) || plan.row_bound.positive_weight == 1.0,
          "`positive_weight` requires a binary objective with one label.");
  Require(plan.row_bound.weight_unit == 1.0 || plan.row_bound.max_weight > 0.0,
          "`weight_unit` requires `max_weight`.");
  static_cast<void>(plan.row_bound.MaxHessian());  // throws if it does not fit
  Require(static_cast<std::uint64_t>(plan.row_bound.MaxGradientSum()) < kMaxScoreRange,
          "`max_rows_per_person` is too large for the grid.");
  // As doubles, before any integer can overflow.
  auto gradient = static_cast<double>(plan.row_bound.MaxGradientSum());
  auto hessian = plan.row_bound.IsBall() && !plan.leaf.spread
                     ? 0.0
                     : static_cast<double>(plan.row_bound.MaxLeafHessian());
  // Spread leaves also release a third of all sums.
  double most = plan.leaf.spread ? 8e18 : 9e18;
  Require(plan.num_class * (gradient * gradient + hessian * hessian) < most,
          "the sensitivity of the leaves overflows.");
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
      "`spread` requires privacy ids, Gaussian leaf noise, and one tree structure for all "
      "outputs.");
  if (!plan.IsPersonLevel()) {
    return;
  }
  Require(
      plan.score != Score::kGain && plan.leaf.noise != LeafNoise::kOutput,
      "the score 'gain' and output perturbation require that every row has weight 1, but rows of "
      "a person are scaled down.");
  Require(plan.row_bound.mode != RowBound::Mode::kFilter,
          "the filter drops single rows, so it has no bound for persons.");
  Require(plan.row_bound.MaxHessian() > 0, "with privacy ids, `hessian_bound` must be above 0.");
}

void CheckSplits(Plan const& plan) {
  bool selects = plan.split == SplitChoice::kExponential;
  Require(plan.split_levels == 1 || (selects && !plan.no_split),
          "`split_levels` above 1 requires the exponential mechanism without `no_split`.");
  Require(selects || !plan.no_split, "`no_split` requires the exponential mechanism.");
  Require(plan.score != Score::kGain || HessiansCountRows(plan),
          "the score 'gain' is unbounded if Hessians vary.");
  Require(!plan.SharesSplits() || (plan.num_class > 1 && selects && plan.score == Score::kL1 &&
                                   plan.row_bound.mode == RowBound::Mode::kPrediction),
          "shared splits require several classes, the exponential mechanism, the score 'l1' and "
          "the prediction clip.");
  Require(plan.score != Score::kNewton || plan.score_clip > 0,
          "the score 'newton' requires a `score_clip` above 0.");
}

void CheckLeaves(Plan const& plan) {
  bool output = plan.leaf.noise == LeafNoise::kOutput;
  Require(!plan.SharesLeaves(0) || (plan.SharesSplits() && !output),
          "outputs with shared leaves require shared splits and released leaf sums.");
  Require(plan.leaf.noise == LeafNoise::kGaussian || !plan.HasNoisySums(),
          "leaves computed from noisy histograms cannot have other noise.");
  Require(!output || HessiansCountRows(plan),
          "output perturbation requires that all rows have the same Hessian.");
  // The integer of a Hessian of one counts rows.
  Require(
      (!output && plan.score != Score::kGain) || RowQuantiser{plan.row_bound}(0.0, 1.0).second >= 1,
      "`hessian_weight` is too small: the Hessian of a row rounds to 0 on the grid.");
  Require(!plan.leaf.geometric_clip || plan.leaf.eta_warmup == 1.0,
          "the geometric clip requires the same learning rate in all rounds.");
  // Up to here the arithmetic of output perturbation is accurate enough.
  Require(!output || plan.leaf.min_child_weight + plan.leaf.lambda <= 1048576.0,
          "`min_child_weight` + `lambda` is too large for output perturbation.");
}

void CheckCorrection(Plan const& plan) {
  Require(!plan.correction.is_on ||
              ((plan.IsSquaredLoss() || (plan.loss && plan.loss->LargestMean() > 0)) &&
               plan.parallel_trees == 1 && !plan.ReadsSomeRows() &&
               plan.leaf.noise != LeafNoise::kOutput && !plan.masking.IsOn()),
          "the mean correction requires a regression with one tree per round, and unmasked noisy "
          "sums of all rows.");
}

void CheckFeatures(Plan const& plan) {
  Require(plan.features.size() == static_cast<std::size_t>(plan.n_features),
          "`features` must have one entry per feature.");
  Require(plan.monotone.size() == plan.features.size(),
          "`monotone` must have one entry per feature.");
  for (std::size_t f = 0; f < plan.features.size(); ++f) {
    Require(plan.monotone[f] == 0 || plan.features[f].kind != FeaturePlan::Kind::kCategorical,
            "`monotone` must be 0 for a categorical feature.");
  }
}

void CheckCandidates(Plan const& plan) {
  if (plan.NumPrivateFeatures() == 0) {
    return;
  }
  auto const& candidates = plan.candidates;
  bool tree = candidates.kind == CandidateKind::kQuantileTree;
  Require(candidates.rounds <= plan.rounds, "`candidates.rounds` exceeds the number of rounds.");
  Require(!tree || !candidates.laplace, "quantile trees require Gaussian noise.");
  Require(!candidates.hessian || (plan.num_class == 1 && candidates.shift == 0),
          "Hessian candidates require one output, and a `shift` of 0.");
  Require(!candidates.hessian || !plan.ReadsSomeRows() || candidates.rounds == plan.rounds,
          "if rounds read samples of rows, all rounds must release Hessian candidates.");
  Require(tree || std::all_of(plan.features.cbegin(), plan.features.cend(),
                              [](auto const& f) {
                                return f.kind != FeaturePlan::Kind::kPrivate || f.grid.size() >= 2;
                              }),
          "noisy histograms require a public grid.");
}

/** @brief Refuse masked sums except with Gaussian noise on sums of all rows, the proven case. */
void CheckMasking(Plan const& plan) {
  if (!plan.masking.IsOn()) {
    return;
  }
  bool laplace = plan.NumPrivateFeatures() > 0 && plan.candidates.laplace;
  Require(plan.split != SplitChoice::kExponential && plan.leaf.noise == LeafNoise::kGaussian &&
              !laplace && !plan.IsSampled() && !plan.IsPersonLevel(),
          "masked sums require Gaussian noise, unsampled rows without privacy ids, and splits "
          "other than the exponential mechanism.");
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
  Require(plan.ensemble == 1 || !plan.IsSampled(),
          "an ensemble cannot be combined with row sampling.");
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
