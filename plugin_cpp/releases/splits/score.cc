#include "plugin_cpp/releases/splits/score.h"

namespace xgboost::dp {
namespace {
// One unit of utility is C / B, so that all scores of C = 1 have comparable scales.
double Unit(Plan const& plan) { return static_cast<double>(plan.row_bound.Unit()); }
}  // namespace

NewtonScore::NewtonScore(Plan const& plan)
    : to_grad_{1.0 / Unit(plan)},
      to_hess_{1.0 / (std::sqrt(plan.row_bound.hessian_weight) * Unit(plan))},
      lambda_{plan.leaf.lambda / plan.row_bound.gradient_bound},
      tau_{plan.score_clip},
      unit_{Unit(plan)} {}

GainScore::GainScore(Plan const& plan)
    : to_grad_{1.0 / Unit(plan)},
      to_count_{1.0 / static_cast<double>(RowQuantiser{plan.row_bound}(0.0, 1.0).second)},
      lambda_{plan.leaf.lambda},
      unit_{Unit(plan)} {}

double UtilityOfOneNat(Plan const& plan) {
  if (plan.eps_num == 0) {
    return 0.0;
  }
  return static_cast<double>(plan.score_range) * 1099511627776.0 /  // 2^kEpsBits
         static_cast<double>(plan.eps_num);
}
}  // namespace xgboost::dp
