#include "plugin_cpp/leaf/shrinkage.h"

#include <algorithm>  // for max, min, max_element
#include <cmath>      // for sqrt, pow
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t
#include <vector>     // for vector

namespace xgboost::dp {
namespace {
// Weight on the past (shared estimates over trees, after Efron and Morris).
constexpr double kPast = 0.8;
constexpr double kLeastVariance = 1e-9;

/** @brief The Walsh function of index k at leaf l: -1 for every right turn that k counts. */
bool IsNegative(std::size_t l, std::size_t k) {
  bool odd = false;
  for (auto both = l & k; both != 0; both &= both - 1) {
    odd = !odd;
  }
  return odd;
}

/** @brief Normal equations of the effects, solved for many prior variances. */
class EffectModel {
 public:
  EffectModel(std::vector<NodeSum> const& leaves, double lambda) : n_{leaves.size()} {
    // A leaf says -grad = (hess + lambda) weight + noise.
    std::vector<double> precision(n_);
    right_.assign(n_, 0.0);
    for (std::size_t l = 0; l < n_; ++l) {
      double d = leaves[l].hess + lambda;
      precision[l] = d * d / leaves[l].noise2;
      double b = -d * leaves[l].grad / leaves[l].noise2;
      for (std::size_t k = 0; k < n_; ++k) {
        right_[k] += IsNegative(l, k) ? -b : b;
      }
    }
    // The product of two Walsh functions is the one of their difference.
    walsh_.assign(n_, 0.0);
    for (std::size_t l = 0; l < n_; ++l) {
      for (std::size_t k = 0; k < n_; ++k) {
        walsh_[k] += IsNegative(l, k) ? -precision[l] : precision[l];
      }
    }
  }

  /** @brief Posterior means and variances of the effects. */
  void Solve(std::vector<double> const& prior_variance, std::vector<double>* mean,
             std::vector<double>* variance) {
    // Cholesky factor of the precision matrix, column by column: all inner loops run along memory.
    factor_.resize(n_ * n_);
    for (std::size_t j = 0; j < n_; ++j) {
      for (std::size_t i = j; i < n_; ++i) {
        factor_[j * n_ + i] = walsh_[i ^ j];
      }
      factor_[j * n_ + j] += 1.0 / prior_variance[j];
    }
    for (std::size_t k = 0; k < n_; ++k) {
      auto* column = factor_.data() + k * n_;
      column[k] = std::sqrt(std::max(column[k], 1e-300));
      for (std::size_t i = k + 1; i < n_; ++i) {
        column[i] /= column[k];
      }
      for (std::size_t j = k + 1; j < n_; ++j) {
        auto* rest = factor_.data() + j * n_;
        auto factor = column[j];
        for (std::size_t i = j; i < n_; ++i) {
          rest[i] -= column[i] * factor;
        }
      }
    }
    // Its inverse, row by row.
    inverse_.assign(n_ * n_, 0.0);
    std::vector<double> half(n_, 0.0);
    mean->assign(n_, 0.0);
    variance->assign(n_, 0.0);
    for (std::size_t i = 0; i < n_; ++i) {
      auto* row = inverse_.data() + i * n_;
      row[i] = 1.0;
      for (std::size_t k = 0; k < i; ++k) {
        auto const* above = inverse_.data() + k * n_;
        auto factor = factor_[k * n_ + i];
        for (std::size_t c = 0; c <= k; ++c) {
          row[c] -= factor * above[c];
        }
      }
      auto pivot = factor_[i * n_ + i];
      for (std::size_t c = 0; c <= i; ++c) {
        row[c] /= pivot;
        half[i] += row[c] * right_[c];
      }
      for (std::size_t c = 0; c <= i; ++c) {
        (*mean)[c] += row[c] * half[i];
        (*variance)[c] += row[c] * row[c];
      }
    }
  }

 private:
  std::size_t n_;
  std::vector<double> right_, walsh_, factor_, inverse_;
};
}  // namespace

double LeafPrior::Update(std::vector<NodeSum> const& leaves, double prior_max) {
  double signal = 0, hessian = 0;
  for (auto const& s : leaves) {
    signal += (s.grad * s.grad - s.noise2) / s.hess;
    hessian += s.hess;
  }
  if (started_) {
    signal_ = kPast * signal_ + (1.0 - kPast) * signal;
    hessian_ = kPast * hessian_ + (1.0 - kPast) * hessian;
  } else {
    signal_ = std::max(signal, 0.0);
    hessian_ = hessian;
    started_ = true;
  }
  return std::min(std::max(2.0 * std::max(signal_, 0.0) / hessian_, kLeastVariance), prior_max);
}

std::vector<std::size_t> StrataOf(Plan const& plan, bool oblivious) {
  auto n = std::size_t{1} << plan.depth;
  std::vector<std::size_t> stratum(n, 0);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t involved = 0, deepest = 0;
    for (std::int32_t depth = 0; depth < plan.depth; depth += plan.split_levels) {
      // The turns of this selection; the root's is the highest bit.
      auto last = std::min(depth + plan.split_levels, plan.depth);
      auto mask = (n >> depth) - (n >> last);
      if ((k & mask) != 0) {
        ++involved;
        deepest = depth / plan.split_levels + 1;
      }
    }
    stratum[k] = oblivious ? involved : deepest;
  }
  return stratum;
}

std::vector<double> StrataPrior::Fit(std::vector<NodeSum> const& leaves, double lambda,
                                     std::vector<std::size_t> const& stratum) {
  constexpr std::int32_t kIterations = 5;
  auto n = leaves.size();
  auto n_strata = 1 + *std::max_element(stratum.cbegin(), stratum.cend());
  if (!started_) {
    for (std::size_t o = 0; o < n_strata; ++o) {
      variance_[o] = 0.1 * std::pow(0.25, static_cast<double>(o));
    }
  }
  EffectModel model{leaves, lambda};
  std::vector<double> mean, variance, prior(n);
  auto solve = [&](auto const& of_stratum) {
    for (std::size_t k = 0; k < n; ++k) {
      prior[k] = std::max(of_stratum[stratum[k]], kLeastVariance);
    }
    model.Solve(prior, &mean, &variance);
  };
  // Expectation maximisation for the variances of this tree, mixed with those of earlier ones.
  auto current = variance_;
  for (std::int32_t i = 0; i < kIterations; ++i) {
    solve(current);
    std::vector<double> sum(n_strata, 0.0), count(n_strata, 0.0);
    for (std::size_t k = 0; k < n; ++k) {
      sum[stratum[k]] += mean[k] * mean[k] + variance[k];
      count[stratum[k]] += 1.0;
    }
    for (std::size_t o = 0; o < n_strata; ++o) {
      double now = sum[o] / count[o];
      current[o] = !started_ ? now : kPast * variance_[o] + (1.0 - kPast) * now;
    }
  }
  variance_ = current;
  started_ = true;
  solve(current);
  std::vector<double> weights(n, 0.0);
  for (std::size_t l = 0; l < n; ++l) {
    for (std::size_t k = 0; k < n; ++k) {
      weights[l] += IsNegative(l, k) ? -mean[k] : mean[k];
    }
  }
  return weights;
}
}  // namespace xgboost::dp
