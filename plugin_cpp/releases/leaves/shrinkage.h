/**
 * Empirical-Bayes shrinkage of leaf weights. Reads released sums only; it is free.
 *
 * Complete trees: the weights of the leaves are the sum of effects of the selections above them,
 * and of their interactions (the Walsh functions of the leaf's path). Effects of one stratum share
 * a normal prior whose variance is estimated over all trees of the same shape, and the weights are
 * the posterior mean given the noise of the sums and what the rows themselves vary by. Other trees:
 * all leaves share one prior.
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
/** @brief Real-valued released sums of a node, and the variance of their noise. */
struct NodeSum {
  double grad{0};
  double hess{0};    // at least its deviation in each leaf
  double noise2{0};  // of grad
  double cover{0};   // the Hessian without that floor
  double cover_noise2{0};

  NodeSum() = default;
  /**
   * @param variance Of the noise on each sum.
   * @param least    Floor of the Hessian, beside the deviation of its noise.
   */
  NodeSum(NoisySum const& sum, double variance, RowBound const& bound, double least);
  /** @brief Of a leaf value that was released itself, where C = 1: the sums of a count of one. */
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

/** @brief Variance of the gradients of a leaf's rows for each unit of its Hessian. */
[[nodiscard]] double RowVariance(Plan const& plan);

/** @brief Largest depth with strata: the fit takes the cube of the number of leaves. */
inline constexpr std::int32_t kMaxStrataDepth = 8;

/** @brief Prior variance of leaf weights, shared by all leaves and estimated over the trees. */
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
   * @param leaves       From left to right, 2^depth of them; grad after the L1 penalty.
   * @param row_variance Of the gradients for each unit of Hessian; above 0, or the sums are noisy.
   * @param stratum      Of the Walsh function of each index.
   */
  [[nodiscard]] std::vector<double> Fit(std::vector<NodeSum> const& leaves, double lambda,
                                        double row_variance,
                                        std::vector<std::size_t> const& stratum);

 private:
  bool started_{false};
  std::array<double, kMaxStrataDepth + 1> variance_{};
};

/**
 * @brief By how much persons that spread over leaves tilt the mean of a tree.
 *
 * Nearly the same in all trees, so that what one of them says is filtered: by its noise, against
 * what is expected of the first tree and of the way from one tree to the next.
 */
class TreeTilt {
 public:
  /**
   * @param measured In this tree, as a leaf weight.
   * @param noise2   Variance of its noise.
   * @return What to shift the gradients of this tree by, for each unit of Hessian.
   */
  double Update(double measured, double noise2);

 private:
  static constexpr double kFirst = 0.1;  // deviation of the tilt, as a leaf weight
  static constexpr double kStep = 0.01;  // and of its change between trees
  double tilt_{0};
  double variance_{kFirst * kFirst};
};

struct LeafShrinkage {
  TreeTilt tilt;
  LeafPrior leaves;
  StrataPrior oblivious, per_node;
};

/**
 * @brief Strata of the Walsh functions of a complete tree. One choice for a level: how many
 *        selections an effect involves. One for each node: the deepest selection that it involves.
 */
[[nodiscard]] std::vector<std::size_t> StrataOf(Plan const& plan, bool oblivious);
}  // namespace xgboost::dp
