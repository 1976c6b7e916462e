"""Evaluation of models of two classes: the blocks of both steps, and the figures from them.

AUC and mean log loss are, to first order, sums over the rows of what each row does to them. Once
the first step has shown roughly where the rows lie, one sum for each of both says more about it
than many sums over all scales. These two are the second step; of two models on the same rows, the
sums of the paired differences are.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from ..noisy_sums import Block, Floats, Ints, Later, Released
from .evaluation_report import Cost
from .figure import Figure, as_json
from .figures import TwoClasses, auc, influence
from .grid import CELLS, UNIT, Grid, counts_matrix, value_cells, value_points
from .kinds import Kind, scaled
from .posterior import DRAWS, Posterior, Solver, two_classes
from .rows import Groups, Judged
from .values import Values, value_matrix

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

    def _each(self, released: Released, level: float) -> list[TwoClasses]:
        return [TwoClasses(one, level) for one in self._posteriors(released, draws=DRAWS)]

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


_SCORES, _GAPS, _JOINT = 0.18, 0.1, 0.09  # of the squared norm of a row; scores twice
_AIMED_AUC, _AIMED_LOSS = 0.25, 0.2  # the same, in the second step
_UNIT = UNIT << 4  # a sum of small differences needs a finer unit than counts
_FINE = 1 << 12  # cells of a difference of the log loss in the second step
_RANKS = 0.4  # difference of the ranks of a row beyond which it counts as this
_FAR = 6.0  # differences of the log loss count up to so many of their root mean square
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

    Examples:
        >>> deeper = xgb.train(params | {"max_depth": 4}, data, 5)
        >>> both = xgb_dp.evaluate([model, deeper], data, epsilon=0.5, delta=1e-6)
        >>> difference = both.auc_difference
        >>> difference.low <= difference.value <= difference.high
        True
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
        figures = as_json(self.figures())
        return json.dumps({"figures": figures, "statement": self.statement()}, indent=2)

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True, eq=False)
class Pair(Kind):
    """What is released about two models, and how it is read.

    The blocks are scores of each model, differences of the loss, and joint counts of both scores.
    """

    grids: tuple[Grid, Grid]  # cells of the score of each
    groups: Groups | None = None

    @classmethod
    def of(cls, first: Judged, second: Judged) -> Pair:
        """The blocks for two models. No row is looked at."""
        return cls((Grid.within(*first.margins), Grid.within(*second.margins)))

    @property
    def later(self) -> Later:
        """Room of the second step."""
        return Later(math.floor(_UNIT**2 * _AIMED_AUC) + math.floor(_UNIT**2 * _AIMED_LOSS), 2)

    def _matrices(self) -> list[Ints]:
        finer = _UNIT // UNIT
        return [
            *(scaled(finer * counts_matrix(grid), _SCORES) for grid in self.grids),
            scaled(finer * value_matrix(_POWER), _GAPS),
            scaled(_UNIT * np.eye(2 * _COARSE**2, dtype=np.int64), _JOINT),
        ]

    def _cells(self, predictions: tuple[Floats, ...], labels: Floats) -> list[Ints]:
        positive = (labels > 0.5).astype(np.int64)
        scores = self._scores(predictions)
        one, other = (score // (CELLS // _COARSE) for score in scores)
        return [
            *(score + CELLS * positive for score in scores),
            value_cells(_gap(predictions, labels), _POWER),
            (one * _COARSE + other) + _COARSE**2 * positive,
        ]

    def later_cells(self, predictions: tuple[Floats, ...], labels: Floats) -> list[Ints]:
        """The cell of each row in each block of the second step."""
        one, other = self._scores(predictions)
        joint = ((labels > 0.5).astype(np.int64) * CELLS + one) * CELLS + other
        return [joint, value_cells(_gap(predictions, labels), _POWER, _FINE)]

    def _scores(self, margins: tuple[Floats, ...]) -> list[Ints]:
        return [grid.cell(m) for grid, m in zip(self.grids, margins, strict=True)]

    def aimed(self, released: Released) -> tuple[Block, ...]:
        """The blocks of the second step, from what the first has released."""
        pulls, limit = _pulls(*self._views(released, draws=1))
        ranks = math.sqrt(_AIMED_AUC) * np.clip(pulls.ravel() / limit, -1.0, 1.0)
        values = self._losses(released, 0.95)
        fine = _LARGEST * value_points(_POWER, _FINE)
        loss = math.sqrt(_AIMED_LOSS) * np.clip(fine / _limit(values), -1.0, 1.0)
        return tuple(
            Block(np.trunc(_UNIT * whole).astype(np.int64)[np.newaxis]) for whole in (ranks, loss)
        )

    def _views(self, released: Released, draws: int) -> tuple[Posterior, ...]:
        return tuple(
            two_classes(grid, Solver.of(block.matrix), sums[0], released.noise, draws)
            for grid, block, sums in zip(self.grids, self.blocks, released.sums, strict=False)
        )

    def _losses(self, released: Released, level: float) -> Values:
        """Differences of the log loss as the first step tells them."""
        solver, sums = Solver.of(self.blocks[2].matrix), released.sums[2][0]
        return Values.of(solver, sums, released.noise, 0.0, _LARGEST, level, _POWER)

    def report(
        self, released: Released, cost: Cost, level: float, model: Any = None
    ) -> ComparisonReport:
        """Figures of both models and of their differences."""
        second = released.aimed
        assert second is not None
        ranks, losses = (float(sums[0, 0]) for sums in second.sums)
        posteriors = self._views(released, DRAWS)
        first, other = (TwoClasses(one, level) for one in posteriors)
        joint = released.sums[3][0] / float(self.blocks[3].matrix[0, 0])
        scale = _pulls(*posteriors)[1] / (_UNIT * math.sqrt(_AIMED_AUC))
        gap = _auc_difference(posteriors, joint, scale * ranks, scale * second.noise, level)
        values = self._losses(released, level)
        rows = max(float(values.counts.sum()), 1.0)
        scale = _limit(values) / (_UNIT * math.sqrt(_AIMED_LOSS) * rows)
        value, noise = scale * losses, scale * second.noise
        spread = math.hypot(noise, math.sqrt(_mean_square(values) / rows))
        loss = Figure.around(value, spread, noise, level, low=-_LARGEST, high=_LARGEST)
        return ComparisonReport(first, other, gap, loss, cost, level)


def _gap(margins: tuple[Floats, ...], labels: Floats) -> Floats:
    """Difference of the log losses of each row, in units of the largest that counts."""
    sign = 1.0 - 2.0 * (labels > 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        loss = [np.logaddexp(0.0, sign * np.nan_to_num(m)) for m in margins]
        return np.asarray((loss[0] - loss[1]) / _LARGEST)


def _mean_square(values: Values) -> float:
    """Of the differences; what noise may have taken from it is added."""
    drawn = float(np.std(values.mean_of(values.draws, 2)))
    return max(float(values.mean_of(values.counts, 2)), 0.0) + drawn


def _limit(values: Values) -> float:
    """Difference of the log loss up to which the second step counts it."""
    return min(_FAR * math.sqrt(_mean_square(values)), _LARGEST)


def _pulls(first: Posterior, second: Posterior) -> tuple[Floats, float]:
    """What a row does to the difference of the areas, (2, cells, cells), and its limit."""
    (one, n, m), (other, _, _) = (_influence(one) for one in (first, second))
    pulls = one[:, :, np.newaxis] - other[:, np.newaxis, :]
    return pulls, _RANKS / min(n, m)


def _influence(posterior: Posterior) -> tuple[Floats, float, float]:
    """What one more row in each cell does to the area, (2, cells); and rows of both classes."""
    neg, pos = posterior.by_class
    n, m = max(float(neg.sum()), 1.0), max(float(pos.sum()), 1.0)
    return influence(neg, pos, n, m), n, m


def _auc_difference(
    posteriors: tuple[Posterior, ...], joint: Floats, moved: float, noise: float, level: float
) -> Figure:
    """The difference of the areas, whose sampling noise the joint counts tell."""
    areas, pulls, variances = [], [], []
    shape = (2, _COARSE, CELLS // _COARSE)
    for one in posteriors:
        fine, weight = _influence(one)[0], one.by_class
        areas.append(float(auc(*weight)))
        rows = weight.reshape(shape).sum(axis=-1)
        pull = (fine * weight).reshape(shape).sum(axis=-1) / rows
        pulls.append(pull)
        # Variances one by one, from each model's own counts; the covariance from the joint ones.
        variances.append(float((rows * pull**2).sum()))
    counts = joint.reshape(2, _COARSE, _COARSE)
    both = float((counts * pulls[0][:, :, np.newaxis] * pulls[1][:, np.newaxis, :]).sum())
    both = min(max(both, 0.0), math.sqrt(variances[0] * variances[1]))
    sampling = max(variances[0] + variances[1] - 2.0 * both, 0.0)
    value, spread = areas[0] - areas[1] + moved, math.sqrt(noise**2 + sampling)
    return Figure.around(value, spread, noise, level, low=-1.0, high=1.0)
