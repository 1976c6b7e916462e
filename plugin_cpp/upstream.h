/**
 * Differences between the supported releases of XGBoost. No other file depends on the version;
 * docs/following-upstream.md explains how to add one.
 */
#pragma once

#include "common/hist_util.h"        // for HistogramCuts
#include "xgboost/base.h"            // for bst_feature_t
#include "xgboost/data.h"            // for DMatrix
#include "xgboost/tree_model.h"      // for RegTree
#include "xgboost/tree_updater.h"    // for TreeUpdater
#include "xgboost/version_config.h"  // for XGBOOST_VER_MAJOR, XGBOOST_VER_MINOR

#define XGB_DP_UPSTREAM (XGBOOST_VER_MAJOR * 100 + XGBOOST_VER_MINOR)

#if XGB_DP_UPSTREAM < 304
#include <limits>  // for numeric_limits

#include "tree/hist/evaluate_splits.h"   // for UpdatePredictionCacheImpl
#include "xgboost/host_device_vector.h"  // for HostDeviceVector
#include "xgboost/linalg.h"              // for MatrixView
#include "xgboost/span.h"                // for Span
#endif

namespace xgboost::dp {
[[nodiscard]] inline common::HistogramCuts MakeEmptyCuts(bst_feature_t n_features) {
#if XGB_DP_UPSTREAM < 304
  common::HistogramCuts cuts;
  cuts.min_vals_.HostVector().assign(n_features, std::numeric_limits<float>::lowest());
#else
  common::HistogramCuts cuts{n_features};
#endif
  return cuts;
}

/**
 * @brief A tree updater that does not expose the node positions of rows.
 *
 * Some objectives have adaptive leaves, which would replace leaf values by exact quantiles of the
 * residuals at these positions. Since XGBoost 3.4 no objective replaces leaves, and the prediction
 * cache is updated without the updater.
 */
class PlainUpdater : public TreeUpdater {
 public:
  using TreeUpdater::TreeUpdater;

#if XGB_DP_UPSTREAM < 304
  [[nodiscard]] bool HasNodePosition() const override { return false; }

  bool UpdatePredictionCache(DMatrix const* p_fmat,
                             common::Span<HostDeviceVector<bst_node_t>> position,
                             linalg::MatrixView<float> out_preds) override {
    auto const* tree = this->LastTree(p_fmat);
    if (!tree || out_preds.Size() == 0) {
      return false;
    }
    tree::UpdatePredictionCacheImpl(ctx_, tree, position.front().ConstHostSpan(), out_preds);
    return true;
  }
#endif

 protected:
  /** @brief The last tree, if it was grown on this matrix and its row positions are known. */
  [[nodiscard]] virtual RegTree const* LastTree(DMatrix const* p_fmat) const = 0;
};
}  // namespace xgboost::dp
