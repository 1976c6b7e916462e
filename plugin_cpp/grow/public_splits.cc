/**
 * Splits of trees that were grown on public rows, as the plan holds them. They read no data.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 */
#include <algorithm>  // for binary_search, max
#include <cstdint>    // for int32_t
#include <vector>     // for vector

#include "plugin_cpp/grow/routed_splits.h"  // for RoutedSplits
#include "plugin_cpp/plan/plan.h"           // for Plan, PublicTree

namespace xgboost::dp {
namespace {
class PublicSplits : public RoutedSplits {
 public:
  explicit PublicSplits(SplitterParts const& parts)
      : RoutedSplits{parts}, plan_{parts.plan}, offers_{parts.offers} {}

  void Begin(common::Span<ClassGradients const> gradients) override {
    RoutedSplits::Begin(gradients);
    at_.assign(1, 0);
  }

  [[nodiscard]] Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t) override {
    tree_ = &plan_.structures.at(tree.tree_idx * plan_.num_class + tree.class_idx);
    Partitions partitions;
    for (auto const& node : nodes) {
      auto const& wanted = (*tree_)[at_.at(node.nidx)];
      if (wanted.IsLeaf()) {
        partitions.Add(nullptr, 0);
        continue;
      }
      auto f = static_cast<bst_feature_t>(wanted.feature);
      auto offer = static_cast<std::size_t>(wanted.offer);
      CHECK(std::binary_search(node.features.cbegin(), node.features.cend(), f) &&
            offer < offers_.Size(f))
          << "A public tree has a split that the plan does not offer: this is a bug in xgb_dp.";
      auto split = offers_.At(f, offer);
      partitions.Add(&split, 1);
    }
    return partitions;
  }

  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool last) override {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (children[i].empty()) {
        continue;
      }
      at_.resize(std::max(at_.size(), static_cast<std::size_t>(children[i][1]) + 1));
      auto parent = at_[nodes[i].nidx];
      at_[children[i][0]] = parent + 1;
      at_[children[i][1]] = (*tree_)[parent].right;
    }
    RoutedSplits::Follow(nodes, partitions, children, last);
  }

 private:
  Plan const& plan_;
  Offers const& offers_;
  PublicTree const* tree_{nullptr};
  std::vector<std::int32_t> at_;  // where each node of the tree is among those of the public one
};

Splitters::Add<PublicSplits> const kAdded{SplitChoice::kPublic};
}  // namespace
}  // namespace xgboost::dp
