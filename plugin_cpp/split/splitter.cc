#include "plugin_cpp/split/splitter.h"

#include "plugin_cpp/split/noisy.h"          // for NoisySplits
#include "plugin_cpp/split/random_splits.h"  // for RandomSplits
#include "plugin_cpp/split/select.h"         // for SelectedSplits

namespace xgboost::dp {
std::unique_ptr<Splitter> MakeSplitter(Context const* ctx, Plan const& plan, Offers const& offers,
                                       BinnedPages const& pages, RandomSource* structure,
                                       Release* release) {
  switch (plan.split) {
    case SplitChoice::kExponential:
      return std::make_unique<SelectedSplits>(ctx, plan, offers, pages, structure, release);
    case SplitChoice::kRandom:
      return std::make_unique<RandomSplits>(ctx, offers, pages, structure);
    default:
      return std::make_unique<NoisySplits>(ctx, plan, offers, pages, structure, release);
  }
}
}  // namespace xgboost::dp
