/**
 * The private choice of splits: one exponential mechanism for a node, or one for a whole level.
 *
 * Per node: the nodes of a level hold disjoint rows, so one row touches one of the selections of a
 * level, and the level costs one selection. Oblivious: the utility is summed over the nodes of the
 * level; a row is in one of them, so that the range is the same.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t, int64_t
#include <vector>   // for vector

#include "plugin_cpp/split/exact_levels.h"  // for ExactLevels
#include "plugin_cpp/split/partitions.h"    // for PartitionSelector
#include "plugin_cpp/split/splitter.h"      // for Splitter

namespace xgboost::dp {
class SelectedSplits : public Splitter {
 public:
  SelectedSplits(Context const* ctx, Plan const& plan, Offers const& offers,
                 BinnedPages const& pages, RandomSource* structure, Release* release)
      : ctx_{ctx},
        plan_{plan},
        offers_{offers},
        release_{release},
        levels_{ctx, plan, offers, pages, *release},
        partitions_{ctx, plan, offers, structure} {}

  void Begin(common::Span<ClassGradients const> gradients) override;
  [[nodiscard]] Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t n_levels) override;
  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool last) override {
    levels_.Follow(nodes, partitions, children, last);
  }
  [[nodiscard]] std::vector<LeafSums> End(std::vector<bst_node_t> const& leaves,
                                          std::vector<bst_node_t>* positions) override;

 private:
  [[nodiscard]] Partitions ChooseSplits(std::vector<OpenNode> const& nodes, TreeSpec const& tree);
  void ListOffers(FeatureList const& features);
  void AddUtilities(OpenNode const& node);
  /** @brief The same where the trees of all classes share the splits. */
  void AddNorms(OpenNode const& node);

  Context const* ctx_;
  Plan const& plan_;
  Offers const& offers_;
  Release* release_;
  ExactLevels<GlobalSum> levels_;
  PartitionSelector partitions_;
  std::vector<std::size_t> offsets_;  // first offer of each allowed feature
  std::vector<std::int64_t> utilities_;
};
}  // namespace xgboost::dp
