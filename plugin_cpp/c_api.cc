/**
 * C entry points of the private build, for xgb_dp. Every function returns 0, or -1 with the message
 * in XGBGetLastError; strings live until the next call on the same thread.
 */
#include "xgboost/c_api.h"  // for XGB_DLL, DMatrixHandle

#include <algorithm>  // for min
#include <cstdint>    // for uint64_t
#include <memory>     // for shared_ptr
#include <string>     // for string

#include "c_api/c_api_error.h"            // for API_BEGIN, API_END
#include "plugin_cpp/checks.h"            // for CheckMatrix, CheckRows, CheckSums, Limits
#include "plugin_cpp/intercept.h"         // for ReleaseIntercept, DescribeIntercept
#include "plugin_cpp/plan/plan.h"         // for ParsePlan
#include "plugin_cpp/plan/sensitivity.h"  // for EventsOfPlan, CandidateEvent, ScoreRange
#include "xgboost/data.h"                 // for DMatrix, SparsePage
#include "xgboost/json.h"                 // for Json
#include "xgboost/logging.h"              // for CHECK

namespace {
std::string& ReturnText() {
  static thread_local std::string text;
  return text;
}
}  // namespace

/** @brief JSON about the build. Its presence tells the private library from a stock one. */
XGB_DLL int XGDPBuildInfo(char const** out) {
  API_BEGIN();
  ReturnText() = R"({"name": "xgb-dp", "plan_version": 1, "tree_methods": ["dp_hist"]})";
  *out = ReturnText().c_str();
  API_END();
}

/** @brief Release the private intercept, see plugin_cpp/intercept.h. */
XGB_DLL int XGDPReleaseIntercept(DMatrixHandle handle, char const* request, char const** out) {
  API_BEGIN();
  CHECK(handle && request && out);
  auto const& p_fmat = *static_cast<std::shared_ptr<xgboost::DMatrix>*>(handle);
  ReturnText() = xgboost::dp::ReleaseIntercept(p_fmat->Ctx(), p_fmat->Info(), request);
  *out = ReturnText().c_str();
  API_END();
}

/** @brief Whether a matrix holds its rows as they are: 1, or 0 for one that keeps bins only. */
XGB_DLL int XGDPIsPlain(DMatrixHandle handle, int* out) {
  API_BEGIN();
  CHECK(handle && out);
  auto const& p_fmat = *static_cast<std::shared_ptr<xgboost::DMatrix>*>(handle);
  *out = p_fmat->PageExists<xgboost::SparsePage>() ? 1 : 0;
  API_END();
}

/** @brief Refuse more rows than can be summed exactly. All workers call it together. */
XGB_DLL int XGDPCheckSums(DMatrixHandle handle, char const* plan_text) {
  API_BEGIN();
  CHECK(handle && plan_text);
  auto const& p_fmat = *static_cast<std::shared_ptr<xgboost::DMatrix>*>(handle);
  xgboost::dp::CheckSums(p_fmat->Ctx(), xgboost::dp::ParsePlan(plan_text), p_fmat->Info().num_row_);
  API_END();
}

/** @brief Refuse a matrix or rows on which training would fail, before anything is released. */
XGB_DLL int XGDPCheckRows(DMatrixHandle handle, char const* plan_text) {
  API_BEGIN();
  CHECK(handle && plan_text);
  auto const& p_fmat = *static_cast<std::shared_ptr<xgboost::DMatrix>*>(handle);
  auto plan = xgboost::dp::ParsePlan(plan_text);
  xgboost::dp::CheckMatrix(p_fmat.get(), plan);
  xgboost::dp::CheckRows(p_fmat->Ctx(), plan, p_fmat.get());
  API_END();
}

/** @brief For tests: the most rows of a training and of a batch. Only lowers the real limits. */
XGB_DLL int XGDPTestRowLimits(std::uint64_t total, std::uint64_t batch) {
  API_BEGIN();
  static auto const kReal = xgboost::dp::Limits();
  xgboost::dp::Limits() = {std::min(total, kReal.total), std::min(batch, kReal.batch)};
  API_END();
}

/** @brief Sensitivities and ranges that a plan leads to, so that xgb_dp can compare its own. */
XGB_DLL int XGDPDescribePlan(char const* plan_text, char const** out) {
  API_BEGIN();
  CHECK(plan_text && out);
  auto plan = xgboost::dp::ParsePlan(plan_text);
  xgboost::Json json{xgboost::Object{}};
  json["leaf_sensitivity2"] = xgboost::Integer{plan.row_bound.RoundSensitivity2(plan.num_class)};
  json["leaves"] = xgboost::dp::ToJson(xgboost::dp::SumsOfRound(plan));
  if (plan.NumPrivateFeatures() > 0) {
    json["candidates"] = xgboost::dp::ToJson({xgboost::dp::CandidateEvent(plan), 1});
  }
  json["events"] = xgboost::dp::EventsOfPlan(plan).SaveEvents();
  json["score_range"] = xgboost::Integer{static_cast<std::int64_t>(xgboost::dp::ScoreRange(plan))};
  xgboost::Json::Dump(json, &ReturnText());
  *out = ReturnText().c_str();
  API_END();
}

/** @brief The ledger event that a request for the intercept leads to. Reads no data. */
XGB_DLL int XGDPDescribeIntercept(char const* request, char const** out) {
  API_BEGIN();
  CHECK(request && out);
  ReturnText() = xgboost::dp::DescribeIntercept(request);
  *out = ReturnText().c_str();
  API_END();
}
