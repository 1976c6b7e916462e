/**
 * The row bound: how much one row can contribute, and the integer grid on which it does; and with
 * it, how much all rows of a person can.
 *
 * All sensitivities and score ranges follow from it, in xgb_dp/accounting. Every row's gradient
 * pair becomes a pair of integers (q_g, q_h), in units of C / 2^grid_bits and
 * C / (sqrt(r) 2^grid_bits); the bound is enforced on these integers, after all floating-point
 * arithmetic, so it holds exactly for any objective, weight, label and platform.
 *
 * Proof: docs/proofs/integer-grid.md
 * Proof: docs/proofs/neighbours.md
 * Proof: docs/proofs/persons.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cmath>    // for ceil, sqrt
#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, int32_t
#include <utility>  // for pair

#include "plugin_cpp/json_reader.h"  // for JsonReader

namespace xgboost::dp {
/** @brief Counts and label sums are multiplied by up to 2^26 and must stay below 2^62. */
inline constexpr std::int64_t kMaxRows = std::int64_t{1} << 35;
/** @brief The most rows that a person may be declared to count. */
inline constexpr double kMaxRowsPerPerson = 1024;

/**
 * @brief Nearest integer, ties to even, clamped first: a later cast out of range is undefined.
 *
 * Both ends are of absolute values below 2^51.
 */
inline double RoundWithin(double value, double lower, double upper) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: the sum has no fractional bits
  // The order makes NaN fall to the lower end.
  value = value > lower ? value : lower;
  value = value < upper ? value : upper;
  return (value + kShift) - kShift;
}

struct RowBound : private JsonReader {
  enum class Mode {
    kPrediction,  // both entries scaled so that g^2 + r h^2 <= C^2, by a factor without the
                  // label; several classes all together
    kRowWeight,   // the same, by the norm of the row itself
    kClip,        // |g| clipped to C, and 0 <= h <= h_max
    kFilter,      // the same, but rows with |g| > C take no part
  };
  static constexpr char const* kModes[] = {"prediction", "row_weight", "clip", "filter"};

  bool person_level;       // whether it bounds all rows of a person together
  std::int32_t grid_bits;  // of C
  bool clamp_target;       // whether gradients are those of the squared loss of XGBoost
  Mode mode = Enum<Mode>("mode", kModes);
  // Far from the ends of the range of doubles, so that no product of them overflows or vanishes.
  double gradient_bound = Real("gradient_bound", 1e-6, 1e6);   // C
  double hessian_weight = Real("hessian_weight", 1e-12, 1e6);  // r
  double hessian_bound = Real("hessian_bound", 0.0, 1e9);      // h_max, mode kClip
  // Largest |g| of one of several outputs, and sqrt(r) h of one of them, where C = 1.
  double output_gradient = Real("output_gradient", 1e-9, 1.0);
  double output_hessian = Real("output_hessian", 1e-9, 1.0);
  double max_weight = Real("max_weight", 0.0, 1e9);  // public bound of row weights, 0: unbounded
  // What they are divided by before that; at least as in the proof of all classes.
  double weight_unit = Has("weight_unit") ? Real("weight_unit", 1e-3, 1e9) : 1.0;
  // XGBoost's scale_pos_weight.
  double positive_weight = mode == Mode::kPrediction ? Real("positive_weight", 0.0, 1e38) : 1.0;
  double scale = Real("scale", 1e-30, 1e38);  // regression: half the width of the target domain
  double target_lower = Real("target_lower");
  double target_upper = Real("target_upper", target_lower);
  bool unit_hessian = Bool("unit_hessian");  // gradient boosting: weights stand in for Hessians
  // K: what a person counts at most, in rows.
  double rows_per_person = Real("rows_per_person", 1.0, person_level ? kMaxRowsPerPerson : 1.0);

  RowBound(JsonReader const& in, bool person_level, std::int64_t grid_bits, bool clamp_target)
      : JsonReader{in},
        person_level{person_level},
        grid_bits{static_cast<std::int32_t>(grid_bits)},
        clamp_target{clamp_target} {}

  /** @brief Whether each row's pair is in the ball g^2 + r h^2 <= C^2. */
  [[nodiscard]] bool IsBall() const {
    return mode == Mode::kPrediction || mode == Mode::kRowWeight;
  }
  /** @brief B, the grid integer of C. */
  [[nodiscard]] std::int64_t Unit() const { return std::int64_t{1} << grid_bits; }
  /** @brief Largest q_h of a row. */
  [[nodiscard]] std::int64_t MaxHessian() const;
  /**
   * @brief What the unit of privacy, a row or a person, adds at most to sum |q_g| and to sum q_h:
   *        K B or B, and the same multiple of the largest q_h.
   */
  [[nodiscard]] std::int64_t MaxGradientSum() const { return this->OnGrid(rows_per_person); }
  [[nodiscard]] std::int64_t MaxHessianSum() const {
    return MaxGradientSum() * MaxHessian() / Unit();
  }
  /**
   * @brief The norm of the Hessians that a person with several rows adds to spread leaves: a
   *        quarter of that of gradients, as a row by default; MaxHessianSum() in the other modes.
   */
  [[nodiscard]] std::int64_t MaxLeafHessian() const {
    return IsBall() ? (MaxGradientSum() + 3) / 4 : MaxHessianSum();
  }
  /** @brief Largest |q_g| and q_h of a row in one of several outputs. */
  [[nodiscard]] std::int64_t OutputGradient() const { return this->OnGrid(output_gradient); }
  [[nodiscard]] std::int64_t OutputHessian() const { return this->OnGrid(output_hessian); }
  /** @brief Whether outputs have bounds besides that of all of them together. */
  [[nodiscard]] bool HasOutputBounds() const { return output_gradient < 1 || output_hessian < 1; }
  /** @brief Real value of one grid step of G and of H. */
  [[nodiscard]] double GradientStep() const { return gradient_bound / static_cast<double>(Unit()); }
  [[nodiscard]] double HessianStep() const {
    return gradient_bound / (std::sqrt(hessian_weight) * static_cast<double>(Unit()));
  }

 private:
  /** @brief A number of C, rounded up to the grid. */
  [[nodiscard]] std::int64_t OnGrid(double share) const {
    return static_cast<std::int64_t>(std::ceil(share * static_cast<double>(Unit())));
  }
};

/** @brief Applies a row bound to rows: the constants of the bound, computed once. */
class RowQuantiser {
 public:
  explicit RowQuantiser(RowBound const& bound);

  /**
   * @brief The integers of some rows, in place of their gradients. NaN or infinite input becomes
   *        (0, 0).
   */
  void operator()(double* g, double* h, std::size_t n) const;
  /**
   * @brief The same in the mode kPrediction, for pairs of logistic loss.
   *
   * The factor of a row is min(1, C / the norm of the label that has the larger one), at the
   * prediction and the weight of the row. The row bound does not rest on what is given.
   *
   * @param y     Labels, 0 or 1.
   * @param w     Weights of the rows, within the public bound, without `positive_weight`.
   * @param norms The norms that rows have with the larger label, where C = 1.
   */
  void operator()(double const* y, double const* w, double* g, double* h, double* norms,
                  std::size_t n) const;
  /** @brief The integers of one row; of its own norm in the mode kPrediction. */
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> operator()(double g, double h) const {
    (*this)(&g, &h, 1);
    return {static_cast<std::int64_t>(g), static_cast<std::int64_t>(h)};
  }

 private:
  bool scale_row_, by_prediction_, unit_hessian_, filter_;
  double c_, r_, root_, h_bound_, to_grid_, unit_, h_max_, positive_, least_weight_;
};

/**
 * @brief The row bound over several classes together: all gradients and Hessians of a row have one
 *        norm.
 *
 * A row is scaled by one factor, which depends on its predictions and its weight but not on its
 * label: the norm that it is scaled to is the largest over all labels that the row might have. So
 * no class counts less for being rare, and what the leaves make of it has the true probabilities as
 * its fixed point. The bound itself is enforced on the integers, whatever the factor was.
 */
class ClassQuantiser {
 public:
  ClassQuantiser(RowBound const& bound, std::size_t n_class);

  /**
   * @brief The integers of one row, in place of its gradients w (p - e_label) and its Hessians.
   *
   * One that is not a number makes all of them 0.
   *
   * @param g,h    Of the first class; those of the next ones follow at the stride.
   * @param weight w.
   *
   * @return The norm that the row has with the worst label, where C = 1.
   */
  double operator()(double label, double weight, double* g, double* h, std::size_t stride) const;
  /** @brief The same for a row whose largest norm for a weight of one, over all labels, is known.
   */
  double Bound(double norm, double weight, double* g, double* h, std::size_t stride) const;

 private:
  /** @brief The largest norm of a row over all labels, for a weight of 1. */
  [[nodiscard]] double LargestNorm(double label, double weight, double const* g, double const* h,
                                   std::size_t stride) const;

  std::size_t n_class_;
  double c_, r_, root_, to_grid_, unit_, most_g_, most_h_, least_weight_;
};
}  // namespace xgboost::dp
