"""What settings ask of the rows, each of which is judged by itself."""

from __future__ import annotations

from typing import Any

from ..data import row_checks
from ..engine import native
from ..errors import PrivacyParameterError, named
from ..request.settings import Settings


def check_rows(dtrain: Any, s: Settings, plan_text: str) -> None:
    """Refuse rows that are not what these settings declare."""
    labels, n = dtrain.get_label(), dtrain.num_row()
    lower, upper = (dtrain.get_float_info(f"label_{side}_bound") for side in ("lower", "upper"))
    if s.objective.intervals:
        row_checks.check_intervals(lower, upper, n)
    else:
        if labels.size != n * s.labels or s.schema.labels != s.labels:
            raise PrivacyParameterError(
                "`dtrain` must have one label for each row, or a column for each target, of which "
                f"{named.dp_target_bounds} may have a range each; {s.labels} expected. Without "
                f"rows give labels as np.empty((0, {s.labels}))."
            )
        row_checks.check_labels(labels, s.kind, s.classes)
        if s.kind == "regression":
            known = s.objective
            row_checks.check_range(labels, known.lowest, known.highest, above=known.above)
        row_checks.check_unused(lower, upper)
    margins = dtrain.get_base_margin()
    row_checks.check_base_margin(margins, n, s.trees_per_round, declared=s["dp_base_margin"])
    heavier = "dp_max_weight" in s.given
    row_checks.check_weights(dtrain.get_weight(), n, s.kind, unit=s.unit_weights, declared=heavier)
    native.check_rows(dtrain, plan_text)
