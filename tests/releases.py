"""What a training releases, put together by hand instead of from parameters."""

from typing import Any

from xgb_dp.accounting.sensitivity import RowBound
from xgb_dp.calibrate import Releases
from xgb_dp.releases.candidates import Candidates
from xgb_dp.releases.intercept import Intercept
from xgb_dp.releases.leaves import Leaves
from xgb_dp.releases.release import Release
from xgb_dp.releases.splits import Splits

ROW = RowBound("row_weight", 0.5, 1.0)
SHARES = {"base_score": 0.009, "candidates": 0.1, "splits": 0.2673, "leaves": 0.6237}


def releases(
    rounds: int = 50,
    depth: int = 4,
    bound: RowBound = ROW,
    *,
    intercept: str | None = "binary",
    features: int = 14,
    outputs: int = 1,
    candidates: dict[str, Any] | None = None,
    leaves: dict[str, Any] | None = None,
    **more: Any,
) -> Releases:
    """The default's releases: a selection for each level of each tree."""
    persons = bound.of_person
    each: list[Release] = []
    if intercept is not None:
        each.append(Intercept(persons, intercept, outputs=outputs))
    if features:
        each.append(Candidates(persons, bound, features, **(candidates or {})))
    if rounds and depth:
        each.append(Splits(persons, depth * outputs))
    if rounds:
        cells = 1 << depth if persons else 1
        given = {"outputs": outputs, "touched": cells} | (leaves or {})
        each.append(Leaves(persons, bound, **given))
    return Releases(tuple(each), **({"shares": SHARES, "rounds": rounds} | more))
