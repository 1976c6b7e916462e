/**
 * The name of a tree: a digest of all its numbers, by which a ledger knows the trees it has paid
 * for.
 *
 * Proof: docs/proofs/accounting.md
 */
#pragma once

#include <string>  // for string

#include "xgboost/tree_model.h"  // for RegTree

namespace xgboost::dp {
/**
 * @brief The first 128 bits of the SHA-256 of a tree, in hexadecimal digits, as `tree_names` in
 *        xgb_dp/engine/model_json.py computes it from a file.
 */
[[nodiscard]] std::string TreeName(RegTree const& tree);
}  // namespace xgboost::dp
