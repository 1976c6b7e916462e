/**
 * Splits by chance: a feature and then one of its candidates, each with equal probability.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#include <cstdint>  // for int32_t
#include <vector>   // for vector

#include "plugin_cpp/grow/routed_splits.h"  // for RoutedSplits
#include "plugin_cpp/random/samplers.h"     // for UniformBelow

namespace xgboost::dp {
namespace {
class RandomSplits : public RoutedSplits {
 public:
  explicit RandomSplits(SplitterParts const& parts)
      : RoutedSplits{parts}, candidates_{parts.candidates}, structure_{parts.structure} {}

  [[nodiscard]] Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t) override {
    Partitions partitions;
    Split split;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i == 0 || !tree.oblivious) {
        auto f = nodes[i].features[UniformBelow(structure_, nodes[i].features.size())];
        split = candidates_.At(f, UniformBelow(structure_, candidates_.Size(f)));
      }
      partitions.Add(&split, 1);
    }
    return partitions;
  }

 private:
  SplitCandidates const& candidates_;
  RandomSource* structure_;
};

Splitters::Add<RandomSplits> const kAdded{SplitChoice::kRandom};
}  // namespace
}  // namespace xgboost::dp
