/**
 * The row bound: the largest contribution of a row, or of all rows of a person, on an integer grid.
 *
 * xgb_dp/accounting derives all sensitivities and score ranges from it. The gradient and Hessian of
 * a row become a pair of integers (q_g, q_h), in units of C / 2^grid_bits and C / (sqrt(r)
 * 2^grid_bits). The bound is enforced on these integers, after all floating-point arithmetic, so it
 * holds exactly for any objective, weight, label and platform.
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
/** @brief Upper limit on the declared bound of a person, in rows. */
inline constexpr double kMaxRowsPerPerson = 1024;

/**
 * @brief Round to the nearest integer, ties to even. The value is clamped first, because a cast out
 *        of range is undefined. The absolute values of both ends must be below 2^51.
 */
inline double RoundWithin(double value, double lower, double upper) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: the sum has no fractional bits
  // The order of the comparisons maps NaN to the lower end.
  value = value > lower ? value : lower;
  value = value < upper ? value : upper;
  return (value + kShift) - kShift;
}

struct RowBound : private JsonReader {
  enum class Mode {
    kPrediction,  // both entries scaled so that g^2 + r h^2 <= C^2, by a factor that does not
                  // depend on the label; several classes together
    kRowWeight,   // the same, by the norm of the row
    kClip,        // |g| clipped to C, and 0 <= h <= h_max
    kFilter,      // the same, but rows with |g| > C contribute nothing
  };
  static constexpr char const* kModes[] = {"prediction", "row_weight", "clip", "filter"};

  bool person_level;       // whether the bound is for all rows of a person together
  std::int32_t grid_bits;  // of C
  bool clamp_target;       // whether gradients are from the squared loss of XGBoost
  Mode mode = Enum<Mode>("mode", kModes);
  // Their products do not overflow or vanish.
  double gradient_bound = Real("gradient_bound", 1e-6, 1e6);   // C
  double hessian_weight = Real("hessian_weight", 1e-12, 1e6);  // r
  double hessian_bound = Real("hessian_bound", 0.0, 1e9);      // h_max, mode kClip
  // Largest |g| and sqrt(r) h of a single output, for C = 1.
  double output_gradient = Real("output_gradient", 1e-9, 1.0);
  double output_hessian = Real("output_hessian", 1e-9, 1.0);
  double max_weight = Real("max_weight", 0.0, 1e9);  // public bound of row weights, 0: unbounded
  // Divisor of weights, applied before that bound; its lower end is an assumption of the proof
  // for several classes.
  double weight_unit = Has("weight_unit") ? Real("weight_unit", 1e-3, 1e9) : 1.0;
  // XGBoost's scale_pos_weight.
  double positive_weight = mode == Mode::kPrediction ? Real("positive_weight", 0.0, 1e38) : 1.0;
  double scale = Real("scale", 1e-30, 1e38);  // regression: half the width of the target domain
  double target_lower = Real("target_lower");
  double target_upper = Real("target_upper", target_lower);
  bool unit_hessian = Bool("unit_hessian");  // gradient boosting: Hessians are weights
  // K, the bound of a person in rows.
  double max_rows_per_person =
      Real("max_rows_per_person", 1.0, person_level ? kMaxRowsPerPerson : 1.0);

  RowBound(JsonReader const& in, bool person_level, std::int64_t grid_bits, bool clamp_target)
      : JsonReader{in},
        person_level{person_level},
        grid_bits{static_cast<std::int32_t>(grid_bits)},
        clamp_target{clamp_target} {}

  /** @brief Whether the bound is the ball g^2 + r h^2 <= C^2. */
  [[nodiscard]] bool IsBall() const {
    return mode == Mode::kPrediction || mode == Mode::kRowWeight;
  }
  /** @brief B: the integer that represents C on the grid. */
  [[nodiscard]] std::int64_t Unit() const { return std::int64_t{1} << grid_bits; }
  /** @brief Largest q_h of a row. */
  [[nodiscard]] std::int64_t MaxHessian() const;
  /**
   * @brief The largest contribution of a privacy unit to sum |q_g| and to sum q_h. A row
   *        contributes at most B and the largest q_h; a person contributes K times as much.
   */
  [[nodiscard]] std::int64_t MaxGradientSum() const { return this->OnGrid(max_rows_per_person); }
  [[nodiscard]] std::int64_t MaxHessianSum() const {
    return MaxGradientSum() * MaxHessian() / Unit();
  }
  /**
   * @brief The largest norm of a person's Hessians in spread leaves. If the bound is a ball, it is
   *        a quarter of the bound on gradients, as for a row by default; otherwise it is
   *        MaxHessianSum().
   */
  [[nodiscard]] std::int64_t MaxLeafHessian() const {
    return IsBall() ? (MaxGradientSum() + 3) / 4 : MaxHessianSum();
  }
  /** @brief Largest |q_g| and q_h of a row in a single output. */
  [[nodiscard]] std::int64_t OutputGradient() const { return this->OnGrid(output_gradient); }
  [[nodiscard]] std::int64_t OutputHessian() const { return this->OnGrid(output_hessian); }
  /** @brief Whether single outputs have bounds, besides the joint bound. */
  [[nodiscard]] bool HasOutputBounds() const { return output_gradient < 1 || output_hessian < 1; }
  /** @brief Real value of one grid step of G and of H. */
  [[nodiscard]] double GradientStep() const { return gradient_bound / static_cast<double>(Unit()); }
  [[nodiscard]] double HessianStep() const {
    return gradient_bound / (std::sqrt(hessian_weight) * static_cast<double>(Unit()));
  }

 private:
  /** @brief A multiple of C, rounded up to the grid. */
  [[nodiscard]] std::int64_t OnGrid(double share) const {
    return static_cast<std::int64_t>(std::ceil(share * static_cast<double>(Unit())));
  }
};

/** @brief Applies a row bound, with precomputed constants. */
class RowQuantiser {
 public:
  explicit RowQuantiser(RowBound const& bound);

  /** @brief Replace the gradients of rows by integers. NaN or infinite values give (0, 0). */
  void operator()(double* g, double* h, std::size_t n) const;
  /**
   * @brief Compute the integers of logistic loss, in the mode kPrediction.
   *
   * The factor of a row is min(1, C / n), where n is the larger of the norms for both labels at the
   * prediction and weight of the row. The row bound holds for any input.
   *
   * @param y     Labels, 0 or 1.
   * @param w     Weights within the public bound, without `positive_weight`.
   * @param g     Margins; receives the gradients.
   * @param h     Receives the Hessians.
   * @param norms Receives the larger of the norms for both labels, for C = 1.
   */
  void operator()(double const* y, double const* w, double* g, double* h, double* norms,
                  std::size_t n) const;
  /** @brief The integers of one row. In the mode kPrediction, the row is scaled by its own norm. */
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> operator()(double g, double h) const {
    (*this)(&g, &h, 1);
    return {static_cast<std::int64_t>(g), static_cast<std::int64_t>(h)};
  }

 private:
  bool scale_row_, by_prediction_, unit_hessian_, filter_;
  double c_, r_, root_, h_bound_, to_grid_, unit_, h_max_, positive_, least_weight_;
};

/**
 * @brief Applies a joint row bound for several classes, on the norm of all gradients and Hessians
 *        of a row together.
 *
 * The factor of a row depends on its predictions and weight but not on its label: it uses the
 * largest norm over all possible labels. Rare classes are therefore not weighted down, and the true
 * probabilities are a fixed point of the leaves. The bound is enforced on the integers, for any
 * factor.
 */
class ClassQuantiser {
 public:
  ClassQuantiser(RowBound const& bound, std::size_t n_class);

  /**
   * @brief Replace the gradients w (p - e_label) and the Hessians of a row by integers. If any of
   *        them is not finite, all become 0.
   *
   * @param g,h    Entries of the first class. The entries of the next classes follow at the stride.
   * @param weight The weight w.
   *
   * @return The norm of the row with the worst label, for C = 1.
   */
  double operator()(double label, double weight, double* g, double* h, std::size_t stride) const;
  /** @brief Replace a row whose largest norm over all labels is known, for a weight of 1. */
  double Bound(double norm, double weight, double* g, double* h, std::size_t stride) const;

 private:
  /** @brief The largest norm of a row over all labels, for a weight of 1. */
  [[nodiscard]] double LargestNorm(double label, double weight, double const* g, double const* h,
                                   std::size_t stride) const;

  std::size_t n_class_;
  double c_, r_, root_, to_grid_, unit_, most_g_, most_h_, least_weight_;
};
}  // namespace xgboost::dp
