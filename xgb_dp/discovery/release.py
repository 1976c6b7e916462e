"""The releases of a discovery, from exact counts; nothing else of the rows leaves this module.

Proof: docs/proofs/discovery.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..accounting import event_from_json
from ..accounting.units import PERSON
from ..engine import draws, native
from ..errors import LedgerError
from .plan import LEVELS, DiscoveryPlan

__all__ = ["Texts", "Tree", "release_numbers", "release_texts", "request_of", "voters", "weights"]

MAX_BIN = 64
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Texts:
    """What is released of a text column.

    Attributes:
        counts: Noisy number of rows (or votes by persons) by text, of those that are shown.
        missing: Noisy number of missing cells.
    """

    counts: dict[str, float]
    missing: float


@dataclass(frozen=True)
class Tree:
    """What is released of a column of numbers.

    Attributes:
        leaves: (low, high, noisy count) of the cells of its quantile tree, ascending, by keys of
            32-bit floats.
        cuts: Split points for training.
        missing: Noisy number of missing cells.
    """

    leaves: tuple[tuple[int, int, float], ...]
    cuts: tuple[float, ...]
    missing: float


def voters(codes: npt.NDArray[np.uint32]) -> Ints:
    """One row of each person, by an even draw among the person's rows."""
    coins = draws.coins(len(codes))
    order = np.lexsort((coins, codes))
    first = np.ones(len(codes), dtype=bool)
    first[1:] = codes[order][1:] != codes[order][:-1]
    return order[first]


def weights(codes: npt.NDArray[np.uint32] | None, rows: int, shift: int) -> Ints:
    """What each row weighs: 2**shift, or the part of it that each row of a person has."""
    if codes is None:
        return np.full(rows, 1 << shift, dtype=np.int64)
    return (1 << shift) // np.bincount(codes)[codes]


def release_texts(codes: Ints, names: Sequence[str], plan: DiscoveryPlan) -> Texts:
    """Noisy counts of the texts that reach the threshold, and of missing cells."""
    unit = 1 << plan.text_shift
    exact = np.bincount(codes + 1, minlength=len(names) + 1).astype(np.int64) * unit
    noisy = exact + draws.discrete_gaussian(plan.text_sigma2, len(exact))
    # A text without a row here is one that another row may have named: it is not shown.
    shown = [
        (int(noisy[i + 1]), name)
        for i, name in enumerate(names)
        if exact[i + 1] and noisy[i + 1] >= plan.threshold
    ]
    # By noisy counts: the order of the rows is theirs.
    shown.sort(key=lambda found: (-found[0], found[1]))
    return Texts({name: count / unit for count, name in shown}, float(noisy[0]) / unit)


def request_of(plan: DiscoveryPlan, **changes: Any) -> dict[str, Any]:
    """What C++ is asked for; `changes` are those of tests."""
    asked = {
        "levels": LEVELS,
        "max_bin": MAX_BIN,
        "shift": plan.number_shift,
        "sigma2": plan.number_sigma2,
        "persons": plan.unit == PERSON,
        "noise_free": False,
        "private": True,
    }
    return {**asked, **changes}


def release_numbers(
    columns: npt.NDArray[np.float32], each: Ints, plan: DiscoveryPlan
) -> list[Tree]:
    """Quantile trees of columns of numbers."""
    request = request_of(plan)
    planned = plan.events[0]
    described = event_from_json(native.describe_numbers(len(columns), request))
    if described != planned:
        raise LedgerError("The noise of a discovery is not what was calibrated. Please report it.")
    found = native.discover_numbers(columns, each, request)
    if [event_from_json(e) for e in found["events"]] != [planned]:
        raise LedgerError("A discovery has drawn other noise than planned. Please report it.")
    return [
        Tree(
            tuple((int(low), int(high), float(count)) for low, high, count in column["leaves"]),
            tuple(map(float, column["cuts"])),
            float(column["missing"]),
        )
        for column in found["columns"]
    ]
