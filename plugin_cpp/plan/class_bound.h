/**
 * The row bound over several classes together: all gradients and Hessians of a row have one norm.
 *
 * A row is scaled by one factor, which depends on its predictions and its weight but not on its
 * label: the norm that it is scaled to is the largest over all labels that the row might have. So
 * no class counts less for being rare, and what the leaves make of it has the true probabilities as
 * its fixed point. The bound itself is enforced on the integers, whatever the factor was.
 *
 * Proof: docs/proofs/integer-grid.md
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <cstddef>  // for size_t

#include "plugin_cpp/plan/row_bound.h"  // for RowBound

namespace xgboost::dp {
class ClassQuantiser {
 public:
  ClassQuantiser(RowBound const& bound, std::size_t n_class);

  /**
   * @brief The integers of one row, in place of its gradients w (p - e_label) and its Hessians.
   *
   * One that is not a number makes all of them 0.
   *
   * @param g,h    Of the first class; those of the next ones follow at the stride.
   * @param weight w.
   *
   * @return The norm that the row has with the worst label, where C = 1.
   */
  double operator()(double label, double weight, double* g, double* h, std::size_t stride) const;
  /** @brief The same for a row whose largest norm for a weight of one, over all labels, is known.
   */
  double Bound(double norm, double weight, double* g, double* h, std::size_t stride) const;

 private:
  /** @brief The largest norm of a row over all labels, for a weight of 1. */
  [[nodiscard]] double LargestNorm(double label, double weight, double const* g, double const* h,
                                   std::size_t stride) const;

  std::size_t n_class_;
  double c_, r_, root_, to_grid_, unit_, most_g_, most_h_, least_weight_;
};
}  // namespace xgboost::dp
