#include "plugin_cpp/mechanisms/leaves/shrinkage.h"

#include <algorithm>  // for max, min, max_element
#include <cmath>      // for sqrt, pow

#include "plugin_cpp/simd.h"  // for XGB_DP_SIMD

namespace xgboost::dp {
namespace {
// Weight of earlier trees in shared estimates (after Efron and Morris).
constexpr double kPast = 0.8;
constexpr double kMinVariance = 1e-9;
// Share of the variance of rows in priors: nearly none, but finite without noise.
constexpr double kMinRowVariance = 1e-6;

/**
 * @brief Replace leaf values by their Walsh coefficients, or the reverse up to a factor. Function k
 *        changes sign at every right turn on a level whose bit is set in k.
 */
void WalshTransform(std::vector<double>* values) {
  auto& v = *values;
  for (std::size_t half = 1; half < v.size(); half *= 2) {
    for (std::size_t begin = 0; begin < v.size(); begin += 2 * half) {
      for (auto i = begin; i < begin + half; ++i) {
        auto left = v[i], right = v[i + half];
        v[i] = left + right;
        v[i + half] = left - right;
      }
    }
  }
}

constexpr std::size_t kRowsAtOnce = 4;

/**
 * @brief Subtract up to kRowsAtOnce rows times their factors, in order. Handling several rows at
 *        once saves reads and writes of the result.
 */
XGB_DP_SIMD void SubtractRows(double const* rows, double const* factors, std::size_t n_rows,
                              std::size_t stride, std::size_t begin, std::size_t end, double* out) {
  if (n_rows < kRowsAtOnce) {
    for (std::size_t k = 0; k < n_rows; ++k) {
      for (auto i = begin; i < end; ++i) {
        out[i] -= rows[k * stride + i] * factors[k * stride];
      }
    }
    return;
  }
  auto const *a = rows, *b = a + stride, *c = b + stride, *d = c + stride;
  auto f_a = factors[0], f_b = factors[stride], f_c = factors[2 * stride],
       f_d = factors[3 * stride];
  for (auto i = begin; i < end; ++i) {
    out[i] = out[i] - a[i] * f_a - b[i] * f_b - c[i] * f_c - d[i] * f_d;
  }
}

XGB_DP_SIMD void Divide(double by, std::size_t begin, std::size_t end, double* out) {
  for (auto i = begin; i < end; ++i) {
    out[i] /= by;
  }
}

/** @brief Update means and variances with one row of the inverse matrix. */
XGB_DP_SIMD void AddRow(double const* row, double factor, std::size_t n, double* mean,
                        double* variance) {
  for (std::size_t c = 0; c < n; ++c) {
    mean[c] += row[c] * factor;
    variance[c] += row[c] * row[c];
  }
}

/** @brief Normal equations of the effects, solved for many prior variances. */
class EffectModel {
 public:
  EffectModel(std::vector<NodeSum> const& leaves, double lambda, double row_variance,
              double noise_share)
      : n_{leaves.size()} {
    // A leaf says -grad = (hess + lambda) weight + noise.
    for (auto const& leaf : leaves) {
      double d = leaf.hess + lambda;
      double variance = noise_share * leaf.noise2 + row_variance * d;
      right_.push_back(-d * leaf.grad / variance);
      walsh_.push_back(d * d / variance);
    }
    // The product of Walsh functions j and k is function j ^ k: a transform fills the matrix.
    WalshTransform(&right_);
    WalshTransform(&walsh_);
  }

  void Solve(std::vector<double> const& prior_variance, std::vector<double>* mean,
             std::vector<double>* variance) {
    // Cholesky factor of the precision matrix, column by column for contiguous inner loops.
    factor_.resize(n_ * n_);
    for (std::size_t j = 0; j < n_; ++j) {
      auto* column = factor_.data() + j * n_;
      for (std::size_t i = j; i < n_; ++i) {
        column[i] = walsh_[i ^ j];
      }
      column[j] += 1.0 / prior_variance[j];
      for (std::size_t k = 0; k < j; k += kRowsAtOnce) {
        auto const* before = factor_.data() + k * n_;
        SubtractRows(before, before + j, std::min(kRowsAtOnce, j - k), n_, j, n_, column);
      }
      column[j] = std::sqrt(std::max(column[j], 1e-300));
      Divide(column[j], j + 1, n_, column);
    }
    // Its inverse, row by row.
    inverse_.assign(n_ * n_, 0.0);
    for (std::size_t i = 0; i < n_; ++i) {
      auto* row = inverse_.data() + i * n_;
      row[i] = 1.0;
      for (std::size_t k = 0; k < i; k += kRowsAtOnce) {
        auto n_rows = std::min(kRowsAtOnce, i - k);
        SubtractRows(inverse_.data() + k * n_, factor_.data() + k * n_ + i, n_rows, n_, 0,
                     k + n_rows, row);
      }
      Divide(factor_[i * n_ + i], 0, i + 1, row);
    }
    // Column by column, for independent additions.
    std::vector<double> half(n_, 0.0);
    for (std::size_t c = 0; c < n_; ++c) {
      for (auto i = c; i < n_; ++i) {
        half[i] += inverse_[i * n_ + c] * right_[c];
      }
    }
    mean->assign(n_, 0.0);
    variance->assign(n_, 0.0);
    for (std::size_t i = 0; i < n_; ++i) {
      AddRow(inverse_.data() + i * n_, half[i], i + 1, mean->data(), variance->data());
    }
  }

 private:
  std::size_t n_;
  std::vector<double> right_, walsh_, factor_, inverse_;
};
}  // namespace

NodeSum::NodeSum(NoisySum const& sum, double variance, RowBound const& bound, double least) {
  double deviation = std::sqrt(variance * static_cast<double>(sum.cells));
  double grad_step = bound.GradientStep(), hess_step = bound.HessianStep();
  grad = static_cast<double>(sum.grad.Value()) * grad_step;
  cover = static_cast<double>(sum.hess.Value()) * hess_step;
  hess = std::max({cover, deviation * hess_step, least, 1e-6});
  noise2 = deviation * grad_step * (deviation * grad_step);
  cover_noise2 = deviation * hess_step * (deviation * hess_step);
}

double RowVariance(Plan const& plan) {
  if (plan.loss) {
    return plan.loss->RowVariance();
  }
  if (plan.IsSquaredLoss()) {
    return 0.0;  // the variance of the residuals is unknown
  }
  // A label has the variance p (1 - p), which is the Hessian, or half the Hessian for several
  // classes. The row bound leaves about half of that.
  constexpr double kLeft = 0.5, kLargest = 0.25;
  if (plan.row_bound.unit_hessian) {
    return std::min(kLeft * kLargest,
                    plan.row_bound.gradient_bound * plan.row_bound.gradient_bound);
  }
  return plan.IsMulticlass() ? 0.5 * kLeft : kLeft;
}

double TreeTilt::Update(double measured, double noise2) {
  double gain = variance_ / (variance_ + noise2);
  tilt_ += gain * (measured - tilt_);
  variance_ = variance_ * (1.0 - gain) + kStep * kStep;
  return tilt_;
}

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
  return std::min(std::max(2.0 * std::max(signal_, 0.0) / hessian_, kMinVariance), prior_max);
}

std::vector<std::size_t> MakeStrata(Plan const& plan, bool oblivious) {
  auto n = std::size_t{1} << plan.depth;
  std::vector<std::size_t> stratum(n, 0);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t involved = 0, deepest = 0;
    for (std::int32_t depth = 0; depth < plan.depth; depth += plan.split_levels) {
      // The turns of this selection; the root has the highest bit.
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
                                     double row_variance, double noise_share,
                                     std::vector<std::size_t> const& stratum) {
  constexpr std::int32_t kIterations = 5;
  auto n = leaves.size();
  auto n_strata = 1 + *std::max_element(stratum.cbegin(), stratum.cend());
  if (!started_) {
    for (std::size_t o = 0; o < n_strata; ++o) {
      variance_[o] = 0.1 * std::pow(0.25, static_cast<double>(o));
    }
  }
  // Priors without the variance of rows: otherwise they would end the boosting of a strong signal
  // too soon.
  EffectModel shown{leaves, lambda, kMinRowVariance * row_variance, 1.0};
  std::vector<double> mean, variance, prior(n);
  auto solve = [&](EffectModel* model, auto const& stratum_variance) {
    for (std::size_t k = 0; k < n; ++k) {
      prior[k] = std::max(stratum_variance[stratum[k]], kMinVariance);
    }
    model->Solve(prior, &mean, &variance);
  };
  // Expectation maximisation for the variances of this tree, mixed with earlier estimates.
  auto current = variance_;
  for (std::int32_t i = 0; i < kIterations; ++i) {
    solve(&shown, current);
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
  EffectModel model{leaves, lambda, row_variance, noise_share};
  solve(&model, current);
  WalshTransform(&mean);
  return mean;
}
}  // namespace xgboost::dp
