/**
 * What the leaves of a tree say, with noise: sums from which the values follow, (G, H) of every
 * leaf with Gaussian or with Laplace noise. A row is in one leaf. A person may count by the norm of
 * what it adds to the leaves, and not by its rows.
 *
 * For the structure of a tree is released before its leaves. By then a person need not pay for the
 * sum of the norms of all rows: what it adds to the leaves is a vector, whose norm is bounded.
 * Where labels follow predictions the gradients of many rows cancel, so that the vector is short.
 * So the rows of a person are scaled by what they are expected to add, and the vector is cut.
 * Beside the leaves the sum of all rows is released, weighed as in the splits, which says how far
 * that tilts the tree.
 *
 * Proof: docs/proofs/leaves.md
 * Proof: docs/proofs/persons.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/grow/splitter.h"              // for LeafSums
#include "plugin_cpp/plan/plan.h"                  // for Plan
#include "plugin_cpp/plan/row_bound.h"             // for RowBound
#include "plugin_cpp/release/release.h"            // for Release
#include "plugin_cpp/releases/leaves/shrinkage.h"  // for NodeSum, TreeTilt
#include "plugin_cpp/rows/gradient.h"              // for ClassGradients, RowsOfPersons
#include "plugin_cpp/rows/persons.h"               // for Persons
#include "xgboost/base.h"                          // for bst_node_t
#include "xgboost/context.h"                       // for Context

namespace xgboost::dp {
struct LeafParts {
  Plan const& plan;
  Release* release;
};

class LeafRelease {
 public:
  virtual ~LeafRelease() = default;
  /**
   * @brief The released sums of every leaf, in order. Noisy ones are released already.
   *
   * @param of   Which tree it is.
   * @param tilt Of the class, over its trees.
   */
  [[nodiscard]] virtual std::vector<NodeSum> operator()(TreeOfRound of, LeafSums const& leaves,
                                                        TreeTilt* tilt) const = 0;
};

using LeafReleases = Registry<LeafRelease, LeafNoise, LeafParts>;

/**
 * @brief Let persons with several rows count what they may in the leaves of a released tree, and
 *        append the sums of all rows, a third of each.
 *
 * @param given     Rows of persons with several rows, before persons were bounded.
 * @param gradients Of all rows and classes.
 * @param leaves    Ids, rising.
 * @param position  The leaf of each row.
 * @param sums      What splits have of the leaves, class by class; it is replaced.
 */
void SpreadPersons(Context const* ctx, Plan const& plan, Persons const& persons,
                   RowsOfPersons const& given, std::vector<ClassGradients> const& gradients,
                   std::vector<bst_node_t> const& leaves, std::vector<bst_node_t> const& position,
                   Release const& release, std::vector<LeafSums>* sums);
}  // namespace xgboost::dp
