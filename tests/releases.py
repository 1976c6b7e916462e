"""What a training releases, put together by hand instead of from parameters."""

from typing import Any, NamedTuple

from xgb_dp.accounting.sensitivity import LabelSumSizes, RowBound
from xgb_dp.mechanisms.candidates import Candidates
from xgb_dp.mechanisms.label_sums import LabelSums
from xgb_dp.mechanisms.leaves import Leaves
from xgb_dp.mechanisms.mechanism import Mechanism
from xgb_dp.mechanisms.plan import Mechanisms
from xgb_dp.mechanisms.splits import Splits

ROW = RowBound("row_weight", 0.5, 1.0)
SHARES = {"base_score": 0.009, "candidates": 0.1, "splits": 0.2673, "leaves": 0.6237}


class Releases(NamedTuple):
    """The first arguments of a calibration."""

    mechanisms: Mechanisms
    shares: dict[str, float]


def label_sums(bound: RowBound, kind: str, outputs: int = 1) -> LabelSums:
    """Sums of labels and of the number of rows."""
    return LabelSums(bound, LabelSumSizes(kind, 0, False, outputs, False, False))


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
    shares: dict[str, float] = SHARES,
    **more: Any,
) -> Releases:
    """The default's releases: a selection for each level of each tree."""
    each: list[Mechanism] = []
    if intercept is not None:
        each.append(label_sums(bound, intercept, outputs))
    if features:
        each.append(Candidates(bound, features, **(candidates or {})))
    if rounds and depth:
        each.append(Splits(bound, depth * outputs))
    if rounds:
        each.append(Leaves(bound, **({"outputs": outputs, "depth": depth} | (leaves or {}))))
    return Releases(Mechanisms(tuple(each), bound, rounds, **more), shares)
