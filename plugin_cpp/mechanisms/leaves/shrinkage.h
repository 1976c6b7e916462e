/**
 * Empirical-Bayes shrinkage of leaf weights: post-processing of released sums.
 *
 * In complete trees, the weight of a leaf is a sum of the effects of the selections above it and of
 * their interactions (the Walsh functions of its path). The effects in a stratum share a normal
 * prior, whose variance is estimated over all trees of the same shape. The weights are posterior
 * means, given the variances of the noise and of the rows. In other trees, all leaves share one
 * prior.
 *
 * Proof: docs/proofs/leaves.md
 */
#pragma once

#include <array>    // for array
#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t
#include <vector>   // for vector

#include "plugin_cpp/plan/plan.h"     // for Plan, RowBound
#include "plugin_cpp/release/sums.h"  // for NoisyInt, NoisySum

namespace xgboost::dp {
/** @brief Released sums of a node as real numbers, and the variance of their noise. */
struct NodeSum {
  double grad{0};
  double hess{0};    // at least its standard deviation in each leaf
  double noise2{0};  // of grad
  double cover{0};   // the Hessian without this floor
  double cover_noise2{0};

  NodeSum() = default;
  /**
   * @param variance Variance of the noise on each sum.
   * @param least    Floor of the Hessian, in addition to the standard deviation of its noise.
   */
  NodeSum(NoisySum const& sum, double variance, RowBound const& bound, double least);
  /**
   * @brief Represent a released leaf value, for C = 1, as the sums of a leaf with a count of one.
   */
  NodeSum(NoisyInt value, double unit, RowBound const& bound)
      : grad{-(static_cast<double>(value.Value()) * unit) * bound.gradient_bound},
        hess{1.0},
        cover{1.0} {}

  friend NodeSum operator+(NodeSum a, NodeSum const& b) {
    a.grad += b.grad;
    a.hess += b.hess;
    a.noise2 += b.noise2;
    a.cover += b.cover;
    a.cover_noise2 += b.cover_noise2;
    return a;
  }
};

/** @brief Variance of the gradients of rows per unit of Hessian. */
[[nodiscard]] double RowVariance(Plan const& plan);

/**
 * @brief Largest depth with strata: the time of a fit grows with the cube of the number of leaves.
 */
inline constexpr std::int32_t kMaxStrataDepth = 8;

class LeafPrior {
 public:
  /** @return The prior variance after another tree with these leaves. */
  double Update(std::vector<NodeSum> const& leaves, double prior_max);

 private:
  bool started_{false};
  double signal_{0};
  double hessian_{0};
};

class StrataPrior {
 public:
  /**
   * @brief Posterior means of the leaf weights of a complete tree.
   *
   * @param leaves       The 2^depth leaves from left to right; `grad` is after the L1 penalty.
   * @param row_variance Result of RowVariance. It must be positive if the sums have no noise.
   * @param noise_share  Share of the noise variance that the posterior counts.
   * @param stratum      Stratum of each Walsh function.
   */
  [[nodiscard]] std::vector<double> Fit(std::vector<NodeSum> const& leaves, double lambda,
                                        double row_variance, double noise_share,
                                        std::vector<std::size_t> const& stratum);

 private:
  bool started_{false};
  std::array<double, kMaxStrataDepth + 1> variance_{};
};

/**
 * @brief Tilt: the shift of the mean of a tree that is caused by clipping persons with rows in
 *        several leaves.
 *
 * It is nearly the same in all trees, so a Kalman filter combines their noisy measurements.
 */
class TreeTilt {
 public:
  /**
   * @param measured Tilt measured in this tree, as a leaf weight.
   * @param noise2   Variance of its noise.
   * @return The shift of the gradients of this tree, per unit of Hessian.
   */
  double Update(double measured, double noise2);

 private:
  static constexpr double kFirst = 0.1;  // standard deviation of the tilt, as a leaf weight
  static constexpr double kStep = 0.01;  // standard deviation of its change between trees
  double tilt_{0};
  double variance_{kFirst * kFirst};
};

struct LeafShrinkage {
  TreeTilt tilt;
  LeafPrior leaves;
  StrataPrior oblivious, per_node;
};

/**
 * @brief Strata of the Walsh functions of a complete tree: for oblivious trees the number of
 *        selections in an effect, otherwise the deepest selection.
 */
[[nodiscard]] std::vector<std::size_t> MakeStrata(Plan const& plan, bool oblivious);
}  // namespace xgboost::dp
