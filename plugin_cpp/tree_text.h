/**
 * The trees of a model as the text that their names are digests of.
 */
#pragma once

#include <string>  // for string

#include "xgboost/json.h"  // for Json

namespace xgboost::dp {
/**
 * @brief JSON as Python's `json.dumps(json.loads(text), sort_keys=True)` writes it.
 *
 * @param text Of ASCII, with sorted keys and without spaces, as XGBoost writes a tree.
 */
[[nodiscard]] std::string AsPythonWrites(std::string const& text);

/**
 * @brief A line for each tree of a model: its intercept and all numbers of the tree but its index,
 *        the same text as `tree_texts` in xgb_dp/engine/model_json.py makes.
 *
 * @param model What `Learner::SaveModel` has made of a `gbtree` booster.
 */
[[nodiscard]] std::string TreeTexts(Json const& model);
}  // namespace xgboost::dp
