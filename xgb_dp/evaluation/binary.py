"""Evaluation of a model of two classes: the blocks of both steps, and the figures from them.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from .aim import AIMED, AIMED_SHARE, aimed_matrix
from .figures import TwoClasses
from .grid import CELLS, UNIT, Grid, counts_matrix
from .posterior import DRAWS, Posterior, Solver, two_classes
from .rows import Groups, Judged
from .table import Block, Later, Released

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
        blocks: The first step: all rows, and the same for each group.
        later: Room of the second step.
    """

    grid: Grid
    groups: Groups | None
    blocks: tuple[Block, ...]
    later: Later

    @classmethod
    def of(cls, model: Judged, groups: Groups | None) -> Binary:
        """The blocks for a model. No row is looked at."""
        return cls.on(Grid.within(*model.margins), groups)

    @classmethod
    def on(cls, grid: Grid, groups: Groups | None) -> Binary:
        """The blocks for scores on a grid."""
        matrix = counts_matrix(grid)
        room = math.floor(UNIT**2 * AIMED_SHARE)
        if groups is None:
            first = Block("scores", scaled(matrix, 1.0 - AIMED_SHARE))
            return cls(grid, None, (first,), Later(room, AIMED))
        half, copies = scaled(matrix, 0.5 - 0.5 * AIMED_SHARE), len(groups.names)
        blocks = (Block("scores", half), Block("groups", half, copies))
        return cls(grid, groups, blocks, Later(room, AIMED * (1 + copies)))

    def cells(self, margins: Floats, labels: Floats, groups: Ints | None) -> list[Ints]:
        """The cell of each row in each block, of either step."""
        cell = self.grid.cell(margins) + CELLS * (labels > 0.5).astype(np.int64)
        return [cell] if groups is None else [cell, cell + 2 * CELLS * groups]

    def aimed(self, released: Released) -> tuple[Block, ...]:
        """The blocks of the second step, from what the first has released."""
        share = AIMED_SHARE if self.groups is None else 0.5 * AIMED_SHARE
        overall, by_group = self._posteriors(released, draws=1)
        noise = released.noise / UNIT
        blocks = [Block("aimed", aimed_matrix(overall, noise, share))]
        if by_group:
            own = block_diag(*(aimed_matrix(one, noise, share) for one in by_group))
            blocks.append(Block("aimed at groups", np.asarray(own, dtype=np.int64)))
        return tuple(blocks)

    def views(
        self, released: Released, level: float
    ) -> tuple[TwoClasses, Mapping[str, TwoClasses]]:
        """Figures of all rows, and of each group."""
        overall, by_group = self._posteriors(released, draws=DRAWS)
        names = () if self.groups is None else self.groups.names
        own = {n: TwoClasses(one, level) for n, one in zip(names, by_group, strict=True)}
        return TwoClasses(overall, level), own

    def _posteriors(self, released: Released, *, draws: int) -> tuple[Posterior, list[Posterior]]:
        """What all steps so far say of all rows, and of each group."""
        matrix, second = self.blocks[0].matrix, released.aimed

        def read(sums: Floats, part: float, block: int, copy: int) -> Posterior:
            """From sums with `part` of the noise of one, and from the second step."""
            matrices: list[npt.NDArray[Any]] = [matrix / part]
            values = [sums / part]
            if second is not None:
                rows, size = slice(AIMED * copy, AIMED * (copy + 1)), 2 * CELLS
                aimed = second.layout.blocks[block].matrix
                matrices.append(aimed[rows, size * copy : size * (copy + 1)])
                values.append(second.sums[block][0][rows])
            solver, first = Solver.of(np.vstack(matrices)), Solver.of(matrices[0])
            released_all = np.concatenate(values)
            return two_classes(self.grid, solver, released_all, released.noise, draws, first)

        sums = released.sums[0][0]
        if self.groups is None:
            return read(sums, 1.0, 0, 0), []
        parts = released.sums[1]
        # All rows were counted twice: at once, and as the sum of their groups with more noise.
        k = len(parts)
        both = (k * sums + parts.sum(axis=0)) / (k + 1)
        overall = read(both, math.sqrt(k / (k + 1.0)), 0, 0)
        return overall, [read(values, 1.0, 1, copy) for copy, values in enumerate(parts)]
