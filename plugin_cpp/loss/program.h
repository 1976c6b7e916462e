/**
 * A loss of the user's, as a list of arithmetic instructions on the numbers of one row.
 *
 * It has no memory and no loops, and reads one row: so it cannot couple rows, whatever it computes.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr

#include "plugin_cpp/loss/loss.h"  // for Loss, LabelRange

namespace xgboost::dp {
[[nodiscard]] std::shared_ptr<Loss const> ReadProgramLoss(JsonReader const& in, LabelRange range);
}  // namespace xgboost::dp
