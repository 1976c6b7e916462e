"""Figures of a model of two classes from the counts of its scores, and how sure they are.

All of it is post-processing of released counts and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaincinv

from ..noisy_sums import Floats
from .figure import Figure, rising
from .grid import BINS, CELLS, Grid
from .posterior import Posterior

Losses = Callable[[Floats, Floats], tuple[npt.ArrayLike, npt.ArrayLike]]
Of = Callable[[Floats, Floats], Floats]

_LEAST = 1e-9
_PLAIN = (
    "rows", "base_rate", "mean_prediction", "auc", "log_loss", "brier", "calibration_error", "ks",
    "accuracy", "precision", "recall", "selection_rate",
)  # fmt: skip
_WIDER = 1.25  # than drawn, of calibration: the draws take the smoothness of the curve as known


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
    def grid(self) -> Grid:
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
        low, high = max(value - _WIDER * (value - low), 0.0), value + _WIDER * (high - value)
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
