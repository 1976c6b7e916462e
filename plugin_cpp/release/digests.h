/**
 * Digests of trees and plans, which identify them in a ledger.
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <string>  // for string

#include "xgboost/tree_model.h"  // for RegTree

namespace xgboost::dp {
/**
 * @brief The first 128 bits of the SHA-256 of a tree, in hexadecimal digits. `tree_names` in
 *        xgb_dp/engine/model_json.py computes the same from a file.
 */
[[nodiscard]] std::string TreeDigest(RegTree const& tree);
/** @brief The SHA-256 of a plan's JSON, in hexadecimal digits. */
[[nodiscard]] std::string PlanDigest(std::string const& plan_text);
}  // namespace xgboost::dp
