/**
 * Checks that can stop a training before any row is read. The learner calls them (see patches/).
 */
#pragma once

#include <memory>  // for shared_ptr
#include <string>  // for string

#include "plugin_cpp/release/ledger.h"   // for Attributes
#include "xgboost/base.h"                // for Args
#include "xgboost/data.h"                // for DMatrix
#include "xgboost/gbm.h"                 // for GradientBooster
#include "xgboost/gradient.h"            // for GradientContainer
#include "xgboost/host_device_vector.h"  // for HostDeviceVector

namespace xgboost::dp {
class PrivateUpdater {
 public:
  virtual ~PrivateUpdater() = default;
  /**
   * @brief Refuse an iteration that the calibrated plan does not cover.
   *
   * @param attributes Attributes of the booster, whose ledger must claim this plan.
   * @param train      The training data. The updater keeps a reference, so no other matrix can
   * reuse its address.
   */
  virtual void BeforeIteration(Attributes const& attributes,
                               std::shared_ptr<DMatrix> const& train) = 0;
  /**
   * @brief Provide the margins, row by row, and the container for the gradients of all classes.
   *        Both live until the first tree of the iteration is grown.
   *
   * @return Whether the objective must compute the gradients.
   */
  [[nodiscard]] virtual bool TakeMargins(HostDeviceVector<float> const& margins,
                                         GradientContainer* gpair) = 0;
};

[[nodiscard]] bool IsPrivate(GradientBooster const& gbm);

/**
 * @brief Refuse parameters that would switch privacy off or be ignored by a private training.
 *
 * @param args    Newly set parameters.
 * @param booster Name of the booster.
 * @param gbm     The configured booster, null at the first configuration.
 */
void CheckArgs(Args const& args, std::string const& booster, GradientBooster const* gbm);

/**
 * @brief Refuse to predict or evaluate binned rows with a model that has a ledger.
 *
 * A matrix may share the bins of another one (`ref`), and these bins may be exact quantiles of
 * private rows. Predictions and metrics, even of public rows, would then reveal them.
 */
void CheckPredict(Attributes const& attributes, DMatrix const& data);

/**
 * @brief Called before every boosting iteration, before any data is read.
 *
 * @param estimate_intercept Whether the learner would estimate `base_score` from exact labels.
 * @param custom_gradient    Whether the gradients come from the user.
 */
void CheckUpdate(GradientBooster const& gbm, Attributes const& attributes,
                 std::shared_ptr<DMatrix> const& train, bool estimate_intercept,
                 bool custom_gradient);

/**
 * @brief Pass the margins and the container for the gradients of all classes to a private updater.
 *
 * XGBoost calls its updaters once for each class, with the gradients of this class only.
 *
 * @return Whether the objective must compute the gradients.
 */
[[nodiscard]] bool NeedsGradients(GradientBooster const& gbm,
                                  HostDeviceVector<float> const& margins, GradientContainer* gpair);
}  // namespace xgboost::dp
