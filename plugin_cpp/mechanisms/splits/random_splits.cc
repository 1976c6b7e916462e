/**
 * Random splits: choose a feature and then one of its candidates, each with equal probabilities.
 *
 * They read no data and cost nothing, so no histogram is built. A single pass sends each row down
 * the finished tree. Leaf sums are integers, so the order of the rows does not change them.
 *
 * Proof: docs/proofs/exponential-mechanism.md
 * Proof: docs/proofs/integer-grid.md
 */
#include <algorithm>  // for max, min
#include <cstddef>    // for ptrdiff_t, size_t
#include <cstdint>    // for int32_t
#include <memory>     // for make_unique, unique_ptr
#include <mutex>      // for mutex, lock_guard
#include <vector>     // for vector

#include "common/threading_utils.h"      // for ParallelFor
#include "plugin_cpp/grow/row_sets.h"    // for Branching
#include "plugin_cpp/grow/splitter.h"    // for Splitter
#include "plugin_cpp/random/samplers.h"  // for UniformBelow

namespace xgboost::dp {
namespace {
class RandomSplits : public Splitter {
 public:
  explicit RandomSplits(SplitterParts const& parts) : parts_{parts} {}

  void Begin(common::Span<ClassGradients const> gradients) override;
  [[nodiscard]] Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t) override;
  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool) override;
  [[nodiscard]] std::vector<LeafSums> End(std::vector<bst_node_t> const& leaves,
                                          std::vector<bst_node_t>* positions) override;

 private:
  struct Node {
    bst_feature_t feature{0};
    std::ptrdiff_t next{-1};  // first entry of the node in next_; -1 for a leaf
  };
  /** @brief Send the rows of this worker down the tree. @return Sums of their pairs by node. */
  [[nodiscard]] std::vector<LocalSum> Route(std::vector<bst_node_t>* positions) const;
  template <typename Codes>
  [[nodiscard]] bst_node_t FindLeaf(Codes const& codes, std::size_t row) const;

  SplitterParts parts_;
  std::vector<PackedPair> const* gpair_{nullptr};
  std::vector<Node> nodes_;
  std::vector<bst_node_t> next_;  // the child of a row, by the code of the feature
};

Partitions RandomSplits::Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                std::int32_t) {
  Partitions partitions;
  Split split;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i == 0 || !tree.oblivious) {
      auto f = nodes[i].features[UniformBelow(parts_.structure, nodes[i].features.size())];
      split = parts_.candidates.At(f, UniformBelow(parts_.structure, parts_.candidates.Size(f)));
    }
    partitions.Add(&split, 1);
  }
  return partitions;
}

void RandomSplits::Begin(common::Span<ClassGradients const> gradients) {
  CHECK_EQ(gradients.size(), 1);
  gpair_ = &gradients[0].pairs;
  nodes_.assign(1, Node{});
  next_.clear();
}

void RandomSplits::Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
                          std::vector<std::vector<bst_node_t>> const& children, bool) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!children[i].empty()) {
      Branching const branching{parts_.pages.Offsets(), nodes[i].nidx, partitions[i], children[i]};
      nodes_.resize(std::max(nodes_.size(), static_cast<std::size_t>(children[i].back()) + 1));
      nodes_[branching.node] = {branching.feature, static_cast<std::ptrdiff_t>(next_.size())};
      for (auto child : branching.child_of) {
        next_.push_back(branching.children[child]);
      }
    }
  }
}

template <typename Codes>
bst_node_t RandomSplits::FindLeaf(Codes const& codes, std::size_t row) const {
  bst_node_t nidx = 0;
  while (nodes_[nidx].next >= 0) {
    auto const& node = nodes_[nidx];
    nidx = next_[node.next + codes(row, node.feature)];
  }
  return nidx;
}

std::vector<LocalSum> RandomSplits::Route(std::vector<bst_node_t>* positions) const {
  constexpr std::size_t kBlock = 16384;
  std::vector<LocalSum> sums(nodes_.size());
  std::mutex lock;
  positions->resize(gpair_->size());
  for (std::size_t p = 0; p < parts_.pages.Size(); ++p) {
    auto page = parts_.pages[p];
    WithCodes(page, parts_.pages.Offsets(), [&](auto const& codes) {
      common::ParallelFor(
          (page.n_rows + kBlock - 1) / kBlock, parts_.ctx->Threads(), [&](auto block) {
            std::vector<LocalSum> partial(nodes_.size());
            auto end = std::min(page.n_rows, (static_cast<std::size_t>(block) + 1) * kBlock);
            for (auto i = static_cast<std::size_t>(block) * kBlock; i < end; ++i) {
              auto row = page.base_row + i;
              auto nidx = this->FindLeaf(codes, i);
              (*positions)[row] = nidx;
              partial[nidx] += (*gpair_)[row].Sum();
            }
            std::lock_guard<std::mutex> guard{lock};
            for (std::size_t k = 0; k < partial.size(); ++k) {
              sums[k] += partial[k];
            }
          });
    });
  }
  return sums;
}

std::vector<LeafSums> RandomSplits::End(std::vector<bst_node_t> const& leaves,
                                        std::vector<bst_node_t>* positions) {
  auto node_sums = this->Route(positions);
  std::vector<LocalSum> sums;
  for (auto nidx : leaves) {
    sums.push_back(node_sums[nidx]);
  }
  return {sums};
}
}  // namespace

std::unique_ptr<Splitter> MakeRandomSplits(SplitterParts const& parts) {
  return std::make_unique<RandomSplits>(parts);
}
}  // namespace xgboost::dp
