/**
 * Interface that chooses the splits of a tree, level by level: by private selections on exact sums,
 * by noisy sums, or at random. It returns released splits, and leaf sums in a type that states
 * whether they still need noise.
 *
 * Proof: docs/proofs/distributed.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t
#include <memory>   // for unique_ptr
#include <variant>  // for variant
#include <vector>   // for vector

#include "plugin_cpp/grow/bins.h"              // for BinnedPages
#include "plugin_cpp/grow/partition.h"         // for Partitions
#include "plugin_cpp/grow/split_candidates.h"  // for SplitCandidates, OpenNode
#include "plugin_cpp/plan/plan.h"              // for Plan
#include "plugin_cpp/release/release.h"        // for Release
#include "plugin_cpp/rows/gradient.h"          // for ClassGradients
#include "xgboost/context.h"                   // for Context

namespace xgboost::dp {
class SplitHistory;

/** @brief Sums of the leaves of a tree: exact sums, or the noisy sums of the splits. */
using LeafSums = std::variant<std::vector<LocalSum>, std::vector<GlobalSum>, Released<NoisySum>>;

struct TreeSpec {
  FeatureList features;   // allowed for splits
  bool oblivious{false};  // whether a level has one split
  std::size_t class_idx{0};
  std::size_t tree_idx{0};      // number of earlier trees of the class
  SplitHistory const* history;  // of all classes
};

class Splitter {
 public:
  virtual ~Splitter() = default;

  /**
   * @brief Begin a tree, with all rows in its root.
   *
   * @param gradients Gradients of one class, or of all classes if they share the splits. They must
   *                  stay valid until End.
   */
  virtual void Begin(common::Span<ClassGradients const> gradients) = 0;
  /** @brief The splits of `n_levels` levels below every node; empty for "no split". */
  [[nodiscard]] virtual Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                          std::int32_t n_levels) = 0;
  /**
   * @brief Move the rows to the children of the chosen splits.
   *
   * @param children Children of each node, from left to right.
   * @param last     Whether all children are leaves.
   */
  virtual void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
                      std::vector<std::vector<bst_node_t>> const& children, bool last) = 0;
  /**
   * @brief End the tree.
   *
   * @param positions The leaf of every local row.
   *
   * @return The sums of the leaves, in order, for each class.
   */
  [[nodiscard]] virtual std::vector<LeafSums> End(std::vector<bst_node_t> const& leaves,
                                                  std::vector<bst_node_t>* positions) = 0;
};

/** @brief Inputs of a splitter, which outlive it. */
struct SplitterParts {
  Context const* ctx;
  Plan const& plan;
  SplitCandidates const& candidates;
  BinnedPages const& pages;
  RandomSource* structure;
  Release* release;
};

// The splitter of each SplitChoice; TreeGrower chooses.
[[nodiscard]] std::unique_ptr<Splitter> MakeSelectedSplits(SplitterParts const& parts);
[[nodiscard]] std::unique_ptr<Splitter> MakeRandomSplits(SplitterParts const& parts);
[[nodiscard]] std::unique_ptr<Splitter> MakeNoisySplits(SplitterParts const& parts);
}  // namespace xgboost::dp
