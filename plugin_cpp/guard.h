/**
 * Everything that must stop training before a row is read. Called by the learner (see patches/).
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
/** @brief What the guard needs of the private updater. */
class PrivateUpdater {
 public:
  virtual ~PrivateUpdater() = default;
  /**
   * @brief Refuse an iteration that the calibrated plan does not pay for.
   *
   * @param attributes Of the booster; the ledger among them must claim this plan as spent.
   * @param train      The training data. The updater keeps it, so that no other matrix can take its
   *                   place in memory.
   */
  virtual void BeforeIteration(Attributes const& attributes,
                               std::shared_ptr<DMatrix> const& train) = 0;
  /**
   * @brief The gradients of all classes, and the margins that they were computed at, row by row.
   *        Both live until the first tree of the iteration is grown.
   */
  virtual void TakeGradients(GradientContainer const& gpair,
                             HostDeviceVector<float> const& margins) = 0;
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
 * @brief Refuse to predict for, or to evaluate, binned rows with a model that carries a ledger.
 *
 * Bins may be those of another matrix (`ref`), hence exact quantiles of the rows that the model was
 * trained on; predictions and metrics of public rows would tell them.
 */
void CheckPredict(Attributes const& attributes, DMatrix const& data);

/**
 * @brief Called before every boosting iteration, before the data is looked at.
 *
 * @param estimate_intercept Whether the learner would estimate `base_score` from exact labels.
 * @param custom_gradient    Whether the gradients come from the user.
 */
void CheckUpdate(GradientBooster const& gbm, Attributes const& attributes,
                 std::shared_ptr<DMatrix> const& train, bool estimate_intercept,
                 bool custom_gradient);

/**
 * @brief Show gradients of all classes and margins to the private updater; to any other one
 * nothing.
 *
 * The updaters of XGBoost are called once for each class, with the gradient of that class alone.
 */
void ShowGradients(GradientBooster const& gbm, GradientContainer const& gpair,
                   HostDeviceVector<float> const& margins);
}  // namespace xgboost::dp
