/**
 * @brief Entry points for the tests of rows: how many there may be, and how each is bounded.
 */
#include "xgboost/c_api.h"  // for XGB_DLL

#include <algorithm>  // for min
#include <cstddef>    // for size_t
#include <cstdint>    // for uint64_t

#include "c_api/c_api_error.h"          // for API_BEGIN, API_END
#include "plugin_cpp/checks.h"          // for Limits
#include "plugin_cpp/plan/plan.h"       // for ParsePlan
#include "plugin_cpp/plan/row_bound.h"  // for ClassQuantiser, RowQuantiser
#include "xgboost/logging.h"            // for CHECK

namespace xgboost::dp {
/** @brief The most rows of a training and of a batch. Only lowers the real limits. */
XGB_DLL int XGDPTestRowLimits(std::uint64_t total, std::uint64_t batch) {
  API_BEGIN();
  static auto const kReal = Limits();
  Limits() = {std::min(total, kReal.total), std::min(batch, kReal.batch)};
  API_END();
}

/**
 * @brief The integers of one row of any doubles, in place of its gradients and Hessians,
 *        in the mode `prediction` of a plan. For a single class `g` holds the margin instead of the
 *        gradient, and `h` is only written.
 */
XGB_DLL int XGDPTestRowBound(char const* plan_text, double label, double weight, double* g,
                             double* h) {
  API_BEGIN();
  CHECK(plan_text && g && h);
  auto plan = ParsePlan(plan_text);
  if (plan.num_class > 1) {
    ClassQuantiser quantise{plan.row_bound, static_cast<std::size_t>(plan.num_class)};
    quantise(label, weight, g, h, 1);
  } else {
    RowQuantiser quantise{plan.row_bound};
    double norm;
    quantise(&label, &weight, g, h, &norm, 1);
  }
  API_END();
}
}  // namespace xgboost::dp
