/**
 * Arguments of the learner, which must be those of the plan, and cannot change in a training.
 */
#pragma once

#include <string>  // for string

#include "plugin_cpp/plan/plan.h"  // for Plan
#include "xgboost/base.h"          // for Args

namespace xgboost::dp {
/** @brief The name of a plan, of whatever version; the text itself where it has none. */
[[nodiscard]] std::string IdOf(std::string const& plan_text);

/** @brief Refuse arguments other than those that a plan was calibrated for. */
void CheckFirstArgs(Args const& args, Plan const& plan);
/** @brief Refuse new arguments in the middle of a training, but for those that change no tree. */
void CheckLaterArgs(Args const& args, Plan const& plan);
}  // namespace xgboost::dp
