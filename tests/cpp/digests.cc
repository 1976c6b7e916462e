/**
 * @brief Entry point for the tests of the names of trees.
 */
#include "plugin_cpp/release/digests.h"

#include <string>  // for string

#include "c_api/c_api_error.h"  // for API_BEGIN, API_END
#include "xgboost/c_api.h"      // for XGB_DLL
#include "xgboost/json.h"       // for Json

namespace xgboost::dp {
/** @brief The name of a tree that is read from the JSON of a model file. */
XGB_DLL int XGDPTestTreeDigest(char const* tree, char const** out) {
  API_BEGIN();
  static thread_local std::string name;
  RegTree loaded;
  loaded.LoadModel(Json::Load(StringView{tree}));
  name = TreeDigest(loaded);
  *out = name.c_str();
  API_END();
}
}  // namespace xgboost::dp
