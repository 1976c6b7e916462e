/**
 * Where the splits of a tree come from, level by level: from private selections on exact sums, from
 * noisy sums, or from chance. What is data stays inside: out go splits, and the sums of the leaves
 * as a type that tells whether they still need noise.
 *
 * Proof: docs/proofs/distributed.md
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for int32_t
#include <variant>  // for variant
#include <vector>   // for vector

#include "plugin_cpp/grow/bins.h"              // for BinnedPages
#include "plugin_cpp/grow/partition.h"         // for Partitions
#include "plugin_cpp/grow/split_candidates.h"  // for SplitCandidates, OpenNode
#include "plugin_cpp/plan/plan.h"              // for Plan
#include "plugin_cpp/registry.h"               // for Registry
#include "plugin_cpp/release/release.h"        // for Release
#include "plugin_cpp/rows/gradient.h"          // for ClassGradients
#include "xgboost/context.h"                   // for Context

namespace xgboost::dp {
class SplitHistory;

/** @brief Sums of the leaves of a tree: exact ones, or noisy ones that splits were read from. */
using LeafSums = std::variant<std::vector<LocalSum>, std::vector<GlobalSum>, Released<NoisySum>>;

struct TreeSpec {
  FeatureList features;   // that it may split on
  bool oblivious{false};  // whether one choice serves a whole level
  std::size_t class_idx{0};
  std::size_t tree_idx{0};      // how many trees of the class came before
  SplitHistory const* history;  // of all classes
};

class Splitter {
 public:
  virtual ~Splitter() = default;

  /**
   * @brief Begin a tree, with all rows in its root.
   *
   * @param gradients Of the classes whose trees share the splits, one of them or all. They live
   *                  until the tree is grown.
   */
  virtual void Begin(common::Span<ClassGradients const> gradients) = 0;
  /** @brief The splits of `n_levels` levels below every node; empty where "no split" won. */
  [[nodiscard]] virtual Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                          std::int32_t n_levels) = 0;
  /**
   * @brief Rows follow the splits that were chosen.
   *
   * @param children Of each node, from left to right.
   * @param last     Whether all of these are leaves.
   */
  virtual void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
                      std::vector<std::vector<bst_node_t>> const& children, bool last) = 0;
  /**
   * @brief End the tree: the sums of its leaves, in order, for each class, and the leaf of every
   *        local row.
   */
  [[nodiscard]] virtual std::vector<LeafSums> End(std::vector<bst_node_t> const& leaves,
                                                  std::vector<bst_node_t>* positions) = 0;
};

/** @brief What splits are made with. All of it outlives the splitter. */
struct SplitterParts {
  Context const* ctx;
  Plan const& plan;
  SplitCandidates const& candidates;
  BinnedPages const& pages;
  RandomSource* structure;
  Release* release;
};

using Splitters = Registry<Splitter, SplitChoice, SplitterParts>;
}  // namespace xgboost::dp
