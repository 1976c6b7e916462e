#include "plugin_cpp/loss/loss.h"

#include <algorithm>  // for count, find_if
#include <iterator>   // for begin, end

namespace xgboost::dp {
namespace {
struct KnownLoss {
  char const* name;
  LossMaker* make;
  std::vector<std::string> objectives;
};

KnownLoss const kLosses[] = {
    {"labels", MakeMultiLabelLoss, {"binary:logistic", "binary:logitraw"}},
    {"logistic", MakeShareLoss, {"reg:logistic"}},
    {"power", MakePowerLoss, {"count:poisson", "reg:gamma", "reg:tweedie"}},
    {"program", MakeProgramLoss, {"reg:squarederror"}},
    {"pseudo_huber", MakePseudoHuberLoss, {"reg:pseudohubererror"}},
    {"quantile", MakeQuantileLoss, {"reg:absoluteerror", "reg:quantileerror"}},
    {"squared_log", MakeSquaredLogLoss, {"reg:squaredlogerror"}},
    {"survival", MakeSurvivalLoss, {"survival:aft"}},
    {"targets", MakeTargetsLoss, {"reg:squarederror"}},
};
}  // namespace

std::vector<LabelRange> ReadRanges(JsonReader const& in) {
  constexpr double kLargest = 1e38;
  auto lowers = in.Reals("lower", -kLargest, kLargest);
  auto uppers = in.Reals("upper", -kLargest, kLargest);
  Require(lowers.size() >= 2 && lowers.size() == uppers.size(),
          "there must be two or more targets, with one range each.");
  std::vector<LabelRange> ranges;
  for (std::size_t k = 0; k < lowers.size(); ++k) {
    Require(lowers[k] < uppers[k], "the range of a target is empty.");
    ranges.push_back({lowers[k], uppers[k]});
  }
  return ranges;
}

std::shared_ptr<Loss const> ReadLoss(JsonReader const& in, std::string const& objective,
                                     LabelRange range) {
  auto name = in.Text("name");
  auto known = std::find_if(std::begin(kLosses), std::end(kLosses),
                            [&](auto const& loss) { return name == loss.name; });
  Require(known != std::end(kLosses), "`loss.name` has an unknown value.");
  Require(std::count(known->objectives.cbegin(), known->objectives.cend(), objective) > 0,
          "the loss does not belong to the objective `" + objective + "`.");
  return known->make(in, range);
}
}  // namespace xgboost::dp
