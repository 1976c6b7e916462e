"""Evaluation of a model of several classes: confusion, and one class against the rest.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from .binary import scaled
from .figure import Figure
from .figures import TwoClasses
from .grid import CELLS, UNIT, Grid, counts_matrix
from .posterior import Solver, two_classes
from .rows import Groups, Judged
from .table import Block, Released
from .values import Values, value_cells, value_matrix

__all__ = ["Several", "SeveralClasses"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_CLASSES = 64
_CONFUSION, _LOSS, _TOP, _EACH = 0.2, 0.2, 0.2, 0.4  # of the squared norm of a row
_LARGEST_LOSS = 8.0


@dataclass(frozen=True, eq=False)
class SeveralClasses:
    """What the released counts say about a model of several classes, on one set of rows.

    Attributes:
        classes: Number of classes.
        counts: Rows by true class and by the class that is predicted, (classes, classes).
        losses: Log loss of the rows in nats; beyond 8 it counts as 8.
        top: The most probable class: its probability as a score, and whether it is right.
        one_against_rest: Figures of each class against all others; the score is its probability.
        noise: Standard deviation of the noise in each of `counts`.
        level: Probability with which each interval covers.

    Examples:
        >>> three = xgb.DMatrix(table, (3 * table[:, 0]).astype(int))
        >>> several = {**params, "objective": "multi:softprob", "num_class": 3}
        >>> trained = xgb.train(several, three, 5)
        >>> report = xgb_dp.evaluate(trained, three, epsilon=0.5, delta=1e-6)
        >>> len(report.overall.confusion())
        3
    """

    classes: int
    counts: Floats
    losses: Values
    top: TwoClasses
    one_against_rest: tuple[TwoClasses, ...]
    noise: float
    level: float

    @property
    def log_loss(self) -> Figure:
        """Mean log loss in nats."""
        return self.losses.mean

    @property
    def accuracy(self) -> Figure:
        """Share of rows whose most probable class is the right one."""
        return self.top.base_rate

    @property
    def calibration_error(self) -> Figure:
        """Expected calibration error of the probability of the most probable class."""
        return self.top.calibration_error

    @cached_property
    def auc(self) -> Figure:
        """Mean area under the ROC curves of each class against the rest.

        The intervals of the classes are not independent; that of the mean is the mean of theirs,
        which is never too short.
        """
        found = [view.auc for view in self.one_against_rest]
        value, low, high = (
            float(np.mean([getattr(f, name) for f in found])) for name in ("value", "low", "high")
        )
        return Figure(value, low, high, float(np.mean([f.noise for f in found])))

    def confusion(self) -> list[list[Figure]]:
        """Numbers of rows by true class (first index) and predicted class."""
        wide = float(norm.ppf(0.5 + 0.5 * self.level))
        out = []
        for row in self.counts:
            line = []
            for count in row:
                half = wide * math.sqrt(self.noise**2 + max(float(count), 0.0))
                value = max(float(count), 0.0)
                high = max(float(count) + half, value)
                line.append(Figure(value, max(float(count) - half, 0.0), high, self.noise))
            out.append(line)
        return out

    def figures(self) -> dict[str, Figure]:
        """The plain figures by name."""
        out = {
            "rows": self.top.rows,
            "accuracy": self.accuracy,
            "log_loss": self.log_loss,
            "auc": self.auc,
            "calibration_error": self.calibration_error,
        }
        for number, view in enumerate(self.one_against_rest):
            out[f"auc of {number}"] = view.auc
            out[f"base_rate of {number}"] = view.base_rate
        return out


@dataclass(frozen=True, eq=False)
class Several:
    """What is released about several classes, and how it is read.

    Attributes:
        classes: Number of classes.
        groups: Declared groups.
        blocks: The table: confusion, loss, top class, and each class against the rest; for all
            rows, and for each group.
    """

    classes: int
    groups: Groups | None
    blocks: tuple[Block, ...]
    later: ClassVar[None] = None  # no second step

    @classmethod
    def of(cls, model: Judged, groups: Groups | None) -> Several:
        """The blocks for a model. No row is looked at."""
        k = model.classes
        scores = counts_matrix(Grid())
        unit = UNIT * np.eye(k * k, dtype=np.int64)

        def blocks(name: str, share: float, copies: int) -> list[Block]:
            return [
                Block(f"{name} confusion", scaled(unit, share * _CONFUSION), copies),
                Block(f"{name} loss", scaled(value_matrix(), share * _LOSS), copies),
                Block(f"{name} top", scaled(scores, share * _TOP), copies),
                *(
                    Block(f"{name} class {i}", scaled(scores, share * _EACH / k), copies)
                    for i in range(k)
                ),
            ]

        if groups is None:
            return cls(k, None, tuple(blocks("all", 1.0, 1)))
        copies = len(groups.names)
        return cls(k, groups, (*blocks("all", 0.5, 1), *blocks("groups", 0.5, copies)))

    def cells(self, probabilities: Floats, labels: Floats, groups: Ints | None) -> list[Ints]:
        """The cell of each row in each block."""
        truth, grid = labels.astype(np.int64), Grid()
        p = np.nan_to_num(probabilities, nan=0.0)
        n, k = len(truth), self.classes
        with np.errstate(divide="ignore"):
            logits = np.log(p) - np.log1p(-np.minimum(p, 1.0))
            loss = -np.log(p[np.arange(n), truth]) if n else np.zeros(0)
        told = p.argmax(axis=1) if n else np.zeros(0, dtype=np.int64)
        top = logits[np.arange(n), told] if n else np.zeros(0)
        own = [
            truth * k + told,
            value_cells(2.0 * loss / _LARGEST_LOSS - 1.0),
            grid.cell(top) + CELLS * (told == truth),
            *(grid.cell(logits[:, i]) + CELLS * (truth == i) for i in range(k)),
        ]
        if groups is None:
            return own
        sizes = [block.matrix.shape[1] for block in self.blocks[: len(own)]]
        return own + [c + size * groups for c, size in zip(own, sizes, strict=True)]

    def views(
        self, released: Released, level: float
    ) -> tuple[SeveralClasses, Mapping[str, SeveralClasses]]:
        """Figures of all rows, and of each group."""
        per = 3 + self.classes
        solvers = [Solver.of(block.matrix) for block in self.blocks[1:4]]
        half = _LARGEST_LOSS / 2.0

        def view(sums: list[Floats], noise: float) -> SeveralClasses:
            unit = float(self.blocks[0].matrix[0, 0])
            grid = Grid()
            each = tuple(
                TwoClasses(two_classes(grid, solvers[2], s, noise), level) for s in sums[3:]
            )
            return SeveralClasses(
                self.classes,
                (sums[0] / unit).reshape(self.classes, self.classes),
                Values.of(solvers[0], sums[1], noise, half, half, level),
                TwoClasses(two_classes(grid, solvers[1], sums[2], noise), level),
                each,
                noise / unit,
                level,
            )

        if self.groups is None:
            return view([s[0] for s in released.sums], released.noise), {}
        copies = len(self.groups.names)
        all_rows, parts = released.sums[:per], released.sums[per:]
        both = [
            (copies * a[0] + b.sum(axis=0)) / (copies + 1)
            for a, b in zip(all_rows, parts, strict=True)
        ]
        overall = view(both, released.noise * math.sqrt(copies / (copies + 1.0)))
        by_group = {
            name: view([s[i] for s in parts], released.noise)
            for i, name in enumerate(self.groups.names)
        }
        return overall, by_group
