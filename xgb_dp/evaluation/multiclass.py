"""Evaluation of a model of several classes: confusion, and one class against the rest.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from ..noisy_sums import Floats, Ints
from .figure import Figure
from .figures import TwoClasses
from .grid import CELLS, UNIT, Grid, counts_matrix, value_cells
from .kinds import Kind, scaled
from .posterior import Solver, two_classes
from .rows import Groups, Judged
from .values import Values, value_matrix

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
        each = [astuple(view.auc) for view in self.one_against_rest]
        return Figure(*np.mean(each, axis=0).tolist())

    def confusion(self) -> list[list[Figure]]:
        """Numbers of rows by true class (first index) and predicted class."""
        wide = float(ndtri(0.5 + 0.5 * self.level))

        def figure(count: float) -> Figure:
            value = max(count, 0.0)
            half = wide * math.sqrt(self.noise**2 + value)
            return Figure(value, max(count - half, 0.0), max(count + half, value), self.noise)

        return [[figure(count) for count in row] for row in self.counts.tolist()]

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
class Several(Kind):
    """What is released about several classes, and how it is read.

    The blocks are confusion, loss, top class, and each class against the rest.
    """

    classes: int
    groups: Groups | None

    @classmethod
    def of(cls, model: Judged, groups: Groups | None) -> Several:
        """The blocks for a model. No row is looked at."""
        return cls(model.classes, groups)

    def _matrices(self) -> list[Ints]:
        k, scores = self.classes, counts_matrix(Grid())
        unit = UNIT * np.eye(k * k, dtype=np.int64)
        each = scaled(scores, self.share * _EACH / k)
        return [
            scaled(unit, self.share * _CONFUSION),
            scaled(value_matrix(), self.share * _LOSS),
            scaled(scores, self.share * _TOP),
            *([each] * k),
        ]

    def _cells(self, predictions: Floats, labels: Floats) -> list[Ints]:
        truth, grid = labels.astype(np.int64), Grid()
        p = np.nan_to_num(predictions, nan=0.0)
        n, k = len(truth), self.classes
        with np.errstate(divide="ignore"):
            logits = np.log(p) - np.log1p(-np.minimum(p, 1.0))
            loss = -np.log(p[np.arange(n), truth]) if n else np.zeros(0)
        likeliest = p.argmax(axis=1) if n else np.zeros(0, dtype=np.int64)
        top = logits[np.arange(n), likeliest] if n else np.zeros(0)
        return [
            truth * k + likeliest,
            value_cells(2.0 * loss / _LARGEST_LOSS - 1.0),
            grid.cell(top) + CELLS * (likeliest == truth),
            *(grid.cell(logits[:, i]) + CELLS * (truth == i) for i in range(k)),
        ]

    @cached_property
    def _solvers(self) -> list[Solver]:
        """Of loss, top class, and a class."""
        return [Solver.of(block.matrix) for block in self.blocks[1:4]]

    def _view(self, sums: list[Floats], noise: float, level: float) -> SeveralClasses:
        of_loss, of_top, of_class = self._solvers
        unit, half = float(self.blocks[0].matrix[0, 0]), _LARGEST_LOSS / 2.0
        top, *each = (
            TwoClasses(two_classes(Grid(), solver, counts, noise), level)
            for solver, counts in zip([of_top, *[of_class] * self.classes], sums[2:], strict=True)
        )
        return SeveralClasses(
            self.classes,
            (sums[0] / unit).reshape(self.classes, self.classes),
            Values.of(of_loss, sums[1], noise, half, half, level),
            top,
            tuple(each),
            noise / unit,
            level,
        )
