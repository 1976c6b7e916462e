"""Evaluate classifiers: the released blocks, and the figures computed from them.

Binary classifiers are evaluated in two steps. The first step releases counts at all scales. AUC and
mean log loss are, to first order, sums of the rows' influences on them. Once the first step has
shown roughly how the scores are distributed, a direct sum of these influences is more accurate than
the counts, so the second step releases one sum for AUC and one for log loss. To compare two models
on the same rows, the second step releases sums of paired differences. Multiclass models are
evaluated by their confusion matrix and one-against-rest scores.

Figures are free post-processing of the released counts. Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
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
from .figures import (
    Figure,
    Values,
    figure_from_draws,
    make_monotone,
    parse_share,
    quotient_from_draws,
    top_sums,
    value_matrix,
)
from .report import Cost, EvaluationReport
from .rows import Groups, ModelKind, Rows, scaled

Losses = Callable[[Floats, Floats], tuple[npt.ArrayLike, npt.ArrayLike]]
Of = Callable[[Floats, Floats], Floats]
Parts = Callable[[Floats, Floats], tuple[Floats, Floats]]

_LEAST = 1e-9
_PLAIN = (
    "rows", "base_rate", "mean_prediction", "auc", "average_precision", "log_loss", "brier",
    "calibration_error", "ks", "accuracy", "precision", "recall", "f1", "selection_rate",
)  # fmt: skip
# Factor by which the interval of the calibration error is widened: the draws assume that the
# smoothness of the calibration curve is known.
_CALIBRATION_WIDENING = 1.25


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.asarray(a / np.where(np.abs(b) < _LEAST, _LEAST, b))


def auc(neg: Floats, pos: Floats) -> Floats:
    """Compute the area under the ROC curve; ties count half."""
    below = np.cumsum(neg, axis=-1) - 0.5 * neg
    return _ratio((pos * below).sum(axis=-1), pos.sum(axis=-1) * neg.sum(axis=-1))


def average_precision(neg: Floats, pos: Floats) -> Floats:
    """Compute the mean precision at the scores of the positives."""
    hits, errors = (
        np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1] - 0.5 * counts for counts in (pos, neg)
    )
    precision = np.clip(_ratio(hits, hits + errors), 0.0, 1.0)
    return _ratio((pos * precision).sum(axis=-1), pos.sum(axis=-1))


def influence(neg: Floats, pos: Floats, n: float, m: float) -> Floats:
    """Return the influence on the AUC of adding a row to each cell: (2, cells), negatives first."""
    area = float(auc(neg, pos))
    below = (np.cumsum(neg) - 0.5 * neg) / n
    above = 1.0 - (np.cumsum(pos) - 0.5 * pos) / m
    return np.stack([(above - area) / n, (below - area) / m])


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """Figures of a binary classifier for one set of rows.

    Attributes:
        posterior: Posterior of the number of negatives and positives per score cell.
        level: Confidence level of each interval.
        at: Default threshold. Set so that about as many rows are selected as are positive.
        scale: Number of rows in a count of 1.

    Examples:
        >>> at = evaluation.threshold(cost={"fp": 1, "fn": 4})
        >>> recall = evaluation.overall.recall(at)
        >>> recall.low <= float(recall) <= recall.high
        True
    """

    posterior: Posterior
    level: float = 0.95
    at: float = 0.5
    scale: float = 1.0

    @classmethod
    def of(cls, posterior: Posterior, level: float) -> TwoClasses:
        """Build the figures, with the default threshold for these rows."""
        view = cls(posterior, level)
        base = float(_ratio(view.positives.sum(), posterior.mean.sum()))
        return replace(view, at=view.threshold_at(min(max(base, _LEAST), 1.0)))

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

    @property
    def counts(self) -> Floats:
        """Estimated number of rows in each cell, negatives first."""
        return self.posterior.mean

    @property
    def draws(self) -> Floats:
        """Draws of `counts` that vary with the privacy noise."""
        return self.posterior.draws

    @cached_property
    def sampled(self) -> Floats:
        """Draws of `counts` that vary with privacy noise and sampling."""
        return self.posterior.sampled()

    def figure(self, of: Of, low: float = 0.0, high: float = 1.0) -> Figure:
        """Build a figure from a smooth function of the counts.

        Args:
            of: Function of the counts of negatives and positives, each of shape (..., CELLS).
            low: Lowest possible value.
            high: Highest possible value.
        """
        return figure_from_draws(self, lambda counts: of(*_by_class(counts)), low, high)

    def quotient(self, parts: Parts, high: float = 1.0) -> Figure:
        """Build a figure from a quotient, for which a denominator near 0 is no outlier.

        Args:
            parts: Function of the counts, as for `figure`, that returns numerator and denominator.
            high: Highest possible value.
        """

        def both(counts: Floats) -> Floats:
            return np.stack(parts(*_by_class(counts)), axis=-1)

        return quotient_from_draws(self, both, 0.0, high)

    # --- figures -------------------------------------------------------------------------------

    @property
    def rows(self) -> Figure:
        """Number of rows (or persons)."""
        rows = self.figure(lambda neg, pos: (neg + pos).sum(axis=-1), high=np.inf)
        return rows.times(self.scale)

    @property
    def base_rate(self) -> Figure:
        """Share of positive rows.

        Computed from the released sums without the prior; see :meth:`Figure.share`.
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
    def average_precision(self) -> Figure:
        """Area under the precision-recall curve."""
        return self.figure(average_precision)

    @property
    def log_loss(self) -> Figure:
        """Mean log loss in nats; logits are clipped to [-8, 8]."""
        return self.mean(
            lambda p, logit: (np.logaddexp(0.0, logit), np.logaddexp(0.0, -logit)), np.inf
        )

    @property
    def brier(self) -> Figure:
        """Brier score: mean squared error of the predicted probability."""
        return self.mean(lambda p, logit: (p**2, (1.0 - p) ** 2))

    def mean(self, losses: Losses, high: float = 1.0) -> Figure:
        """Build a figure for the mean of a loss over the rows.

        Args:
            losses: Function of the probabilities and logits of the cells that returns the losses
                of a negative and of a positive row.
            high: Highest possible loss.
        """
        both = losses(self.grid.probability, self.grid.centres)
        of_neg, of_pos = (np.asarray(loss, dtype=np.float64) for loss in both)
        return self.figure(
            lambda neg, pos: _ratio(neg @ of_neg + pos @ of_pos, (neg + pos).sum(axis=-1)),
            high=high,
        )

    @cached_property
    def calibration_error(self) -> Figure:
        """Expected calibration error over ten bins of the predicted probability.

        The absolute difference between the mean prediction and the share of positives in each bin,
        averaged over rows. The plain estimate is biased upwards by noise; this one is corrected for
        privacy noise and sampling. The interval begins at 0 if the counts are compatible with a
        perfectly calibrated model.
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
        """Return the number of positives minus the predicted number, per bin."""
        p = self.grid.probability
        return _by_bin(counts[..., CELLS:] * (1.0 - p) - counts[..., :CELLS] * p, self.grid.bins)

    def _may_be_calibrated(self) -> bool:
        """Test whether the residuals of all bins may be noise (chi-squared test at `level`)."""
        drawn, seen = self._residual(self.sampled), self._residual(self.posterior.mean)
        spread = np.cov(drawn.T) + np.eye(BINS) * 1e-6
        distance = float(seen @ np.linalg.solve(spread, seen))
        return bool(distance <= 2.0 * gammaincinv(0.5 * BINS, self.level))

    @property
    def ks(self) -> Figure:
        """One-sided Kolmogorov-Smirnov statistic: max of true minus false positive rate."""

        def of(neg: Floats, pos: Floats) -> Floats:
            below = _ratio(np.cumsum(neg, axis=-1), neg.sum(axis=-1, keepdims=True))
            under = _ratio(np.cumsum(pos, axis=-1), pos.sum(axis=-1, keepdims=True))
            return np.asarray((below - under).max(axis=-1))

        return self.figure(of)

    def figures(self) -> dict[str, Figure]:
        """Return all figures by name, at the default thresholds."""
        values = {name: getattr(self, name) for name in _PLAIN}
        return {name: v if isinstance(v, Figure) else v() for name, v in values.items()}

    # --- at a threshold ------------------------------------------------------------------------

    def above(self, threshold: float) -> Floats:
        """Return the fraction of each cell with a probability of at least `threshold`, 0 to 1."""
        if threshold <= 0.0 or threshold >= 1.0:
            return np.full(CELLS, float(threshold <= 0.0))
        logit, ends = float(np.log(threshold) - np.log1p(-threshold)), self.grid.ends
        return np.clip((ends[1:] - logit) / np.diff(ends), 0.0, 1.0)

    def _selected(self, threshold: float | None) -> Floats:
        return self.above(self.at if threshold is None else threshold)

    def threshold_at(self, selection_rate: float) -> float:
        """Return the cell edge, as a probability, with the closest estimated selection rate.

        At cell edges, counts need no assumption on the scores within a cell.

        Args:
            selection_rate: Share of rows to select, in (0, 1].
        """
        share = parse_share(selection_rate, "selection_rate")
        selected = np.cumsum((self.negatives + self.positives)[::-1])[::-1]
        place = np.argmin(np.abs(selected - share * selected[0]))
        return float(self._thresholds[place])

    def confusion(self, threshold: float | None = None) -> dict[str, Figure]:
        """Return the confusion matrix as figures "tp", "fp", "tn" and "fn".

        Args:
            threshold: A row with at least this probability is classified as positive. Default:
                `at`.
        """
        up = self._selected(threshold)
        counts: dict[str, Of] = {
            "tp": lambda neg, pos: pos @ up,
            "fp": lambda neg, pos: neg @ up,
            "tn": lambda neg, pos: neg @ (1.0 - up),
            "fn": lambda neg, pos: pos @ (1.0 - up),
        }
        figures = {name: self.figure(of, high=np.inf) for name, of in counts.items()}
        return {name: figure.times(self.scale) for name, figure in figures.items()}

    def accuracy(self, threshold: float = 0.5) -> Figure:
        """Return the share of rows that are classified correctly; at 0.5 as by ``predict``."""
        up = self.above(threshold)
        return self.figure(
            lambda neg, pos: _ratio(neg @ (1.0 - up) + pos @ up, (neg + pos).sum(axis=-1))
        )

    def precision(self, threshold: float | None = None) -> Figure:
        """Return the share of positives among rows with at least this probability."""
        up = self._selected(threshold)
        return self.quotient(lambda neg, pos: (pos @ up, (neg + pos) @ up))

    def recall(self, threshold: float | None = None) -> Figure:
        """Return the share of positive rows with at least this probability."""
        up = self._selected(threshold)
        return self.quotient(lambda neg, pos: (pos @ up, pos.sum(axis=-1)))

    def f1(self, threshold: float | None = None) -> Figure:
        """Return the harmonic mean of precision and recall."""
        up = self._selected(threshold)
        return self.quotient(
            lambda neg, pos: (2.0 * (pos @ up), (neg + pos) @ up + pos.sum(axis=-1))
        )

    def selection_rate(self, threshold: float | None = None) -> Figure:
        """Return the share of all rows with at least this probability: the rate of alerts."""
        up = self._selected(threshold)
        return self.figure(lambda neg, pos: _ratio((neg + pos) @ up, (neg + pos).sum(axis=-1)))

    # --- curves --------------------------------------------------------------------------------

    def roc(self) -> tuple[Floats, Floats, Floats]:
        """Return the ROC curve: false positive rates, true positive rates, thresholds."""
        neg, pos = (_distribution(counts) for counts in (self.negatives, self.positives))
        return 1.0 - neg, 1.0 - pos, self._thresholds

    def precision_at(self, recall: float) -> Figure:
        """Return the precision at the threshold with this recall, in (0, 1]."""
        recall = parse_share(recall, "recall")

        def parts(neg: Floats, pos: Floats) -> tuple[Floats, Floats]:
            hits = recall * pos.sum(axis=-1)
            return hits, hits + top_sums(pos, neg, recall)

        return self.quotient(parts)

    def lift(self, share: float) -> Figure:
        """Return the lift: base rate of the `share` of rows with the highest scores, over all."""
        share = parse_share(share)

        return self.quotient(
            lambda neg, pos: (top_sums(neg + pos, pos, share), share * pos.sum(axis=-1)),
            high=1.0 / share,
        )

    def calibration_curve(self) -> list[tuple[float, Figure, float]]:
        """Return (mean prediction, share of positives, number of rows) for each of ten bins.

        Bins are omitted if their estimated row count is below 1 or below twice its noise.
        """
        p, bins = self.grid.probability, self.grid.bins
        out = []
        for number in range(BINS):
            inside = (bins == number).astype(np.float64)
            count = self.figure(partial(_rows_in, inside), high=np.inf)
            if count.value < max(1.0, 2.0 * count.noise):
                continue
            rate = self.quotient(partial(_rate_in, inside))
            mean = float(((self.negatives + self.positives) * p) @ inside) / count.value
            mean = min(max(mean, number / BINS), (number + 1) / BINS)
            out.append((mean, rate, self.scale * count.value))
        return out

    @property
    def _thresholds(self) -> Floats:
        ends = np.concatenate([[-np.inf], self.grid.edges, [np.inf]])
        return np.asarray(expit(ends))

    def best_threshold(self, false_positive: float, false_negative: float) -> tuple[float, Figure]:
        """Return the threshold with the lowest estimated cost, and its mean cost per row.

        Args:
            false_positive: Cost of classifying a negative row as positive, >= 0.
            false_negative: Cost of classifying a positive row as negative, >= 0.
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
    """Return the number of rows in the cells selected by `inside`."""
    return np.asarray((neg + pos) @ inside)


def _rate_in(inside: Floats, neg: Floats, pos: Floats) -> tuple[Floats, Floats]:
    """Return the numbers of positive and of all rows in the cells selected by `inside`."""
    return np.asarray(pos @ inside), _rows_in(inside, neg, pos)


def _by_class(counts: Floats) -> tuple[Floats, Floats]:
    """Split into negatives and positives, (..., CELLS) each."""
    return counts[..., :CELLS], counts[..., CELLS:]


def _by_bin(values: Floats, bins: npt.NDArray[np.int64]) -> Floats:
    """Sum over the cells of each calibration bin."""
    return np.stack([values[..., bins == k].sum(axis=-1) for k in range(BINS)], axis=-1)


def _distribution(counts: Floats) -> Floats:
    """Return the cumulative distribution at all cell edges, made monotone from 0 to 1."""
    total = max(float(counts.sum()), _LEAST)
    steps = np.concatenate([[0.0], np.cumsum(counts) / total])
    steps[-1] = 1.0
    return np.clip(make_monotone(steps), 0.0, 1.0)


_AUC, _LOSS = 0.25, 0.1  # shares of a row's squared norm over both steps
_SECOND_SHARE = _AUC + _LOSS
_SECOND_SUMS = 2  # number of sums in the second step
_FINEST, _TRIED = 50.0, 40  # range and number of clipping limits to try
_WIDER = 3.0  # factor on the clipping limit that would be optimal if the first step were exact


@dataclass(frozen=True, eq=False)
class Binary(ModelKind):
    """Blocks and figures of a binary classifier."""

    grid: ScoreGrid
    groups: Groups | None

    @property
    def later(self) -> Later:
        """Limits of the second step."""
        sets = 1 if self.groups is None else 1 + len(self.groups.names)
        return Later(math.floor(UNIT**2 * _SECOND_SHARE), _SECOND_SUMS * sets)

    def _matrices(self) -> list[Ints]:
        share = self.share - self.share * _SECOND_SHARE
        return [scaled(counts_matrix(self.grid), share)]

    def _cells(self, rows: Rows) -> list[Ints]:
        return [self.grid.cell(rows.predictions) + CELLS * (rows.labels > 0.5).astype(np.int64)]

    def plan_second_step(self, released: NoisySums) -> tuple[Block, ...]:
        """Build the blocks of the second step from the release of the first."""
        share, noise = self.share * _SECOND_SHARE, released.noise / UNIT
        overall, *by_group = (
            _second_matrix(one, noise, share) for one in self._posteriors(released, draws=1)
        )
        if not by_group:
            return (Block(overall),)
        return Block(overall), Block(np.asarray(block_diag(*by_group), dtype=np.int64))

    def _each(self, released: NoisySums, level: float) -> list[TwoClasses]:
        views = [TwoClasses.of(one, level) for one in self._posteriors(released, draws=DRAWS)]
        return [replace(view, at=views[0].at) for view in views]

    def _posteriors(self, released: NoisySums, *, draws: int) -> list[Posterior]:
        """Compute the posteriors for all rows and for each group, from all steps so far."""
        matrix, size, posteriors = self.blocks[0].matrix, 2 * CELLS, []
        for number, ([sums], part) in enumerate(self._sets(released)):
            first = Solver.from_matrix(matrix / part)  # rescaled so that the noise has factor 1
            matrices: list[npt.NDArray[Any]] = [matrix / part]
            values = [sums / part]
            if released.second_step is not None:
                block, copy = min(number, 1), max(number - 1, 0)
                rows = slice(_SECOND_SUMS * copy, _SECOND_SUMS * (copy + 1))
                second = released.second_step.layout.blocks[block].matrix
                matrices.append(second[rows, size * copy : size * (copy + 1)])
                values.append(released.second_step.sums[block][0][rows])
            solver, seen = Solver.from_matrix(np.vstack(matrices)), np.concatenate(values)
            posteriors.append(two_classes(self.grid, solver, seen, released.noise, draws, first))
        return posteriors


def _second_matrix(posterior: Posterior, noise: float, share: float) -> Ints:
    """Return a row's contribution to the second step: (sums, 2 * CELLS), negatives first."""
    neg, pos = posterior.by_class
    rows, logits = posterior.by_class.ravel(), posterior.grid.centres
    pulls = influence(neg, pos, float(neg.sum()), float(pos.sum())).ravel()
    loss = np.concatenate([np.logaddexp(0.0, logits), np.logaddexp(0.0, -logits)])
    loss -= float(loss @ rows / rows.sum())
    whole = np.stack(
        [
            math.sqrt(part) * _clip_influence(pull, rows, noise / math.sqrt(share * part))
            for pull, part in ((pulls, _AUC / _SECOND_SHARE), (loss, _LOSS / _SECOND_SHARE))
        ]
    )
    largest = math.sqrt(float((whole**2).sum(axis=0).max()))
    if largest > 0.0:
        whole *= UNIT * math.sqrt(share) / largest
    return np.trunc(whole).astype(np.int64)  # round towards 0, so that no norm increases


def _clip_influence(pull: Floats, rows: Floats, noise: float) -> Floats:
    """Clip influences to a limit and return them in units of the limit: in [-1, 1].

    A low limit reduces the noise but loses the contributions beyond it. The limit with the best
    precision is computed as if the counts per cell were Poisson around their estimates. It is then
    widened, because the estimates for rare cells are less certain than that.
    """
    most = float(np.abs(pull).max())
    if most <= 0.0:
        return np.zeros_like(pull)

    def precision(limit: float) -> float:
        clipped = np.clip(pull / limit, -1.0, 1.0)
        return float((pull * clipped) @ rows) ** 2 / (float(clipped**2 @ rows) + noise**2)

    best = max(np.geomspace(most / _FINEST, most, _TRIED).tolist(), key=precision)
    return np.clip(pull / min(_WIDER * best, most), -1.0, 1.0)


_SCORES, _GAPS, _JOINT = 0.18, 0.1, 0.09  # shares of a row's squared norm; scores count twice
_SECOND_AUC, _SECOND_LOSS = 0.25, 0.2  # the same for the second step
_UNIT = UNIT << 4  # sums of small differences need a finer grid than counts
_FINE = 1 << 12  # cells of log loss differences in the second step
_RANKS = 0.4  # clipping limit of the difference of a row's ranks
_FAR = 6.0  # clipping limit of log loss differences, in root mean squares
_COARSE = 16  # cells per score in the joint counts
_POWER = 3  # cell spacing of differences: fine around 0, because the two models mostly agree
_LARGEST = 2.0  # clipping limit of a row's log loss difference, in nats


@dataclass(frozen=True, eq=False)
class TwoModels:
    """Paired comparison of two binary classifiers on the same rows.

    Attributes:
        first: Figures of the first model.
        second: Figures of the second model.
        auc_difference: AUC of the first model minus AUC of the second.
        log_loss_difference: Mean log loss of the first model minus mean log loss of the second;
            negative if the first is better. Differences per row are clipped to [-2, 2] nats.

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

    def figures(self) -> dict[str, Figure]:
        """Return the differences and the figures of both models, by name."""
        out = {
            "auc difference": self.auc_difference,
            "log_loss difference": self.log_loss_difference,
        }
        for name, view in (("first", self.first), ("second", self.second)):
            out |= {f"{label} of the {name}": f for label, f in view.figures().items()}
        return out


@dataclass(frozen=True, eq=False)
class PairedModels(ModelKind):
    """Blocks and figures of a comparison of two binary classifiers.

    The blocks are the scores of each model, the loss differences, and joint counts of both scores.
    """

    grids: tuple[ScoreGrid, ScoreGrid]  # score cells of each model
    groups: Groups | None = None

    @property
    def later(self) -> Later:
        """Limits of the second step."""
        return Later(math.floor(_UNIT**2 * _SECOND_AUC) + math.floor(_UNIT**2 * _SECOND_LOSS), 2)

    def _matrices(self) -> list[Ints]:
        finer = _UNIT // UNIT
        return [
            *(scaled(finer * counts_matrix(grid), _SCORES) for grid in self.grids),
            scaled(finer * value_matrix(_POWER), _GAPS),
            scaled(_UNIT * np.eye(2 * _COARSE**2, dtype=np.int64), _JOINT),
        ]

    def _cells(self, rows: Rows) -> list[Ints]:
        positive = (rows.labels > 0.5).astype(np.int64)
        scores = self._scores(rows.predictions)
        one, other = (score // (CELLS // _COARSE) for score in scores)
        return [
            *(score + CELLS * positive for score in scores),
            value_cells(_loss_difference(rows.predictions, rows.labels), _POWER),
            (one * _COARSE + other) + _COARSE**2 * positive,
        ]

    def later_cells(self, rows: Rows) -> list[Ints]:
        """Return the cell of each row in each block of the second step."""
        one, other = self._scores(rows.predictions)
        joint = ((rows.labels > 0.5).astype(np.int64) * CELLS + one) * CELLS + other
        difference = _loss_difference(rows.predictions, rows.labels)
        return [joint, value_cells(difference, _POWER, _FINE)]

    def _scores(self, margins: tuple[Floats, ...]) -> list[Ints]:
        return [grid.cell(m) for grid, m in zip(self.grids, margins, strict=True)]

    def plan_second_step(self, released: NoisySums) -> tuple[Block, ...]:
        """Build the blocks of the second step from the release of the first."""
        pulls, limit = _auc_difference_influence(*self._views(released, draws=1))
        ranks = math.sqrt(_SECOND_AUC) * np.clip(pulls.ravel() / limit, -1.0, 1.0)
        values = self._losses(released, 0.95)
        fine = _LARGEST * value_points(_POWER, _FINE)
        loss = math.sqrt(_SECOND_LOSS) * np.clip(fine / _loss_limit(values), -1.0, 1.0)
        return tuple(
            Block(np.trunc(_UNIT * whole).astype(np.int64)[np.newaxis]) for whole in (ranks, loss)
        )

    def _views(self, released: NoisySums, draws: int) -> tuple[Posterior, ...]:
        return tuple(
            two_classes(grid, Solver.from_matrix(block.matrix), sums[0], released.noise, draws)
            for grid, block, sums in zip(self.grids, self.blocks, released.sums, strict=False)
        )

    def _losses(self, released: NoisySums, level: float) -> Values:
        """Estimate the distribution of log loss differences from the first step."""
        solver, sums = Solver.from_matrix(self.blocks[2].matrix), released.sums[2][0]
        return Values.from_sums(solver, sums, released.noise, 0.0, _LARGEST, level, _POWER)

    def report(
        self, released: NoisySums, cost: Cost, level: float, model: Any = None
    ) -> EvaluationReport:
        """Build the report: figures of both models and of their differences."""
        second = released.second_step
        assert second is not None
        ranks, losses = (float(sums[0, 0]) for sums in second.sums)
        posteriors = self._views(released, DRAWS)
        scale = float(released.layout.max_rows)
        first, other = (replace(TwoClasses.of(p, level), scale=scale) for p in posteriors)
        joint = released.sums[3][0] / float(self.blocks[3].matrix[0, 0])
        scale = _auc_difference_influence(*posteriors)[1] / (_UNIT * math.sqrt(_SECOND_AUC))
        gap = _auc_difference(posteriors, joint, scale * ranks, scale * second.noise, level)
        values = self._losses(released, level)
        rows = max(float(values.counts.sum()), 1.0)
        scale = _loss_limit(values) / (_UNIT * math.sqrt(_SECOND_LOSS) * rows)
        value, noise = scale * losses, scale * second.noise
        spread = math.hypot(noise, math.sqrt(_mean_square(values) / rows))
        loss = Figure.around(value, spread, noise, level, low=-_LARGEST, high=_LARGEST)
        view = TwoModels(first, other, gap, loss)
        return EvaluationReport("comparison", view, {}, cost, level)


def _loss_difference(margins: tuple[Floats, ...], labels: Floats) -> Floats:
    """Return the difference in log loss for each row, in units of the clipping limit."""
    sign = 1.0 - 2.0 * (labels > 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        loss = [np.logaddexp(0.0, sign * np.nan_to_num(m)) for m in margins]
        return np.asarray((loss[0] - loss[1]) / _LARGEST)


def _mean_square(values: Values) -> float:
    """Return the mean squared difference plus one standard deviation of its noise."""
    drawn = float(np.std(values.mean_square(values.draws)))
    return max(float(values.mean_square(values.counts)), 0.0) + drawn


def _loss_limit(values: Values) -> float:
    """Return the clipping limit of log loss differences in the second step."""
    return min(_FAR * math.sqrt(_mean_square(values)), _LARGEST)


def _auc_difference_influence(first: Posterior, second: Posterior) -> tuple[Floats, float]:
    """Return a row's influence on the AUC difference, by label and cells, and its limit."""
    (one, n, m), (other, _, _) = (_auc_influence(one) for one in (first, second))
    pulls = one[:, :, np.newaxis] - other[:, np.newaxis, :]
    return pulls, _RANKS / min(n, m)


def _auc_influence(posterior: Posterior) -> tuple[Floats, float, float]:
    """Return the influence on the AUC of a row in each cell, (2, cells), and the class counts."""
    neg, pos = posterior.by_class
    n, m = max(float(neg.sum()), 1.0), max(float(pos.sum()), 1.0)
    return influence(neg, pos, n, m), n, m


def _auc_difference(
    posteriors: tuple[Posterior, ...], joint: Floats, moved: float, noise: float, level: float
) -> Figure:
    """Estimate the AUC difference; the joint counts give the covariance of the two AUCs."""
    areas, pulls, variances = [], [], []
    shape = (2, _COARSE, CELLS // _COARSE)
    for one in posteriors:
        fine, weight = _auc_influence(one)[0], one.by_class
        areas.append(float(auc(*weight)))
        rows = weight.reshape(shape).sum(axis=-1)
        pull = (fine * weight).reshape(shape).sum(axis=-1) / rows
        pulls.append(pull)
        # Variances come from each model's own counts, the covariance from the joint counts.
        variances.append(float((rows * pull**2).sum()))
    counts = joint.reshape(2, _COARSE, _COARSE)
    both = float((counts * pulls[0][:, :, np.newaxis] * pulls[1][:, np.newaxis, :]).sum())
    both = min(max(both, 0.0), math.sqrt(variances[0] * variances[1]))
    sampling = max(variances[0] + variances[1] - 2.0 * both, 0.0)
    value, spread = areas[0] - areas[1] + moved, math.sqrt(noise**2 + sampling)
    return Figure.around(value, spread, noise, level, low=-1.0, high=1.0)


MOST_CLASSES = 64
_CONFUSION, _LOSS_SHARE, _TOP, _EACH = 0.2, 0.2, 0.2, 0.4  # shares of a row's squared norm
_LARGEST_LOSS = 8.0


@dataclass(frozen=True, eq=False)
class SeveralClasses:
    """Figures of a multiclass model for one set of rows.

    Attributes:
        classes: Number of classes.
        counts: Number of rows by true class and predicted class, (classes, classes).
        losses: Distribution of the log loss in nats, clipped at 8.
        top: Figures of the predicted class as a binary problem: the score is its probability, and
            the label is whether the prediction is correct.
        one_against_rest: Figures of each class against all others; the score is its probability.
        noise: Standard deviation of the noise in each entry of `counts`.
        level: Confidence level of each interval.
        scale: Number of rows in a count of 1.

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
    scale: float = 1.0

    @property
    def log_loss(self) -> Figure:
        """Mean log loss in nats, clipped at 8 per row."""
        return self.losses.mean

    @property
    def accuracy(self) -> Figure:
        """Share of rows for which the most probable class is the true class."""
        return self.top.base_rate

    @property
    def calibration_error(self) -> Figure:
        """Expected calibration error of the predicted class's probability."""
        return self.top.calibration_error

    @cached_property
    def auc(self) -> Figure:
        """Mean one-against-rest AUC over the classes.

        The estimates of the classes are correlated, so the interval is the mean of the classes'
        intervals, which is conservative for any correlation.
        """
        each = [astuple(view.auc) for view in self.one_against_rest]
        return Figure(*np.mean(each, axis=0).tolist())

    def confusion(self) -> list[list[Figure]]:
        """Return the number of rows by true class (first index) and predicted class."""
        wide = float(ndtri(0.5 + 0.5 * self.level))

        def figure(count: float) -> Figure:
            value = max(count, 0.0)
            half = wide * math.sqrt(self.noise**2 + value)
            low, high = max(count - half, 0.0), max(count + half, value)
            return Figure(value, low, high, self.noise).times(self.scale)

        return [[figure(count) for count in row] for row in self.counts.tolist()]

    def figures(self) -> dict[str, Figure]:
        """Return all figures by name."""
        out = {
            "rows": self.top.rows.times(self.scale),
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
    """Blocks and figures of a multiclass model.

    The blocks are the confusion matrix, the loss, the top class, and each class against the rest.
    """

    classes: int
    groups: Groups | None

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

    def _cells(self, rows: Rows) -> list[Ints]:
        truth, grid = rows.labels.astype(np.int64), ScoreGrid()
        p = np.nan_to_num(rows.predictions, nan=0.0)
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
        """Estimators of cell counts: for the loss, the top class, and a single class."""
        return [Solver.from_matrix(block.matrix) for block in self.blocks[1:4]]

    def _view(self, sums: list[Floats], noise: float, level: float) -> SeveralClasses:
        of_loss, of_top, of_class = self._solvers
        unit, half = float(self.blocks[0].matrix[0, 0]), _LARGEST_LOSS / 2.0
        top, *each = (
            TwoClasses.of(two_classes(ScoreGrid(), solver, counts, noise), level)
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
