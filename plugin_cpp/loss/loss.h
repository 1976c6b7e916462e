/**
 * Losses of the plugin's own: the gradient pair of a row, from its predictions and its label.
 *
 * Objectives without one take the gradients that XGBoost has computed. A loss sees one row at a
 * time and public parameters, so that no row changes the pair of another. It need not be right for
 * the guarantee: the row bound holds for whatever pair it returns.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t
#include <memory>   // for make_shared, shared_ptr
#include <string>   // for string
#include <vector>   // for vector

#include "plugin_cpp/json_reader.h"  // for JsonReader

namespace xgboost::dp {
struct LossRows {
  std::size_t n{0};
  double const* margins{nullptr};       // output by output, n of each
  double const* labels{nullptr};        // label by label, n of each, within their declared ranges;
                                        // of intervals, their lower ends
  double const* upper_labels{nullptr};  // of intervals: upper ends, or infinity
  double const* weights{nullptr};       // within their bound
  std::int32_t round{0};
};

/** @brief Where the labels of a loss lie; public. */
struct LabelRange {
  double lower{0}, upper{0};
};

class Loss {
 public:
  virtual ~Loss() = default;

  /** @brief Predictions of a row, each with trees of its own. */
  [[nodiscard]] virtual std::size_t NumOutputs() const { return 1; }
  /** @brief Labels of a row: one, or one for each output. */
  [[nodiscard]] virtual std::size_t NumLabels() const { return 1; }
  /**
   * @brief Where a label lies.
   *
   * @param declared Of losses with one label.
   */
  [[nodiscard]] virtual LabelRange RangeOf([[maybe_unused]] std::size_t label,
                                           LabelRange declared) const {
    return declared;
  }
  /** @brief What a leaf weight of one adds to the margin; pairs are derivatives by that unit. */
  [[nodiscard]] virtual double Unit([[maybe_unused]] std::int32_t round,
                                    [[maybe_unused]] std::size_t output) const {
    return 1.0;
  }
  /**
   * @brief Whether the outputs of a round move together: the first one alone has gradients, and the
   *        trees of the others have its leaves. Then all outputs of a round share their splits.
   */
  [[nodiscard]] virtual bool SharesLeaves([[maybe_unused]] std::int32_t round) const {
    return false;
  }
  /** @brief Variance of a gradient for each unit of its Hessian; 0 where nothing is known. */
  [[nodiscard]] virtual double RowVariance() const { return 0.0; }
  /** @brief Whether labels are the bounds of intervals, of which the upper may be infinite. */
  [[nodiscard]] virtual bool IsInterval() const { return false; }
  /**
   * @brief What the first tree adds to all margins, where rows bring their own and XGBoost has no
   *        intercept; a released number.
   */
  [[nodiscard]] virtual double Start() const { return 0.0; }
  /** @brief The mean that a margin predicts, of losses whose correction of the mean is a factor. */
  [[nodiscard]] virtual double MeanOf(double margin) const { return margin; }
  /**
   * @brief Where a prediction is cut in the sum that says what a factor is worth; 0 where there is
   *        no factor. A released number.
   */
  [[nodiscard]] virtual double LargestMean() const { return 0.0; }
  /** @brief Whether LargestNorms answers. */
  [[nodiscard]] virtual bool KnowsNorms() const { return true; }
  /** @brief Whether the pairs have the weights in them; else they are multiplied afterwards. */
  [[nodiscard]] virtual bool IsWeighted() const { return false; }
  /**
   * @brief First and second derivatives of some rows. What is no number counts as no row.
   *
   * @param g,h Output by output, as the margins.
   */
  virtual void Pairs(LossRows const& rows, double* g, double* h) const = 0;
  /**
   * @brief The norms sqrt(sum_k g_k^2 + r h_k^2) that rows of weight one have with the worst label
   *        in the range: no function of their labels. For RowBound::Mode::kPrediction.
   *
   * @param r Weight of Hessians in the norm.
   */
  virtual void LargestNorms(LossRows const& rows, double r, double* norms) const = 0;
};

/** @brief A loss from `loss` of the plan and the range of its label. */
using LossMaker = std::shared_ptr<Loss const> (*)(JsonReader const& in, LabelRange range);
template <typename T>
std::shared_ptr<Loss const> MakeLoss(JsonReader const& in, LabelRange range) {
  return std::make_shared<T>(in, range);
}
/** @brief A static one adds a loss, for objectives whose models predict what it fits. */
struct AddLoss {
  AddLoss(char const* name, std::vector<std::string> objectives, LossMaker make);
};

/** @brief The ranges of several labels, from the lists `lower` and `upper`. */
[[nodiscard]] std::vector<LabelRange> ReadRanges(JsonReader const& in);

/**
 * @brief The loss that a plan asks for; throws dmlc::Error for one that is not known.
 *
 * @param in        `loss` of the plan: its `name` and parameters.
 * @param objective Of XGBoost, whose predictions the model makes.
 */
[[nodiscard]] std::shared_ptr<Loss const> ReadLoss(JsonReader const& in,
                                                   std::string const& objective, LabelRange range);
}  // namespace xgboost::dp
