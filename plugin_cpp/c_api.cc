/**
 * C entry points of the private build, for xgb_dp. Every function returns 0, or -1 with the message
 * in XGBGetLastError; strings live until the next call on the same thread.
 */
#include "xgboost/c_api.h"  // for XGB_DLL, DMatrixHandle

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t, uint32_t, uint64_t
#include <memory>   // for make_shared, shared_ptr
#include <string>   // for string
#include <utility>  // for move

#include "c_api/c_api_error.h"                         // for API_BEGIN, API_END
#include "data/sparse_page_dmatrix.h"                  // for SparsePageDMatrix
#include "plugin_cpp/accounting/bounded_range.h"       // for BackwardStep
#include "plugin_cpp/checks.h"                         // for CheckMatrix, CheckRows, CheckSums
#include "plugin_cpp/plan/plan.h"                      // for ParsePlan
#include "plugin_cpp/release/ledger.h"                 // for NewTrainingId, OpenClaim
#include "plugin_cpp/releases/candidates/discovery.h"  // for DiscoverNumbers
#include "plugin_cpp/releases/label_sums.h"            // for ReleaseBeforeTrees
#include "plugin_cpp/rows/persons.h"                   // for Persons
#include "plugin_cpp/rows/raw_pages.h"                 // for ForEachPage
#include "xgboost/data.h"                              // for DMatrix, SparsePage
#include "xgboost/json.h"                              // for Json, Object
#include "xgboost/learner.h"                           // for Learner
#include "xgboost/logging.h"                           // for CHECK
#include "xgboost/span.h"                              // for Span

namespace xgboost::dp {
namespace {
void Return(std::string text, char const** out) {
  static thread_local std::string kept;
  kept = std::move(text);
  *out = kept.c_str();
}

std::shared_ptr<DMatrix> const& MatrixOf(DMatrixHandle handle) {
  CHECK(handle) << "There is no DMatrix: give one that was made.";
  return *static_cast<std::shared_ptr<DMatrix>*>(handle);
}
}  // namespace

/** @brief JSON about the build. Its presence tells the private library from a stock one. */
XGB_DLL int XGDPBuildInfo(char const** out) {
  API_BEGIN();
  Return(R"({"name": "xgb-dp", "plan_version": 1, "tree_methods": ["dp_hist"]})", out);
  API_END();
}

/** @brief Refuse a plan that no proof covers. Reads no data. */
XGB_DLL int XGDPCheckPlan(char const* plan_text) {
  API_BEGIN();
  CHECK(plan_text);
  static_cast<void>(ParsePlan(plan_text));
  API_END();
}

/**
 * @brief Set how many threads the calls of this thread use at most, whatever matrices were made
 * with.
 *
 * A forked process may only use one: the threads of its parent are not there.
 *
 * @param n_threads 0 to leave it as it is.
 * @param before    How many they were.
 */
XGB_DLL int XGDPSetThreads(int n_threads, int* before) {
  API_BEGIN();
  CHECK(before && n_threads >= 0);
  *before = omp_get_max_threads();
  if (n_threads > 0) {
    omp_set_num_threads(n_threads);
  }
  API_END();
}

/** @brief Release sums before the first tree, see plugin_cpp/releases/label_sums.h. */
XGB_DLL int XGDPReleaseBeforeTrees(DMatrixHandle handle, char const* request, char const** out) {
  API_BEGIN();
  CHECK(request && out);
  auto const& p_fmat = MatrixOf(handle);
  Return(ReleaseBeforeTrees(p_fmat->Ctx(), p_fmat, Persons::Of(*p_fmat), request), out);
  API_END();
}

/** @brief Whether a matrix holds its rows as they are: 1, or 0 for one that keeps bins only. */
XGB_DLL int XGDPIsPlain(DMatrixHandle handle, int* out) {
  API_BEGIN();
  CHECK(out);
  *out = MatrixOf(handle)->PageExists<SparsePage>() ? 1 : 0;
  API_END();
}

/** @brief Whether a matrix keeps its rows on disk, where one thread reads them at a time. */
XGB_DLL int XGDPIsPaged(DMatrixHandle handle, int* out) {
  API_BEGIN();
  CHECK(out);
  *out = dynamic_cast<data::SparsePageDMatrix const*>(MatrixOf(handle).get()) ? 1 : 0;
  API_END();
}

/**
 * @brief Say who the rows of a matrix belong to, see plugin_cpp/rows/persons.h.
 *
 * @param codes     The person of each row of this worker, below `n_persons`; null for rows of
 * nobody.
 * @param n_persons Of this worker.
 */
XGB_DLL int XGDPSetPersons(DMatrixHandle handle, std::uint32_t const* codes, std::uint64_t n_rows,
                           std::uint64_t n_persons) {
  API_BEGIN();
  auto const& matrix = MatrixOf(handle);
  Persons::Set(matrix, codes ? std::make_shared<Persons>(
                                   common::Span{codes, static_cast<std::size_t>(n_rows)}, n_persons)
                             : nullptr);
  API_END();
}

/** @brief Refuse more rows than can be summed exactly. All workers call it together. */
XGB_DLL int XGDPCheckSums(DMatrixHandle handle, char const* plan_text) {
  API_BEGIN();
  CHECK(plan_text);
  auto* p_fmat = MatrixOf(handle).get();
  CheckSums(p_fmat->Ctx(), ParsePlan(plan_text), p_fmat->Info().num_row_);
  API_END();
}

/**
 * @brief Refuse a matrix or rows on which training would fail, before anything is released.
 *
 * @param plan_text Null to look only for rows that are none to predict either: see ForEachPage.
 */
XGB_DLL int XGDPCheckRows(DMatrixHandle handle, char const* plan_text) {
  API_BEGIN();
  auto* p_fmat = MatrixOf(handle).get();
  if (!plan_text) {
    ForEachPage(p_fmat->Ctx(), p_fmat, [](SparsePage const&) {});
    return 0;
  }
  auto plan = ParsePlan(plan_text);
  CheckMatrix(p_fmat, plan, Persons::Of(*p_fmat).get());
  CheckRows(p_fmat->Ctx(), plan, p_fmat);
  API_END();
}

/** @brief A model as its file holds it, without its trees, as JSON. */
XGB_DLL int XGDPModelContent(BoosterHandle handle, char const** out) {
  API_BEGIN();
  CHECK(handle && out);
  auto* learner = static_cast<Learner*>(handle);
  learner->Configure();
  Json model{Object{}};
  learner->SaveModel(&model);
  auto& trees = get<Object>(model["learner"]["gradient_booster"]["model"]);
  for (auto name : {"trees", "tree_info", "iteration_indptr"}) {
    trees.erase(name);
  }
  std::string text;
  Json::Dump(model, &text);
  Return(std::move(text), out);
  API_END();
}

/** @brief A random identifier for a training: 32 hexadecimal digits from the operating system. */
XGB_DLL int XGDPTrainingId(char const** out) {
  API_BEGIN();
  CHECK(out);
  Return(NewTrainingId(), out);
  API_END();
}

/** @brief Allow one training on this matrix to draw what a ledger claims, see OpenClaim. */
XGB_DLL int XGDPOpenClaim(DMatrixHandle handle, char const* ledger) {
  API_BEGIN();
  CHECK(ledger);
  auto const* train = MatrixOf(handle).get();
  OpenClaim(ledger, train, Persons::Of(*train));
  API_END();
}

/** @brief Forget a claim that no training has taken. */
XGB_DLL int XGDPCloseClaim(DMatrixHandle handle, char const* ledger) {
  API_BEGIN();
  CHECK(ledger);
  auto const* train = MatrixOf(handle).get();
  UseClaim(ledger, train, Persons::Of(*train));
  API_END();
}

/**
 * @brief Release rough quantiles of columns of numbers, see
 * plugin_cpp/releases/candidates/discovery.h.
 *
 * @param values  n_columns * n_rows floats, one column after the other
 * @param weights n_rows integers
 */
XGB_DLL int XGDPDiscoverNumbers(float const* values, std::int64_t const* weights,
                                std::uint64_t n_rows, std::uint64_t n_columns, char const* request,
                                char const** out) {
  API_BEGIN();
  CHECK(request && out && (n_rows == 0 || (values && weights)));
  auto n = static_cast<std::size_t>(n_rows), m = static_cast<std::size_t>(n_columns);
  Context ctx;
  Return(DiscoverNumbers(&ctx, {values, n * m}, {weights, n}, m, request), out);
  API_END();
}

/**
 * @brief One step of the recursion over composed selections, see bounded_range.h.
 *
 * @param curve n + 2 m doubles: the curve with m more points on either side
 * @param n     points
 * @param m     grid steps of the range
 * @param laws  q, p, dq and kappa, of m + 1 doubles each
 * @param out   n doubles
 */
XGB_DLL int XGDPBoundedRangeStep(double const* curve, std::int64_t n, std::int64_t m,
                                 double const* laws, double* out) {
  API_BEGIN();
  CHECK(curve && laws && out && n > 0 && m > 0);
  auto const row = m + 1;
  BackwardStep(curve + m, n, {m, laws, laws + row, laws + 2 * row, laws + 3 * row}, out);
  API_END();
}
}  // namespace xgboost::dp
