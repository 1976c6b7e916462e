"""Evaluation of models of two or more classes: what is released, and the figures computed from it.

AUC and mean log loss are, to first order, sums over the rows of each row's influence on them. Once
the first step has shown roughly where the rows lie, one sum for each of the two says more about it
than many sums over all scales. These two sums are the second step. For two models on the same rows,
the second step releases the sums of the paired differences. A model of several classes is evaluated
by its confusions, and by one class against the rest.

Figures are post-processing of released counts and cost nothing. Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag
from scipy.special import expit, gammaincinv, ndtri

from ..noisy_sums import Block, Floats, Ints, Later, NoisySums
from .counts import (
    BINS,
    CELLS,
    DRAWS,
    UNIT,
    Posterior,
    ScoreGrid,
    Solver,
    counts_matrix,
    two_classes,
    value_cells,
    value_points,
)
from .figures import Figure, Values, as_json, rising, value_matrix
from .report import Cost
from .rows import Groups, Judged, ModelKind, scaled

Losses = Callable[[Floats, Floats], tuple[npt.ArrayLike, npt.ArrayLike]]
Of = Callable[[Floats, Floats], Floats]

_LEAST = 1e-9
_PLAIN = (
    "rows", "base_rate", "mean_prediction", "auc", "log_loss", "brier", "calibration_error", "ks",
    "accuracy", "precision", "recall", "selection_rate",
)  # fmt: skip
_CALIBRATION_WIDENING = (
    1.25  # than drawn, of calibration: the draws take the smoothness of the curve as known
)


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.asarray(a / np.where(np.abs(b) < _LEAST, _LEAST, b))


def auc(neg: Floats, pos: Floats) -> Floats:
    """Area under the ROC curve; ties count half."""
    below = np.cumsum(neg, axis=-1) - 0.5 * neg
    return _ratio((pos * below).sum(axis=-1), pos.sum(axis=-1) * neg.sum(axis=-1))


def influence(neg: Floats, pos: Floats, n: float, m: float) -> Floats:
    """What one more row in each cell does to the area: (2, cells), negatives first."""
    area = float(auc(neg, pos))
    below = (np.cumsum(neg) - 0.5 * neg) / n
    above = 1.0 - (np.cumsum(pos) - 0.5 * pos) / m
    return np.stack([(above - area) / n, (below - area) / m])


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """What the released counts say about a model of two classes, on one set of rows.

    Attributes:
        posterior: Of the counts of negatives and positives in the cells of the score.
        level: Probability with which each interval covers.

    Examples:
        >>> at = judged.threshold(cost={"fp": 1, "fn": 4})
        >>> recall = judged.overall.recall(at)
        >>> recall.low <= float(recall) <= recall.high
        True
    """

    posterior: Posterior
    level: float = 0.95

    @property
    def grid(self) -> ScoreGrid:
        """Cells of the score."""
        return self.posterior.grid

    @property
    def negatives(self) -> Floats:
        """Estimated number of negative rows in each cell."""
        return self.posterior.mean[:CELLS]

    @property
    def positives(self) -> Floats:
        """Estimated number of positive rows in each cell."""
        return self.posterior.mean[CELLS:]

    @cached_property
    def _sampled(self) -> Floats:
        return self.posterior.sampled()

    def figure(self, of: Of, low: float = 0.0, high: float = 1.0) -> Figure:
        """Any smooth function of the counts.

        Args:
            of: Function of the counts of negatives and positives, of shape (..., CELLS).
            low: Lowest value that it has.
            high: Highest value that it has.
        """
        value = float(of(self.negatives, self.positives))
        spread, noise = (
            float(np.std(of(drawn[:, :CELLS], drawn[:, CELLS:])))
            for drawn in (self._sampled, self.posterior.draws)
        )
        return Figure.around(value, spread, noise, self.level, low=low, high=high)

    # --- figures -------------------------------------------------------------------------------

    @property
    def rows(self) -> Figure:
        """Number of rows, or persons."""
        return self.figure(lambda neg, pos: (neg + pos).sum(axis=-1), high=np.inf)

    @property
    def base_rate(self) -> Figure:
        """Share of positive rows.

        It is that of the released sums alone, which need no prior; see :meth:`Figure.share`.
        """
        part, rows = map(float, self.posterior.totals)
        return Figure.share(part, rows, self.posterior.totals_noise, self.level)

    @property
    def mean_prediction(self) -> Figure:
        """Mean predicted probability."""
        return self.mean(lambda p, logit: (p, p))

    @property
    def auc(self) -> Figure:
        """Area under the ROC curve."""
        return self.figure(auc)

    @property
    def log_loss(self) -> Figure:
        """Mean log loss in nats; logits beyond 8 count as 8."""
        return self.mean(
            lambda p, logit: (np.logaddexp(0.0, logit), np.logaddexp(0.0, -logit)), np.inf
        )

    @property
    def brier(self) -> Figure:
        """Mean squared error of the predicted probability."""
        return self.mean(lambda p, logit: (p**2, (1.0 - p) ** 2))

    def mean(self, losses: Losses, high: float = 1.0) -> Figure:
        """Mean over the rows of a loss.

        Args:
            losses: From the probability and the logit of each cell, the loss of a negative row and
                that of a positive one.
            high: Highest value that it has.
        """
        both = losses(self.grid.probability, self.grid.centres)
        of_neg, of_pos = (np.asarray(loss, dtype=np.float64) for loss in both)
        return self.figure(
            lambda neg, pos: _ratio(neg @ of_neg + pos @ of_pos, (neg + pos).sum(axis=-1)),
            high=high,
        )

    @cached_property
    def calibration_error(self) -> Figure:
        """Expected calibration error over ten bins of the probability.

        The mean, over the rows, of the distance between the mean prediction and the share of
        positives in their bin. Noise alone makes every estimate of it too large; the one given here
        has been freed of the noise of the release and of sampling. The interval begins at 0 where
        the counts do not refute that the model is calibrated.
        """
        density = self.posterior.density
        share = expit(self.grid.centres + self.posterior.curve)
        residual = _by_bin(density * (share - self.grid.probability), self.grid.bins)
        drawn = _ratio(np.abs(residual).sum(axis=-1), density.sum(axis=-1))
        tail = 0.5 - 0.5 * self.level
        low, value, high = (float(np.quantile(drawn, q)) for q in (tail, 0.5, 1.0 - tail))
        low, high = (
            max(value - _CALIBRATION_WIDENING * (value - low), 0.0),
            value + _CALIBRATION_WIDENING * (high - value),
        )
        if self._may_be_calibrated():
            low = 0.0
        noise = self._residual(self.posterior.draws)
        total = max(float(self.posterior.mean.sum()), 1.0)
        spread = float(np.std(np.abs(noise).sum(axis=-1))) / total
        return Figure(value, low, high, spread)

    def _residual(self, counts: Floats) -> Floats:
        """Positives less what is predicted, in each bin."""
        p = self.grid.probability
        return _by_bin(counts[..., CELLS:] * (1.0 - p) - counts[..., :CELLS] * p, self.grid.bins)

    def _may_be_calibrated(self) -> bool:
        """Whether the residuals of all bins may be noise; a chi-squared test at the level."""
        drawn, seen = self._residual(self._sampled), self._residual(self.posterior.mean)
        spread = np.cov(drawn.T) + np.eye(BINS) * 1e-6
        distance = float(seen @ np.linalg.solve(spread, seen))
        return bool(distance <= 2.0 * gammaincinv(0.5 * BINS, self.level))

    @property
    def ks(self) -> Figure:
        """Largest distance between the distributions of the scores of both classes."""

        def of(neg: Floats, pos: Floats) -> Floats:
            below = _ratio(np.cumsum(neg, axis=-1), neg.sum(axis=-1, keepdims=True))
            under = _ratio(np.cumsum(pos, axis=-1), pos.sum(axis=-1, keepdims=True))
            return np.asarray((below - under).max(axis=-1))

        return self.figure(of)

    def figures(self) -> dict[str, Figure]:
        """The plain figures by name; those that need a threshold at 0.5."""
        values = {name: getattr(self, name) for name in _PLAIN}
        return {name: v if isinstance(v, Figure) else v() for name, v in values.items()}

    # --- at a threshold ------------------------------------------------------------------------

    def above(self, threshold: float) -> Floats:
        """Part of each cell whose probability is at least a threshold, 0 to 1."""
        if threshold <= 0.0 or threshold >= 1.0:
            return np.full(CELLS, float(threshold <= 0.0))
        logit, ends = float(np.log(threshold) - np.log1p(-threshold)), self.grid.ends
        return np.clip((ends[1:] - logit) / np.diff(ends), 0.0, 1.0)

    def confusion(self, threshold: float = 0.5) -> dict[str, Figure]:
        """Numbers of true and false positives and negatives: "tp", "fp", "tn", "fn".

        Args:
            threshold: Probability from which on a row counts as positive.
        """
        up = self.above(threshold)
        counts: dict[str, Of] = {
            "tp": lambda neg, pos: pos @ up,
            "fp": lambda neg, pos: neg @ up,
            "tn": lambda neg, pos: neg @ (1.0 - up),
            "fn": lambda neg, pos: pos @ (1.0 - up),
        }
        return {name: self.figure(of, high=np.inf) for name, of in counts.items()}

    def accuracy(self, threshold: float = 0.5) -> Figure:
        """Share of rows that are told rightly."""
        up = self.above(threshold)
        return self.figure(
            lambda neg, pos: _ratio(neg @ (1.0 - up) + pos @ up, (neg + pos).sum(axis=-1))
        )

    def precision(self, threshold: float = 0.5) -> Figure:
        """Share of positives among the rows from a threshold on."""
        up = self.above(threshold)
        return self.figure(lambda neg, pos: _ratio(pos @ up, (neg + pos) @ up))

    def recall(self, threshold: float = 0.5) -> Figure:
        """Share of positive rows that lie from a threshold on."""
        up = self.above(threshold)
        return self.figure(lambda neg, pos: _ratio(pos @ up, pos.sum(axis=-1)))

    def selection_rate(self, threshold: float = 0.5) -> Figure:
        """Share of rows that lie from a threshold on."""
        up = self.above(threshold)
        return self.figure(lambda neg, pos: _ratio((neg + pos) @ up, (neg + pos).sum(axis=-1)))

    # --- curves --------------------------------------------------------------------------------

    def roc(self) -> tuple[Floats, Floats, Floats]:
        """The ROC curve: rates of false and of true positives, and the threshold of each point."""
        return *self._rates, self._thresholds

    @cached_property
    def _rates(self) -> tuple[Floats, Floats]:
        """Shares of negatives and of positives above each threshold."""
        neg, pos = (_distribution(counts) for counts in (self.negatives, self.positives))
        return 1.0 - neg, 1.0 - pos

    def precision_recall(self) -> tuple[Floats, Floats, Floats]:
        """Precision and recall, and the threshold of each point."""
        (false, true), base = self._rates, float(self.base_rate)
        hits, errors = base * true, (1.0 - base) * false
        precision = np.where(hits + errors > _LEAST, hits / np.maximum(hits + errors, _LEAST), 1.0)
        return precision, true, self._thresholds

    def lift(self) -> tuple[Floats, Floats]:
        """Share of the rows with the highest scores, and how many times the base rate they have."""
        (false, true), base = self._rates, float(self.base_rate)
        chosen = base * true + (1.0 - base) * false
        lift = np.where(chosen > _LEAST, true / np.maximum(chosen, _LEAST), np.nan)
        return chosen, np.asarray(lift)

    def calibration_curve(self) -> list[tuple[float, Figure, float]]:
        """Mean prediction, share of positives and number of rows in each of ten bins.

        Bins in which hardly a row is to be expected are left out: fewer than one, or than the
        noise of their number.
        """
        p, bins = self.grid.probability, self.grid.bins
        out = []
        for number in range(BINS):
            inside = (bins == number).astype(np.float64)
            count = self.figure(partial(_rows_in, inside), high=np.inf)
            if count.value < max(1.0, 2.0 * count.noise):
                continue
            rate = self.figure(partial(_rate_in, inside))
            mean = float(((self.negatives + self.positives) * p) @ inside) / count.value
            out.append((min(max(mean, number / BINS), (number + 1) / BINS), rate, count.value))
        return out

    @property
    def _thresholds(self) -> Floats:
        ends = np.concatenate([[-np.inf], self.grid.edges, [np.inf]])
        return np.asarray(expit(ends))

    def best_threshold(self, false_positive: float, false_negative: float) -> tuple[float, Figure]:
        """The threshold with the least expected cost, and that cost for each row.

        Args:
            false_positive: Cost of a negative row that is taken for positive, >= 0.
            false_negative: Cost of a positive row that is taken for negative, >= 0.
        """
        neg, pos = (np.concatenate([[0.0], np.cumsum(c)]) for c in (self.negatives, self.positives))
        cost = false_negative * pos + false_positive * (neg[-1] - neg)
        place = int(np.argmin(cost))
        threshold = float(self._thresholds[place])
        down = np.arange(CELLS) < place
        high = max(false_positive, false_negative)
        return threshold, self.mean(
            lambda p, logit: (false_positive * ~down, false_negative * down), high
        )


def _rows_in(inside: Floats, neg: Floats, pos: Floats) -> Floats:
    """Rows in some of the cells."""
    return np.asarray((neg + pos) @ inside)


def _rate_in(inside: Floats, neg: Floats, pos: Floats) -> Floats:
    """Share of positive rows in some of the cells."""
    return _ratio(np.asarray(pos @ inside), (neg + pos) @ inside)


def _by_bin(values: Floats, bins: npt.NDArray[np.int64]) -> Floats:
    """Sums over the cells of each calibration bin."""
    return np.stack([values[..., bins == k].sum(axis=-1) for k in range(BINS)], axis=-1)


def _distribution(counts: Floats) -> Floats:
    """The distribution function at the ends of all cells, made to rise from 0 to 1."""
    total = max(float(counts.sum()), _LEAST)
    steps = np.concatenate([[0.0], np.cumsum(counts) / total])
    steps[-1] = 1.0
    return np.clip(rising(steps), 0.0, 1.0)


_AUC, _LOSS = 0.25, 0.1  # of the squared norm of what a row adds in both steps
_AIMED_SHARE = _AUC + _LOSS
_AIMED = 2  # sums of the second step
_FINEST, _TRIED = 50.0, 40
_WIDER = 3.0  # than what is best if the first step were exact


@dataclass(frozen=True, eq=False)
class Binary(ModelKind):
    """What is released about two classes, and how it is read."""

    grid: ScoreGrid
    groups: Groups | None

    @classmethod
    def from_model(cls, model: Judged, groups: Groups | None) -> Binary:
        """The blocks for a model. No row is looked at."""
        return cls(ScoreGrid.within(*model.margins), groups)

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

    def aimed(self, released: NoisySums) -> tuple[Block, ...]:
        """The blocks of the second step, from what the first has released."""
        share, noise = self.share * _AIMED_SHARE, released.noise / UNIT
        overall, *by_group = (
            _aimed_matrix(one, noise, share) for one in self._posteriors(released, draws=1)
        )
        if not by_group:
            return (Block(overall),)
        return Block(overall), Block(np.asarray(block_diag(*by_group), dtype=np.int64))

    def _each(self, released: NoisySums, level: float) -> list[TwoClasses]:
        return [TwoClasses(one, level) for one in self._posteriors(released, draws=DRAWS)]

    def _posteriors(self, released: NoisySums, *, draws: int) -> list[Posterior]:
        """What all steps so far say of all rows, and of each group."""
        matrix, size, posteriors = self.blocks[0].matrix, 2 * CELLS, []
        for number, ([sums], part) in enumerate(self._sets(released)):
            first = Solver.from_matrix(matrix / part)  # of sums with the whole noise
            matrices: list[npt.NDArray[Any]] = [matrix / part]
            values = [sums / part]
            if released.aimed is not None:
                block, copy = min(number, 1), max(number - 1, 0)
                rows = slice(_AIMED * copy, _AIMED * (copy + 1))
                aimed = released.aimed.layout.blocks[block].matrix
                matrices.append(aimed[rows, size * copy : size * (copy + 1)])
                values.append(released.aimed.sums[block][0][rows])
            solver, seen = Solver.from_matrix(np.vstack(matrices)), np.concatenate(values)
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
class PairedModels(ModelKind):
    """What is released about two models, and how it is read.

    The blocks are scores of each model, differences of the loss, and joint counts of both scores.
    """

    grids: tuple[ScoreGrid, ScoreGrid]  # cells of the score of each
    groups: Groups | None = None

    @classmethod
    def from_models(cls, first: Judged, second: Judged) -> PairedModels:
        """The blocks for two models. No row is looked at."""
        return cls((ScoreGrid.within(*first.margins), ScoreGrid.within(*second.margins)))

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

    def aimed(self, released: NoisySums) -> tuple[Block, ...]:
        """The blocks of the second step, from what the first has released."""
        pulls, limit = _pulls(*self._views(released, draws=1))
        ranks = math.sqrt(_AIMED_AUC) * np.clip(pulls.ravel() / limit, -1.0, 1.0)
        values = self._losses(released, 0.95)
        fine = _LARGEST * value_points(_POWER, _FINE)
        loss = math.sqrt(_AIMED_LOSS) * np.clip(fine / _limit(values), -1.0, 1.0)
        return tuple(
            Block(np.trunc(_UNIT * whole).astype(np.int64)[np.newaxis]) for whole in (ranks, loss)
        )

    def _views(self, released: NoisySums, draws: int) -> tuple[Posterior, ...]:
        return tuple(
            two_classes(grid, Solver.from_matrix(block.matrix), sums[0], released.noise, draws)
            for grid, block, sums in zip(self.grids, self.blocks, released.sums, strict=False)
        )

    def _losses(self, released: NoisySums, level: float) -> Values:
        """Differences of the log loss as the first step tells them."""
        solver, sums = Solver.from_matrix(self.blocks[2].matrix), released.sums[2][0]
        return Values.from_sums(solver, sums, released.noise, 0.0, _LARGEST, level, _POWER)

    def report(
        self, released: NoisySums, cost: Cost, level: float, model: Any = None
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
    drawn = float(np.std(values.weighted_mean(values.draws, 2)))
    return max(float(values.weighted_mean(values.counts, 2)), 0.0) + drawn


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


MOST_CLASSES = 64
_CONFUSION, _LOSS_SHARE, _TOP, _EACH = 0.2, 0.2, 0.2, 0.4  # of the squared norm of a row
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
class MultipleClasses(ModelKind):
    """What is released about several classes, and how it is read.

    The blocks are confusion, loss, top class, and each class against the rest.
    """

    classes: int
    groups: Groups | None

    @classmethod
    def from_model(cls, model: Judged, groups: Groups | None) -> MultipleClasses:
        """The blocks for a model. No row is looked at."""
        return cls(model.classes, groups)

    def _matrices(self) -> list[Ints]:
        k, scores = self.classes, counts_matrix(ScoreGrid())
        unit = UNIT * np.eye(k * k, dtype=np.int64)
        each = scaled(scores, self.share * _EACH / k)
        return [
            scaled(unit, self.share * _CONFUSION),
            scaled(value_matrix(), self.share * _LOSS_SHARE),
            scaled(scores, self.share * _TOP),
            *([each] * k),
        ]

    def _cells(self, predictions: Floats, labels: Floats) -> list[Ints]:
        truth, grid = labels.astype(np.int64), ScoreGrid()
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
        return [Solver.from_matrix(block.matrix) for block in self.blocks[1:4]]

    def _view(self, sums: list[Floats], noise: float, level: float) -> SeveralClasses:
        of_loss, of_top, of_class = self._solvers
        unit, half = float(self.blocks[0].matrix[0, 0]), _LARGEST_LOSS / 2.0
        top, *each = (
            TwoClasses(two_classes(ScoreGrid(), solver, counts, noise), level)
            for solver, counts in zip([of_top, *[of_class] * self.classes], sums[2:], strict=True)
        )
        return SeveralClasses(
            self.classes,
            (sums[0] / unit).reshape(self.classes, self.classes),
            Values.from_sums(of_loss, sums[1], noise, half, half, level),
            top,
            tuple(each),
            noise / unit,
            level,
        )
