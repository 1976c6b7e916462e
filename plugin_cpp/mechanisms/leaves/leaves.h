/**
 * The release of leaves: the sums (G, H) of every leaf, with Gaussian or Laplace noise. Leaf values
 * are computed from them. A row is in one leaf.
 *
 * The structure of a tree is released before its leaves. The contribution of a person to the leaves
 * is then a vector, and its norm can be bounded instead of the sum of the norms of all rows. If
 * labels agree with predictions on average, the gradients of many rows cancel, and the vector is
 * short. The rows of a person are scaled by the expected length of their sum, and the vector is
 * clipped. In addition, the sum of all rows as bounded for the splits is released. It shows how
 * much the clipping tilts the mean of the tree.
 *
 * Proof: docs/proofs/leaves.md
 * Proof: docs/proofs/persons.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <vector>  // for vector

#include "plugin_cpp/grow/splitter.h"                // for LeafSums
#include "plugin_cpp/mechanisms/leaves/shrinkage.h"  // for NodeSum, TreeTilt
#include "plugin_cpp/plan/plan.h"                    // for Plan
#include "plugin_cpp/release/release.h"              // for Release
#include "plugin_cpp/rows/gradient.h"                // for ClassGradients, PersonRows
#include "plugin_cpp/rows/persons.h"                 // for Persons
#include "xgboost/base.h"                            // for bst_node_t
#include "xgboost/context.h"                         // for Context

namespace xgboost::dp {
/**
 * @brief Release the sums of every leaf, in order.
 *
 * @param leaves Exact sums, or noisy sums that were released with the splits.
 * @param tilt   Tilt of the trees of this class so far.
 */
[[nodiscard]] std::vector<NodeSum> ReleaseLeaves(Plan const& plan, TreeIndex idx,
                                                 LeafSums const& leaves, TreeTilt* tilt,
                                                 Release* release);
/** @brief Release leaf values by output perturbation (output_leaves.cc). */
[[nodiscard]] std::vector<NodeSum> ReleaseLeafValues(Plan const& plan, TreeIndex idx,
                                                     LeafSums const& leaves, Release* release);

/**
 * @brief Bound the vector of each person with several rows over the leaves of a released tree, and
 *        append a third of the sum of all rows.
 *
 * @param rows      Rows of persons with several rows, before they were bounded per person.
 * @param gradients Gradients of all rows, for all classes.
 * @param leaves    Leaf ids, ascending.
 * @param position  Leaf of each row.
 * @param sums      Leaf sums from the splits, class by class; replaced by the bounded sums.
 */
void SpreadPersons(Context const* ctx, Plan const& plan, Persons const& persons,
                   PersonRows const& rows, std::vector<ClassGradients> const& gradients,
                   std::vector<bst_node_t> const& leaves, std::vector<bst_node_t> const& position,
                   Release const& release, std::vector<LeafSums>* sums);
}  // namespace xgboost::dp
