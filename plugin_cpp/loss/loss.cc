#include "plugin_cpp/loss/loss.h"

#include <algorithm>  // for count
#include <utility>    // for pair
#include <vector>     // for vector

#include "plugin_cpp/loss/logistic.h"      // for ReadLogisticLoss, ReadLabelsLoss
#include "plugin_cpp/loss/power.h"         // for ReadPowerLoss
#include "plugin_cpp/loss/program.h"       // for ReadProgramLoss
#include "plugin_cpp/loss/pseudo_huber.h"  // for ReadPseudoHuberLoss
#include "plugin_cpp/loss/quantile.h"      // for ReadQuantileLoss
#include "plugin_cpp/loss/squared_log.h"   // for ReadSquaredLogLoss
#include "plugin_cpp/loss/survival.h"      // for ReadSurvivalLoss
#include "plugin_cpp/loss/targets.h"       // for ReadTargetsLoss
#include "xgboost/logging.h"               // for CHECK

namespace xgboost::dp {
namespace {
using ReadFn = std::shared_ptr<Loss const> (*)(JsonReader const& in, LabelRange range);

struct KnownLoss {
  ReadFn read;
  std::vector<std::string> objectives;  // whose models predict what it fits
};
}  // namespace

std::vector<LabelRange> ReadRanges(JsonReader const& in) {
  constexpr double kLargest = 1e38;
  auto lowers = in.Reals("lower", -kLargest, kLargest);
  auto uppers = in.Reals("upper", -kLargest, kLargest);
  CHECK(lowers.size() >= 2 && lowers.size() == uppers.size())
      << "The plan (`dp_plan`) is not valid: several targets must have a range each."
      << JsonReader::kMend;
  std::vector<LabelRange> ranges;
  for (std::size_t k = 0; k < lowers.size(); ++k) {
    CHECK_LT(lowers[k], uppers[k])
        << "The plan (`dp_plan`) is not valid: the range of a target is empty."
        << JsonReader::kMend;
    ranges.push_back({lowers[k], uppers[k]});
  }
  return ranges;
}

std::shared_ptr<Loss const> ReadLoss(JsonReader const& in, std::string const& objective,
                                     LabelRange range) {
  static std::vector<std::pair<char const*, KnownLoss>> const kLosses{
      {"labels", {ReadLabelsLoss, {"binary:logistic", "binary:logitraw"}}},
      {"logistic", {ReadLogisticLoss, {"reg:logistic"}}},
      {"program", {ReadProgramLoss, {"reg:squarederror"}}},
      {"pseudo_huber", {ReadPseudoHuberLoss, {"reg:pseudohubererror"}}},
      {"squared_log", {ReadSquaredLogLoss, {"reg:squaredlogerror"}}},
      {"quantile", {ReadQuantileLoss, {"reg:absoluteerror", "reg:quantileerror"}}},
      {"targets", {ReadTargetsLoss, {"reg:squarederror"}}},
      {"power", {ReadPowerLoss, {"count:poisson", "reg:gamma", "reg:tweedie"}}},
      {"survival", {ReadSurvivalLoss, {"survival:aft"}}},
  };
  auto known = in.Enum<KnownLoss>("name", kLosses);
  CHECK(std::count(known.objectives.cbegin(), known.objectives.cend(), objective) > 0)
      << "The plan (`dp_plan`) is not valid: the loss is not that of `" << objective << "`."
      << JsonReader::kMend;
  return known.read(in, range);
}
}  // namespace xgboost::dp
