"""The mechanisms of a ledger that is written by hand."""

from typing import Any

from xgb_dp.accounting.sensitivity import RowBound
from xgb_dp.mechanisms.histograms import Histograms
from xgb_dp.mechanisms.leaves import Leaves
from xgb_dp.mechanisms.mechanism import Mechanism
from xgb_dp.mechanisms.plan import Mechanisms
from xgb_dp.mechanisms.splits import Splits

UNIT2 = 1 << 40
"""Squared sensitivity of leaves, and of histograms of one feature."""
BOUND = RowBound("prediction", 1.0, 1.0)


def hand_made(
    split: str = "exponential",
    leaf_noise: str = "gaussian",
    *,
    selections: int = 3,
    levels: int = 3,
    draws: int = 1,
    **changes: Any,
) -> Mechanisms:
    """Rows whose gradients and Hessians together have the norm 2^20, in two sums of one leaf."""
    each: tuple[Mechanism, ...] = ()
    if split == "exponential":
        each = (Splits(BOUND, selections, "l1", 1.0, depth=3, range=2 << 20),)
    if split in ("histogram", "partial"):
        each = (Histograms(BOUND, outputs=1, levels=levels, features=1, cells=1),)
    else:
        each += (Leaves(BOUND, draws=draws, depth=3, mechanism=leaf_noise),)
    return Mechanisms(**({"each": each, "bound": BOUND, "rounds": 10, "grid_bits": 20} | changes))


def mechanisms(
    split: str = "exponential", leaf_noise: str = "gaussian", **changes: Any
) -> list[dict[str, Any]]:
    """The same as a ledger has them."""
    return [hand_made(split, leaf_noise, **changes).to_json()]
