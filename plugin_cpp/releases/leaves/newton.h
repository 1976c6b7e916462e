/**
 * Newton steps from released sums.
 *
 * Proof: docs/proofs/leaves.md
 */
#pragma once

#include <algorithm>  // for clamp, max
#include <cmath>      // for abs, copysign

#include "plugin_cpp/plan/plan.h"                  // for LeafPlan
#include "plugin_cpp/releases/leaves/shrinkage.h"  // for NodeSum

namespace xgboost::dp {
/** @brief Regularised Newton steps and gains of released sums. */
class Newton {
 public:
  explicit Newton(LeafPlan const& leaf) : clip_{leaf.max_delta_step} {
    // With output perturbation no sums were released: nothing is left to regularise.
    if (leaf.noise != LeafNoise::kOutput) {
      lambda_ = leaf.lambda;
      alpha_ = leaf.alpha;
    }
  }
  [[nodiscard]] double Lambda() const { return lambda_; }
  /** @brief The gradient after the L1 penalty. */
  [[nodiscard]] double Soft(double grad) const {
    return std::copysign(std::max(std::abs(grad) - alpha_, 0.0), grad);
  }
  [[nodiscard]] double Clip(double weight) const {
    return clip_ > 0 ? std::clamp(weight, -clip_, clip_) : weight;
  }
  [[nodiscard]] double Weight(NodeSum const& s, double shrink = 0.0) const {
    return this->Clip(-this->Soft(s.grad) / (s.hess + lambda_ + shrink));
  }
  [[nodiscard]] double Gain(NodeSum const& s) const {
    double g = this->Soft(s.grad);
    return g * g / (s.hess + lambda_);
  }

 private:
  double clip_, lambda_{0}, alpha_{0};
};
}  // namespace xgboost::dp
