/**
 * Loss functions of this plugin: the gradient and Hessian of a row, from its predictions and label.
 *
 * Objectives without a loss here use XGBoost's gradients. A loss reads one row at a time and public
 * parameters, so no row changes the derivatives of another. The privacy guarantee does not depend
 * on the correctness of a loss, because the row bound is enforced for any derivatives.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t
#include <memory>   // for shared_ptr
#include <string>   // for string
#include <vector>   // for vector

#include "plugin_cpp/json_reader.h"  // for JsonReader

namespace xgboost::dp {
struct LossRows {
  std::size_t n{0};
  double const* margins{nullptr};       // output by output, n each
  double const* labels{nullptr};        // label by label, n each, within their declared ranges;
                                        // lower ends of intervals
  double const* upper_labels{nullptr};  // upper ends of intervals, or infinity
  double const* weights{nullptr};       // within their bound
  std::int32_t round{0};
};

struct LabelRange {
  double lower{0}, upper{0};
};

class Loss {
 public:
  virtual ~Loss() = default;

  /** @brief Number of predictions of a row, each with its own trees. */
  [[nodiscard]] virtual std::size_t NumOutputs() const { return 1; }
  /** @brief Number of labels of a row: one, or one for each output. */
  [[nodiscard]] virtual std::size_t NumLabels() const { return 1; }
  /** @param declared The range of the label, if there is only one. */
  [[nodiscard]] virtual LabelRange TargetRange(std::size_t /*label*/, LabelRange declared) const {
    return declared;
  }
  /** @brief Margin added by a leaf weight of one. Pairs() differentiates in this unit. */
  [[nodiscard]] virtual double Unit(std::int32_t /*round*/, std::size_t /*output*/) const {
    return 1.0;
  }
  /**
   * @brief Whether all outputs of a round reuse the leaves of the first output, the only one with
   *        gradients. They must share their splits.
   */
  [[nodiscard]] virtual bool SharesLeaves(std::int32_t /*round*/) const { return false; }
  /** @brief Variance of a gradient per unit of its Hessian; 0 if it is unknown. */
  [[nodiscard]] virtual double RowVariance() const { return 0.0; }
  /** @brief Whether labels are intervals, whose upper end may be infinite. */
  [[nodiscard]] virtual bool IsInterval() const { return false; }
  /**
   * @brief Released offset that the first tree adds to all margins. Used for rows with a base
   *        margin, where XGBoost has no intercept.
   */
  [[nodiscard]] virtual double Start() const { return 0.0; }
  /** @brief The mean that a margin predicts, for losses whose mean is corrected by a factor. */
  [[nodiscard]] virtual double PredictMean(double margin) const { return margin; }
  /** @brief Released upper bound on predictions, for the correction by a factor; 0 without one. */
  [[nodiscard]] virtual double LargestMean() const { return 0.0; }
  /** @brief Whether LargestNorms is available. */
  [[nodiscard]] virtual bool KnowsNorms() const { return true; }
  /** @brief Whether Pairs() applies the row weights; otherwise the caller multiplies by them. */
  [[nodiscard]] virtual bool IsWeighted() const { return false; }
  /**
   * @brief First and second derivatives of some rows. A row with NaN contributes nothing.
   *
   * @param g,h Derivatives, output by output like the margins.
   */
  virtual void Pairs(LossRows const& rows, double* g, double* h) const = 0;
  /**
   * @brief The norms sqrt(sum_k g_k^2 + r h_k^2) of rows of weight one, with the worst label in the
   *        range instead of the actual one. Used in RowBound::Mode::kPrediction.
   *
   * @param r Weight of Hessians in the norm.
   */
  virtual void LargestNorms(LossRows const& rows, double r, double* norms) const = 0;
};

// Each creates a loss from `loss` of the plan and the label range. loss.cc maps names to them.
using LossMaker = std::shared_ptr<Loss const>(JsonReader const& in, LabelRange range);
LossMaker MakeShareLoss, MakeMultiLabelLoss, MakePowerLoss, MakePseudoHuberLoss, MakeProgramLoss;
LossMaker MakeQuantileLoss, MakeSquaredLogLoss, MakeSurvivalLoss, MakeTargetsLoss;

/** @brief Read the ranges of several labels from the lists `lower` and `upper`. */
[[nodiscard]] std::vector<LabelRange> ReadRanges(JsonReader const& in);

/**
 * @brief The loss of a plan; throws dmlc::Error for an unknown one.
 *
 * @param in        `loss` of the plan: its `name` and parameters.
 * @param objective The objective of XGBoost, which turns margins into predictions.
 */
[[nodiscard]] std::shared_ptr<Loss const> ReadLoss(JsonReader const& in,
                                                   std::string const& objective, LabelRange range);
}  // namespace xgboost::dp
