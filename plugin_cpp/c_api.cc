/**
 * C API of the private build for xgb_dp. Every function returns 0, or -1 with the message in
 * XGBGetLastError. Strings live until the next call on the same thread.
 */
#include "xgboost/c_api.h"  // for XGB_DLL, DMatrixHandle

#include <cstddef>  // for size_t
#include <cstdint>  // for int64_t, uint32_t, uint64_t
#include <memory>   // for make_shared, shared_ptr
#include <string>   // for string
#include <utility>  // for move

#include "c_api/c_api_error.h"                           // for API_BEGIN, API_END
#include "data/sparse_page_dmatrix.h"                    // for SparsePageDMatrix
#include "plugin_cpp/checks.h"                           // for CheckMatrix, CheckRows, CheckSums
#include "plugin_cpp/mechanisms/candidates/discovery.h"  // for DiscoverNumbers
#include "plugin_cpp/mechanisms/label_sums.h"            // for ReleaseBeforeTrees
#include "plugin_cpp/plan/plan.h"                        // for ParsePlan
#include "plugin_cpp/release/ledger.h"                   // for NewTrainingId, OpenClaim
#include "plugin_cpp/rows/persons.h"                     // for Persons
#include "plugin_cpp/rows/raw_pages.h"                   // for ForEachPage
#include "xgboost/data.h"                                // for DMatrix, SparsePage
#include "xgboost/json.h"                                // for Json, Object
#include "xgboost/learner.h"                             // for Learner
#include "xgboost/logging.h"                             // for CHECK
#include "xgboost/span.h"                                // for Span

namespace xgboost::dp {
namespace {
void Return(std::string text, char const** out) {
  static thread_local std::string kept;
  kept = std::move(text);
  *out = kept.c_str();
}

std::shared_ptr<DMatrix> const& GetMatrix(DMatrixHandle handle) {
  CHECK(handle) << "The DMatrix handle is null.";
  return *static_cast<std::shared_ptr<DMatrix>*>(handle);
}
}  // namespace

/** @brief Describe the build as JSON. Stock libraries do not have this function. */
XGB_DLL int XGDPBuildInfo(char const** out) {
  API_BEGIN();
  Return(R"({"name": "xgb-dp", "plan_version": 1, "tree_methods": ["dp_hist"]})", out);
  API_END();
}

/** @brief Refuse a plan without a privacy proof. Reads no data. */
XGB_DLL int XGDPCheckPlan(char const* plan_text) {
  API_BEGIN();
  CHECK(plan_text);
  static_cast<void>(ParsePlan(plan_text));
  API_END();
}

/**
 * @brief Set the maximum number of OpenMP threads for calls of this thread.
 *
 * A forked process may only use one thread, because it lacks the threads of its parent.
 * @param n_threads The new maximum; 0 leaves it unchanged.
 * @param before    Receives the previous maximum.
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

/** @brief Release sums before the first tree, see plugin_cpp/mechanisms/label_sums.h. */
XGB_DLL int XGDPReleaseBeforeTrees(DMatrixHandle handle, char const* request, char const** out) {
  API_BEGIN();
  CHECK(request && out);
  auto const& p_fmat = GetMatrix(handle);
  Return(ReleaseBeforeTrees(p_fmat->Ctx(), p_fmat, Persons::Of(*p_fmat), request), out);
  API_END();
}

/** @brief Whether a matrix has raw rows (1) or only bins (0). */
XGB_DLL int XGDPIsPlain(DMatrixHandle handle, int* out) {
  API_BEGIN();
  CHECK(out);
  *out = GetMatrix(handle)->PageExists<SparsePage>() ? 1 : 0;
  API_END();
}

/**
 * @brief Whether the rows of a matrix are on disk, where only one thread may read them at a time.
 */
XGB_DLL int XGDPIsPaged(DMatrixHandle handle, int* out) {
  API_BEGIN();
  CHECK(out);
  *out = dynamic_cast<data::SparsePageDMatrix const*>(GetMatrix(handle).get()) ? 1 : 0;
  API_END();
}

/**
 * @brief Set the persons of the rows of a matrix, see plugin_cpp/rows/persons.h.
 *
 * @param codes     The person of each local row, below `n_persons`; null if there are no persons.
 * @param n_persons Number of local persons.
 */
XGB_DLL int XGDPSetPersons(DMatrixHandle handle, std::uint32_t const* codes, std::uint64_t n_rows,
                           std::uint64_t n_persons) {
  API_BEGIN();
  auto const& matrix = GetMatrix(handle);
  Persons::Set(matrix, codes ? std::make_shared<Persons>(
                                   common::Span{codes, static_cast<std::size_t>(n_rows)}, n_persons)
                             : nullptr);
  API_END();
}

/** @brief Refuse more rows than can be summed exactly. All workers call it together. */
XGB_DLL int XGDPCheckSums(DMatrixHandle handle, char const* plan_text) {
  API_BEGIN();
  CHECK(plan_text);
  auto* p_fmat = GetMatrix(handle).get();
  CheckSums(p_fmat->Ctx(), ParsePlan(plan_text), p_fmat->Info().num_row_);
  API_END();
}

/**
 * @brief Refuse a matrix or rows on which training would fail, before anything is released.
 * @param plan_text The plan; null to refuse only rows not valid for prediction, see ForEachPage.
 */
XGB_DLL int XGDPCheckRows(DMatrixHandle handle, char const* plan_text) {
  API_BEGIN();
  auto* p_fmat = GetMatrix(handle).get();
  if (!plan_text) {
    ForEachPage(p_fmat->Ctx(), p_fmat, [](SparsePage const&) {});
    return 0;
  }
  auto plan = ParsePlan(plan_text);
  CheckMatrix(p_fmat, plan, Persons::Of(*p_fmat).get());
  CheckRows(p_fmat->Ctx(), plan, p_fmat);
  API_END();
}

/** @brief Return the JSON of a model file without the trees. */
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

/**
 * @brief Return a random identifier for a training: 32 hexadecimal digits from the operating
 *        system.
 */
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
  auto const* train = GetMatrix(handle).get();
  OpenClaim(ledger, train, Persons::Of(*train));
  API_END();
}

/** @brief Remove a claim that no training has used. */
XGB_DLL int XGDPCloseClaim(DMatrixHandle handle, char const* ledger) {
  API_BEGIN();
  CHECK(ledger);
  auto const* train = GetMatrix(handle).get();
  UseClaim(ledger, train, Persons::Of(*train));
  API_END();
}

/**
 * @brief Release rough quantiles of numeric columns (plugin_cpp/mechanisms/candidates/discovery.h).
 * @param values  The n_columns * n_rows values, one column after the other.
 * @param weights The weight of each row.
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
}  // namespace xgboost::dp
