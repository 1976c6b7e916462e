"""Targets of single rows, read off a regression.

With squared loss the Hessian of a row is 1, so that the file says which leaves have one row. The
value of such a leaf in the first tree is a public function of the target of that row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .forest import Leaf, Model

__all__ = ["Reconstruction", "found", "single_rows"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reconstruction:
    """What the file says about a row.

    Attributes:
        leaf: The ranges of its columns.
        target: Its target.
    """

    leaf: Leaf
    target: float


def single_rows(model: Model, eta: float, penalty: float = 1.0) -> list[Reconstruction]:
    """Rows that are alone in a leaf of the first tree, as far as the file tells."""
    return [
        Reconstruction(leaf, model.margin + leaf.value / eta * (leaf.hessian + penalty))
        for leaf in model.trees[0]
        if round(leaf.hessian) == 1
    ]


def found(claims: list[Reconstruction], x: Floats, y: Floats, width: float) -> int:
    """How many of them are right: a row in the leaf has that target.

    Args:
        claims: Of the attacker.
        x: Rows of the table.
        y: Their targets.
        width: The range of the target, of which a right one may be off by a thousandth.
    """
    rows = x.astype(np.float32)
    right = 0
    for one in claims:
        low, high = one.leaf.low.astype(np.float32), one.leaf.high.astype(np.float32)
        inside = ((rows >= low) & (rows < high)).all(axis=1)
        right += bool((np.abs(y[inside] - one.target) <= 1e-3 * width).any())
    return right
