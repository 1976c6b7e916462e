"""Evaluation of a model of two classes: the blocks of both steps, and the figures from them.

AUC and mean log loss are, to first order, sums over the rows of what each row does to them. Once
the first step has shown roughly where the rows lie, one sum for each of both says more about it
than many sums over all scales. These two are the second step.

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

from ..noisy_sums import Block, Floats, Ints, Later, Released
from .by_group import Groups
from .figures import TwoClasses, influence
from .grid import CELLS, UNIT, Grid, counts_matrix
from .kinds import Kind, scaled
from .posterior import DRAWS, Posterior, Solver, two_classes
from .rows import Judged

_AUC, _LOSS = 0.25, 0.1  # of the squared norm of what a row adds in both steps
_AIMED_SHARE = _AUC + _LOSS
_AIMED = 2  # sums of the second step
_FINEST, _TRIED = 50.0, 40
_WIDER = 3.0  # than what is best if the first step were exact


@dataclass(frozen=True, eq=False)
class Binary(Kind):
    """What is released about two classes, and how it is read."""

    grid: Grid
    groups: Groups | None

    @classmethod
    def of(cls, model: Judged, groups: Groups | None) -> Binary:
        """The blocks for a model. No row is looked at."""
        return cls(Grid.within(*model.margins), groups)

    @property
    def later(self) -> Later:
        """Room of the second step."""
        sets = 1 if self.groups is None else 1 + len(self.groups.names)
        return Later(math.floor(UNIT**2 * _AIMED_SHARE), _AIMED * sets)

    def _matrices(self) -> list[Ints]:
        share = self.share - self.share * _AIMED_SHARE
        return [scaled(counts_matrix(self.grid), share)]

    def _cells(self, predictions: Floats, labels: Floats) -> list[Ints]:
        return [self.grid.cell(predictions) + CELLS * (labels > 0.5).astype(np.int64)]

    def aimed(self, released: Released) -> tuple[Block, ...]:
        """The blocks of the second step, from what the first has released."""
        share, noise = self.share * _AIMED_SHARE, released.noise / UNIT
        overall, *by_group = (
            _aimed_matrix(one, noise, share) for one in self._posteriors(released, draws=1)
        )
        if not by_group:
            return (Block(overall),)
        return Block(overall), Block(np.asarray(block_diag(*by_group), dtype=np.int64))

    def views(
        self, released: Released, level: float
    ) -> tuple[TwoClasses, Mapping[str, TwoClasses]]:
        """Figures of all rows, and of each group."""
        posteriors = self._posteriors(released, draws=DRAWS)
        overall, *by_group = (TwoClasses(posterior, level) for posterior in posteriors)
        names = () if self.groups is None else self.groups.names
        return overall, dict(zip(names, by_group, strict=True))

    def _posteriors(self, released: Released, *, draws: int) -> list[Posterior]:
        """What all steps so far say of all rows, and of each group."""
        matrix, size, posteriors = self.blocks[0].matrix, 2 * CELLS, []
        for number, ([sums], part) in enumerate(self._sets(released)):
            first = Solver.of(matrix / part)  # of sums with the whole noise
            matrices: list[npt.NDArray[Any]] = [matrix / part]
            values = [sums / part]
            if released.aimed is not None:
                block, copy = min(number, 1), max(number - 1, 0)
                rows = slice(_AIMED * copy, _AIMED * (copy + 1))
                aimed = released.aimed.layout.blocks[block].matrix
                matrices.append(aimed[rows, size * copy : size * (copy + 1)])
                values.append(released.aimed.sums[block][0][rows])
            solver, seen = Solver.of(np.vstack(matrices)), np.concatenate(values)
            posteriors.append(two_classes(self.grid, solver, seen, released.noise, draws, first))
        return posteriors


def _aimed_matrix(posterior: Posterior, noise: float, share: float) -> Ints:
    """What a row in each cell adds in the second step: (sums, 2 * CELLS), negatives first."""
    neg, pos = posterior.by_class
    rows, logits = posterior.by_class.ravel(), posterior.grid.centres
    pulls = influence(neg, pos, float(neg.sum()), float(pos.sum())).ravel()
    loss = np.concatenate([np.logaddexp(0.0, logits), np.logaddexp(0.0, -logits)])
    loss -= float(loss @ rows / rows.sum())
    whole = np.stack(
        [
            math.sqrt(part) * _clipped(pull, rows, noise / math.sqrt(share * part))
            for pull, part in ((pulls, _AUC / _AIMED_SHARE), (loss, _LOSS / _AIMED_SHARE))
        ]
    )
    largest = math.sqrt(float((whole**2).sum(axis=0).max()))
    if largest > 0.0:
        whole *= UNIT * math.sqrt(share) / largest
    return np.trunc(whole).astype(np.int64)  # towards 0, so that no norm grows


def _clipped(pull: Floats, rows: Floats, noise: float) -> Floats:
    """What rows pull, in units of a limit beyond which they count as that: in [-1, 1].

    A low limit leaves little noise and says nothing of the rows beyond it. The best one is looked
    for as if the rows of a cell were Poisson around what is expected; what is really known of the
    rare ones is less, so a wider one is taken.
    """
    most = float(np.abs(pull).max())
    if most <= 0.0:
        return np.zeros_like(pull)

    def precision(limit: float) -> float:
        clipped = np.clip(pull / limit, -1.0, 1.0)
        return float((pull * clipped) @ rows) ** 2 / (float(clipped**2 @ rows) + noise**2)

    best = max(np.geomspace(most / _FINEST, most, _TRIED).tolist(), key=precision)
    return np.clip(pull / min(_WIDER * best, most), -1.0, 1.0)
