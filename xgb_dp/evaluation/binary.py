"""Evaluation of a model of two classes: the blocks of its table, and the figures from them.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .figures import TwoClasses
from .grid import CELLS, Grid, counts_matrix
from .posterior import Solver, two_classes
from .rows import Groups, Judged
from .table import Block, Released

__all__ = ["Binary", "scaled"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def scaled(matrix: Ints, share: float) -> Ints:
    """A matrix of a block with a share of the squared norm."""
    return np.asarray(np.rint(matrix * math.sqrt(share)), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Binary:
    """What is released about two classes, and how it is read.

    Attributes:
        grid: Cells of the score.
        groups: Declared groups.
        blocks: The table: all rows, and the same for each group.
    """

    grid: Grid
    groups: Groups | None
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, model: Judged, groups: Groups | None) -> Binary:
        """The blocks for a model. No row is looked at."""
        grid = Grid.within(*model.margins)
        matrix = counts_matrix(grid)
        if groups is None:
            return cls(grid, None, (Block("scores", matrix),))
        half = scaled(matrix, 0.5)
        blocks = (Block("scores", half), Block("groups", half, len(groups.names)))
        return cls(grid, groups, blocks)

    def cells(self, margins: Floats, labels: Floats, groups: Ints | None) -> list[Ints]:
        """The cell of each row in each block."""
        cell = self.grid.cell(margins) + CELLS * (labels > 0.5).astype(np.int64)
        return [cell] if groups is None else [cell, cell + 2 * CELLS * groups]

    def views(
        self, released: Released, level: float
    ) -> tuple[TwoClasses, Mapping[str, TwoClasses]]:
        """Figures of all rows, and of each group."""
        solver = Solver.of(self.blocks[0].matrix)
        sums, noise = released.sums[0][0], released.noise

        def view(values: Floats, own: float) -> TwoClasses:
            return TwoClasses(two_classes(self.grid, solver, values, own), level)

        if self.groups is None:
            return view(sums, noise), {}
        parts = released.sums[1]
        # All rows were counted twice: at once, and as the sum of their groups with more noise.
        k = len(parts)
        both = (k * sums + parts.sum(axis=0)) / (k + 1)
        overall = view(both, noise * math.sqrt(k / (k + 1.0)))
        own = zip(self.groups.names, parts, strict=True)
        return overall, {name: view(values, noise) for name, values in own}
