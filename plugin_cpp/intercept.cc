#include "plugin_cpp/intercept.h"

#include <algorithm>  // for clamp
#include <cmath>      // for nearbyint, ldexp, isfinite
#include <cstdint>    // for int64_t, uint64_t
#include <utility>    // for move
#include <vector>     // for vector

#include "plugin_cpp/checks.h"            // for CheckNumRows
#include "plugin_cpp/plan/json_reader.h"  // for JsonReader, ReadSigma2, ReadMasking
#include "plugin_cpp/plan/row_bound.h"    // for kMaxRows
#include "plugin_cpp/release/release.h"   // for Release, GaussianEvent, LocalInt
#include "plugin_cpp/release/source.h"    // for kInterceptStream
#include "xgboost/json.h"                 // for Json
#include "xgboost/logging.h"              // for CHECK

namespace xgboost::dp {
namespace {
struct Request {
  std::string kind;
  std::int64_t num_class{0};
  std::int32_t shift{0};
  std::uint64_t sigma2{0};
  bool n_public{false};
  bool noise_free{false};
  double lower{0};
  double upper{1};
  std::string test_key;
  std::string plan_id;
  Masking masking;
};

Request ParseRequest(std::string const& text) {
  auto json = Json::Load(StringView{text});
  JsonReader in{json, "intercept."};
  Request out;
  out.kind = in.Text("kind");
  CHECK(out.kind == "binary" || out.kind == "regression" || out.kind == "multiclass" ||
        out.kind == "rows");
  out.noise_free = in.Bool("noise_free");
  out.shift = in.Int("shift", 0, 26);
  out.sigma2 = ReadSigma2(in, out.noise_free);
  out.n_public = in.Has("n_public");
  CHECK(out.kind != "rows" || !out.n_public);
  out.test_key = in.Has("test_key") ? in.Text("test_key") : "";
  CHECK(!(in.Bool("private") && (out.noise_free || !out.test_key.empty())))
      << "The request for an intercept says `private`, and asks for no noise or for noise from a "
         "fixed key: this is a bug in xgb_dp.";
  out.plan_id = in.Text("plan_id");
  out.masking = ReadMasking(JsonReader{in.At("masking"), "masking."});
  if (out.kind == "multiclass") {
    out.num_class = in.Int("num_class", 2, 1 << 20);
  } else if (out.kind == "regression") {
    out.lower = in.Real("target_lower");
    out.upper = in.Real("target_upper");
    CHECK_LT(out.lower, out.upper);
  }
  return out;
}

/** @brief One row's label on [-1, 1], as a grid integer of at most 2^shift. */
std::int64_t LabelOnGrid(double label, Request const& request) {
  double half = (request.upper - request.lower) / 2;
  double centred = (label - request.lower - half) / half;
  // A label that is not a number is refused elsewhere; here it must only not break the bound.
  centred = std::isfinite(centred) ? std::clamp(centred, -1.0, 1.0) : 0.0;
  return static_cast<std::int64_t>(std::nearbyint(std::ldexp(centred, request.shift)));
}

std::vector<LocalInt> LocalSums(MetaInfo const& info, Request const& request) {
  auto labels = info.labels.HostView();
  auto n_rows = labels.Shape(0);
  auto unit = std::int64_t{1} << request.shift;
  if (request.kind == "multiclass") {
    std::vector<LocalInt> sums(request.num_class);
    for (std::size_t i = 0; i < n_rows; ++i) {
      auto label = labels(i, 0);
      if (label >= 0 && label < static_cast<float>(request.num_class)) {
        sums[static_cast<std::size_t>(label)].value += unit;
      }
    }
    return sums;
  }
  if (request.kind == "rows") {
    return {LocalInt{static_cast<std::int64_t>(n_rows) * unit}};
  }
  std::vector<LocalInt> sums(request.n_public ? 1 : 2);
  for (std::size_t i = 0; i < n_rows; ++i) {
    sums[0].value += LabelOnGrid(labels(i, 0), request);
    if (!request.n_public) {
      sums[1].value += unit;
    }
  }
  return sums;
}

GaussianEvent InterceptEvent(Request const& request) {
  // A row adds one unit to one class count, or at most one unit to the sum and one to the count.
  auto unit2 = std::uint64_t{1} << (2 * request.shift);
  if (request.kind == "rows") {
    return {"rows", unit2, request.sigma2, 1U};
  }
  bool pair = request.kind != "multiclass" && !request.n_public;
  return {"intercept", pair ? 2 * unit2 : unit2, request.sigma2, pair ? 2U : 1U};
}
}  // namespace

std::string DescribeIntercept(std::string const& text) {
  std::string out;
  Json::Dump(ToJson({DrawEvent{InterceptEvent(ParseRequest(text))}, 1}, false), &out);
  return out;
}

std::string ReleaseIntercept(Context const* ctx, MetaInfo const& info, std::string const& text) {
  auto request = ParseRequest(text);
  Release release{ctx,  request.noise_free, request.test_key, request.masking, kInterceptStream,
                  false};
  release.OpenPads(request.plan_id, false);  // the training goes on with them
  CheckNumRows(ctx, request.masking, info.num_row_, kMaxRows);
  Json out{Object{}};
  Array released;
  for (auto sum : release.AddNoise(InterceptEvent(request), LocalSums(info, request)).values) {
    released.GetArray().emplace_back(Integer{sum.Value()});
  }
  out["sums"] = Json{std::move(released)};
  auto recorded = release.SaveEvents();
  if (!get<Array const>(recorded).empty()) {
    out["event"] = get<Array const>(recorded).front();
  }
  std::string answer;
  Json::Dump(out, &answer);
  return answer;
}
}  // namespace xgboost::dp
