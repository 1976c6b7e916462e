"""Two models on the same rows: paired differences of AUC and log loss from one noisy table.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from .binary import scaled
from .figures import Figure, TwoClasses, auc
from .grid import CELLS, UNIT, Grid, counts_matrix
from .posterior import Solver, two_classes
from .report import Cost
from .rows import Judged
from .table import Block, Released
from .values import Values, value_cells, value_matrix

__all__ = ["ComparisonReport", "Pair"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SCORES, _LOSS, _JOINT = 0.3, 0.25, 0.15  # of the squared norm of a row; scores twice
_COARSE = 16  # cells of a score in the joint counts
_POWER = 3  # cells of differences are fine around 0: two models say nearly the same
_LARGEST = 2.0  # difference of the log losses of a row, in nats, beyond which it counts as this


@dataclass(frozen=True, eq=False)
class ComparisonReport:
    """Two models of two classes, compared row by row.

    Attributes:
        first: Figures of the first model.
        second: Figures of the second model.
        auc_difference: AUC of the first model less that of the second.
        log_loss_difference: The same of the mean log loss; below 0 where the first is better. The
            difference of a row counts as 2 nats at most.
        cost: What the release cost.
        level: Probability with which each interval covers.
    """

    first: TwoClasses
    second: TwoClasses
    auc_difference: Figure
    log_loss_difference: Figure
    cost: Cost
    level: float

    def statement(self) -> str:
        """What the figures cost, and whom, in prose."""
        return self.cost.statement()

    def figures(self) -> dict[str, Figure]:
        """The differences, and the figures of both models, by name."""
        out = {
            "auc difference": self.auc_difference,
            "log_loss difference": self.log_loss_difference,
        }
        for name, view in (("first", self.first), ("second", self.second)):
            out |= {f"{label} of the {name}": f for label, f in view.figures().items()}
        return out

    def summary(self) -> str:
        """The differences as a table, and the statement."""
        names = {
            "AUC": ("auc", self.auc_difference),
            "log loss": ("log_loss", self.log_loss_difference),
        }
        lines = [f"  {'':<10}{'first':>10}{'second':>10}{'difference':>12}{'low':>10}{'high':>10}"]
        for title, (name, gap) in names.items():
            a, b = (float(getattr(view, name)) for view in (self.first, self.second))
            lines.append(
                f"  {title:<10}{a:>10.4f}{b:>10.4f}{gap.value:>12.4f}{gap.low:>10.4f}"
                f"{gap.high:>10.4f}"
            )
        return "\n".join([*lines, "", self.statement()])

    def to_json(self) -> str:
        """The figures and the statement as JSON text."""
        shown = {
            name: {k: v if math.isfinite(v) else None for k, v in vars(f).items()}
            for name, f in self.figures().items()
        }
        return json.dumps({"figures": shown, "statement": self.statement()}, indent=2)

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True, eq=False)
class Pair:
    """What is released about two models, and how it is read.

    Attributes:
        grids: Cells of the score of each.
        blocks: Scores of each model, differences of the loss, and joint counts of both scores.
    """

    grids: tuple[Grid, Grid]
    blocks: tuple[Block, ...]
    later: ClassVar[None] = None  # no second step

    @classmethod
    def of(cls, first: Judged, second: Judged) -> Pair:
        """The blocks for two models. No row is looked at."""
        grids = Grid.within(*first.margins), Grid.within(*second.margins)
        joint = UNIT * np.eye(2 * _COARSE**2, dtype=np.int64)
        blocks = (
            *(
                Block(f"scores {i + 1}", scaled(counts_matrix(g), _SCORES))
                for i, g in enumerate(grids)
            ),
            Block("loss difference", scaled(value_matrix(_POWER), _LOSS)),
            Block("joint", scaled(joint, _JOINT)),
        )
        return cls(grids, blocks)

    def cells(self, margins: tuple[Floats, ...], labels: Floats) -> list[Ints]:
        """The cell of each row in each block."""
        positive = (labels > 0.5).astype(np.int64)
        sign = 1.0 - 2.0 * positive
        own = [grid.cell(m) for grid, m in zip(self.grids, margins, strict=True)]
        with np.errstate(over="ignore", invalid="ignore"):
            loss = [np.logaddexp(0.0, sign * np.nan_to_num(m)) for m in margins]
            gap = (loss[0] - loss[1]) / _LARGEST
        coarse = [c // (CELLS // _COARSE) for c in own]
        return [
            *(c + CELLS * positive for c in own),
            value_cells(gap, _POWER),
            (coarse[0] * _COARSE + coarse[1]) + _COARSE**2 * positive,
        ]

    def report(self, released: Released, cost: Cost, level: float) -> ComparisonReport:
        """Figures of both models and of their differences."""
        noise = released.noise
        views = tuple(
            TwoClasses(two_classes(grid, Solver.of(block.matrix), sums[0], noise), level)
            for grid, block, sums in zip(self.grids, self.blocks, released.sums, strict=False)
        )
        solver = Solver.of(self.blocks[2].matrix)
        loss = Values.of(solver, released.sums[2][0], noise, 0.0, _LARGEST, level, _POWER)
        joint = released.sums[3][0] / float(self.blocks[3].matrix[0, 0])
        gap = self._auc_difference(views[0], views[1], joint, level)
        return ComparisonReport(views[0], views[1], gap, loss.mean, cost, level)

    def _auc_difference(
        self, first: TwoClasses, second: TwoClasses, joint: Floats, level: float
    ) -> Figure:
        """The difference of the areas, whose sampling noise the joint counts tell."""
        areas, noises, pulls = [], [], []
        for view in (first, second):
            neg, pos = view.negatives, view.positives
            drawn = view.posterior.draws
            areas.append(float(auc(neg, pos)))
            noises.append(float(np.std(auc(drawn[:, :CELLS], drawn[:, CELLS:]))))
            pulls.append(_influence(view))
        counts = joint.reshape(2, _COARSE, _COARSE)
        # Variances one by one, from each model's own counts; the covariance from the joint ones.
        own = [
            float(_coarse_counts(view).ravel() @ pull.ravel() ** 2)
            for view, pull in zip((first, second), pulls, strict=True)
        ]
        both = float((counts * pulls[0][:, :, np.newaxis] * pulls[1][:, np.newaxis, :]).sum())
        most = math.sqrt(max(own[0], 0.0) * max(own[1], 0.0))
        sampling = max(own[0] + own[1] - 2.0 * min(max(both, 0.0), most), 0.0)
        noise = math.hypot(*noises)
        wide = float(norm.ppf(0.5 + 0.5 * level)) * math.sqrt(noise**2 + sampling)
        value = areas[0] - areas[1]
        return Figure(value, max(value - wide, -1.0), min(value + wide, 1.0), noise)


def _coarse_counts(view: TwoClasses) -> Floats:
    """Rows to be expected in the coarse cells, negatives and positives."""
    return view.posterior.population.reshape(2, _COARSE, CELLS // _COARSE).sum(axis=-1)


def _influence(view: TwoClasses) -> Floats:
    """What one more row in each coarse cell does to the area, of both classes; (2, cells)."""
    neg, pos = (np.maximum(c, 0.0) for c in (view.negatives, view.positives))
    n, m = max(float(neg.sum()), 1.0), max(float(pos.sum()), 1.0)
    area = float(view.auc)
    below = (np.cumsum(neg) - 0.5 * neg) / n
    above = 1.0 - (np.cumsum(pos) - 0.5 * pos) / m
    fine = np.stack([(above - area) / n, (below - area) / m])
    weight = view.posterior.population.reshape(2, CELLS) + 1e-9
    shape = (2, _COARSE, CELLS // _COARSE)
    weighted = (fine * weight).reshape(shape).sum(axis=-1)
    return np.asarray(weighted / weight.reshape(shape).sum(axis=-1))
