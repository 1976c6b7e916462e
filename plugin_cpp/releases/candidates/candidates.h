/**
 * The private release of split candidates: once, or again in each of the first rounds.
 *
 * A row is in one cell of every feature, and on one path of every quantile tree, with a weight of
 * one or with its bounded Hessian; the rows of a person share a weight of one. That gives the
 * sensitivity; what is made of the noisy sums is free.
 *
 * Proof: docs/proofs/candidates.md
 */
#pragma once

#include <cstdint>  // for int64_t
#include <vector>   // for vector

#include "common/hist_util.h"                          // for HistogramCuts
#include "plugin_cpp/plan/plan.h"                      // for Plan
#include "plugin_cpp/registry.h"                       // for Registry
#include "plugin_cpp/release/release.h"                // for Release
#include "plugin_cpp/releases/candidates/cell_sums.h"  // for CellSums
#include "plugin_cpp/rows/gradient.h"                  // for PackedPair
#include "plugin_cpp/rows/persons.h"                   // for Persons
#include "plugin_cpp/rows/raw_pages.h"                 // for ForEachPage
#include "xgboost/context.h"                           // for Context
#include "xgboost/data.h"                              // for DMatrix, SparsePage

namespace xgboost::dp {
/** @brief What rows weigh in the counts of candidates. */
struct CandidateRows {
  DMatrix* matrix;
  Persons const* persons;                // whom they belong to; null where each row counts one
  std::vector<PackedPair> const& gpair;  // integer gradients, whose Hessians may be weights
};

/** @brief What candidates are released with. */
struct CandidateParts {
  Context const* ctx;
  Plan const& plan;
  Release* release;
};

class Candidates {
 public:
  explicit Candidates(CandidateParts const& parts);
  virtual ~Candidates() = default;

  /** @brief Release the candidates of features of kind `kPrivate`, look up those of the others. */
  [[nodiscard]] common::HistogramCuts MakeCuts(CandidateRows const& rows);

 protected:
  /** @brief Release the cuts of the features, ascending. */
  [[nodiscard]] virtual std::vector<std::vector<float>> ReleaseCuts(CandidateRows const& rows) = 0;
  /**
   * @brief Add all rows to the sums, each with its Hessian or what it counts.
   *
   * @param cell See CellSums::Add.
   */
  template <typename CellFn>
  void AddRows(CandidateRows const& rows, CellFn&& cell, CellSums* sums) const {
    auto one = std::int64_t{1} << plan_.candidates.shift;
    ForEachPage(ctx_, rows.matrix, [&](SparsePage const& page) {
      if (plan_.candidates.hessian) {
        sums->Add(page, cell, [&](auto i) { return rows.gpair[i].Sum().hess; });
      } else if (rows.persons) {
        // Rounded downwards, so that all rows of a person count at most one.
        sums->Add(page, cell, [&](auto i) { return one / rows.persons->RowsOf(i); });
      } else {
        sums->Add(page, cell, [&](auto) { return one; });
      }
    });
  }

  Context const* ctx_;
  Plan const& plan_;
  Release* release_;
  std::vector<bst_feature_t> features_;  // those of kind `kPrivate`, ascending
};

using CandidateKinds = Registry<Candidates, CandidateKind, CandidateParts>;
}  // namespace xgboost::dp
