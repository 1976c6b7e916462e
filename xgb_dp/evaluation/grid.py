"""The public cells of scores and values: where they lie, and what a row in each of them adds.

A score of two classes lies in one of 128 cells on the scale of its logit. The counts of the cells
are not released one by one: sums and differences of neighbouring cells (a Haar tree for each
class), in which large scales have little noise, and the residuals of ten bins of the probability,
from which the calibration error follows. All of it depends on public numbers alone.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ..noisy_sums import Floats, Ints

CELLS = 128
"""Cells of a score, a power of 2."""
BINS = 10
"""Bins of the probability in which calibration is looked at, of equal width."""
UNIT = 1 << 8
"""Grid units of what one row adds at most."""

_FARTHEST = 8.0  # logits beyond lie in the first or last cell
_NARROWEST = 0.05
_ROOT, _TREE, _CALIBRATION = 0.1, 0.5, 0.4  # of the squared norm of what one row adds
_FALL = math.sqrt(0.5)  # share of a level of the tree, over that of the level above


@dataclass(frozen=True)
class Grid:
    """Cells of a score on the scale of the logit; scores beyond count for the first or last."""

    low: float = -_FARTHEST
    high: float = _FARTHEST

    @classmethod
    def within(cls, low: float, high: float) -> Grid:
        """The grid for margins that are known to lie in a range."""
        low, high = max(low, -_FARTHEST), min(high, _FARTHEST)
        if math.isnan(low + high):
            return cls()
        if not high - low >= _NARROWEST:
            middle = min(max(0.5 * (low + high), -_FARTHEST), _FARTHEST)
            low, high = middle - _NARROWEST / 2.0, middle + _NARROWEST / 2.0
        return cls(low, high)

    @property
    def edges(self) -> Floats:
        """Inner edges, ascending; those next to a bound of a calibration bin lie on it."""
        return _edges(self.low, self.high)

    @property
    def ends(self) -> Floats:
        """All edges."""
        return np.concatenate([[self.low], self.edges, [self.high]])

    @property
    def centres(self) -> Floats:
        """The logit that stands for each cell."""
        ends = self.ends
        return np.asarray(0.5 * (ends[1:] + ends[:-1]))

    @property
    def probability(self) -> Floats:
        """The probability that stands for each cell."""
        return np.asarray(expit(self.centres))

    @property
    def bins(self) -> Ints:
        """The calibration bin of each cell."""
        return np.minimum((self.probability * BINS).astype(np.int64), BINS - 1)

    def cell(self, margins: npt.ArrayLike) -> Ints:
        """The cell of each margin; NaN counts as the first."""
        values = np.nan_to_num(np.asarray(margins, dtype=np.float64), nan=self.low)
        return np.asarray(np.searchsorted(self.edges, values, side="right"), dtype=np.int64)


@lru_cache(maxsize=64)
def _edges(low: float, high: float) -> Floats:
    edges = np.linspace(low, high, CELLS + 1)[1:-1]
    share = np.arange(1, BINS) / BINS
    width = (high - low) / CELLS
    for bound in np.log(share) - np.log1p(-share):
        nearest = int(np.argmin(np.abs(edges - bound)))
        if abs(edges[nearest] - bound) <= 0.5 * width * (1.0 + 1e-9):
            edges[nearest] = bound
    edges.setflags(write=False)
    return edges


@lru_cache(maxsize=64)
def counts_matrix(grid: Grid) -> Ints:
    """What a row in each cell adds to what is released: (sums, 2 * CELLS), negatives first."""
    tree = tree_matrix(CELLS, _ROOT, _TREE)
    none = np.zeros_like(tree)
    inside = grid.bins == np.arange(BINS)[:, np.newaxis]
    p = grid.probability
    residual = math.sqrt(_CALIBRATION) * np.hstack([inside * -p, inside * (1.0 - p)])
    whole = np.vstack([np.hstack([tree, none]), np.hstack([none, tree]), residual])
    matrix = np.rint(whole * UNIT).astype(np.int64)
    matrix.setflags(write=False)
    return matrix


def tree_matrix(cells: int, root: float, tree: float) -> Floats:
    """Haar tree: the number of rows, and at each node the left half less the right one."""
    levels = cells.bit_length() - 1
    share = _FALL ** np.arange(levels)
    share *= tree / share.sum()
    rows = [np.full((1, cells), math.sqrt(root))]
    for level in range(levels):
        half = cells >> (level + 1)
        sides = np.concatenate([np.ones(half), -np.ones(half)])
        rows.append(math.sqrt(share[level]) * np.kron(np.eye(1 << level), sides))
    return np.vstack(rows)


def value_cells(values: Floats, power: int = 1, cells: int = CELLS) -> Ints:
    """The cell of each value; what lies beyond -1 or 1 counts as that, NaN as 1."""
    clipped = np.clip(np.nan_to_num(values, nan=1.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    root = np.sign(clipped) * np.abs(clipped) ** (1.0 / power)
    return np.minimum(((root + 1.0) * (cells / 2)).astype(np.int64), cells - 1)


def value_ends(power: int = 1, cells: int = CELLS) -> Floats:
    """The edges of the cells of values, which are even on the scale of a root of the value."""
    return np.asarray(np.linspace(-1.0, 1.0, cells + 1) ** power)


def value_points(power: int = 1, cells: int = CELLS) -> Floats:
    """The value in the middle of each cell."""
    ends = value_ends(power, cells)
    return np.asarray(0.5 * (ends[1:] + ends[:-1]))


def log_cells(values: Floats, low: float, high: float, cells: int) -> Ints:
    """The cell of the logarithm of each value; what is no number is in the first."""
    with np.errstate(all="ignore"):
        place = (np.log(values) - low) / (high - low) * cells
    place = np.nan_to_num(place, nan=0.0, neginf=0.0, posinf=cells)
    return np.clip(place, 0, cells - 1).astype(np.int64)
