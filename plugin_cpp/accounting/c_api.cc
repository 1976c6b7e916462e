/**
 * Copyright 2026, XGBoost-DP Contributors
 *
 * Exported entry of the accountant. It reads no data: only noise levels go in.
 */
#include <algorithm>  // for copy
#include <cstdint>    // for int32_t, int64_t
#include <vector>     // for vector

#include "c_api/c_api_error.h"                    // for API_BEGIN, API_END
#include "plugin_cpp/accounting/bounded_range.h"  // for BoundedRangeCurve
#include "xgboost/c_api.h"                        // for XGB_DLL
#include "xgboost/logging.h"                      // for CHECK

/**
 * \brief Upper bounds of the hockey-stick curve of composed selections, see bounded_range.h.
 *
 * \param eps0      n_events ranges, in release order
 * \param count     n_events repetitions
 * \param step      grid step
 * \param n_below   grid points below 0
 * \param n_above   grid points above 0
 * \param n_threads threads to use at most
 * \param out       n_below + n_above + 1 doubles, at (i - n_below) * step
 *
 * \return 0, or -1 with the message in XGBGetLastError
 */
XGB_DLL int XGDPBoundedRangeCurve(double const* eps0, std::int64_t const* count,
                                  std::int64_t n_events, double step, std::int64_t n_below,
                                  std::int64_t n_above, std::int32_t n_threads, double* out) {
  API_BEGIN();
  CHECK(n_events == 0 || (eps0 != nullptr && count != nullptr));
  CHECK(out != nullptr);
  std::vector<xgboost::dp::BoundedRangeStep> steps;
  for (std::int64_t i = 0; i < n_events; ++i) {
    steps.push_back({eps0[i], count[i]});
  }
  auto const curve = xgboost::dp::BoundedRangeCurve(steps, {step, n_below, n_above}, n_threads);
  std::copy(curve.cbegin(), curve.cend(), out);
  API_END();
}
