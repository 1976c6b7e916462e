/**
 * The squared error of several targets of a row, each with a label, a range and an output.
 *
 * Every residual is in half widths of the range of its target and clipped at a public number, so
 * that all targets of a row have one bound together, which no label changes.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#pragma once

#include <memory>  // for shared_ptr

#include "plugin_cpp/loss/loss.h"  // for Loss, LabelRange

namespace xgboost::dp {
[[nodiscard]] std::shared_ptr<Loss const> ReadTargetsLoss(JsonReader const& in, LabelRange range);
}  // namespace xgboost::dp
