#include "plugin_cpp/loss/loss.h"

#include <algorithm>  // for count
#include <utility>    // for move, pair

#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
namespace {
struct KnownLoss {
  LossMaker make;
  std::vector<std::string> objectives;
};

std::vector<std::pair<char const*, KnownLoss>>& Losses() {
  static std::vector<std::pair<char const*, KnownLoss>> all;
  return all;
}
}  // namespace

AddLoss::AddLoss(char const* name, std::vector<std::string> objectives, LossMaker make) {
  for (auto const& [other, loss] : Losses()) {
    CHECK(std::string{other} != name) << "Two files add the loss `" << name << "`.";
  }
  Losses().push_back({name, {make, std::move(objectives)}});
}

std::vector<LabelRange> ReadRanges(JsonReader const& in) {
  constexpr double kLargest = 1e38;
  auto lowers = in.Reals("lower", -kLargest, kLargest);
  auto uppers = in.Reals("upper", -kLargest, kLargest);
  Require(lowers.size() >= 2 && lowers.size() == uppers.size(),
          "several targets must have a range each.");
  std::vector<LabelRange> ranges;
  for (std::size_t k = 0; k < lowers.size(); ++k) {
    Require(lowers[k] < uppers[k], "the range of a target is empty.");
    ranges.push_back({lowers[k], uppers[k]});
  }
  return ranges;
}

std::shared_ptr<Loss const> ReadLoss(JsonReader const& in, std::string const& objective,
                                     LabelRange range) {
  auto known = in.Enum<KnownLoss>("name", Losses());
  Require(std::count(known.objectives.cbegin(), known.objectives.cend(), objective) > 0,
          "the loss is not that of `" + objective + "`.");
  return known.make(in, range);
}
}  // namespace xgboost::dp
