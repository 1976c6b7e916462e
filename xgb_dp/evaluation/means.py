"""Evaluation of a model of counts or amounts: deviance, and labels along the order of predictions.

A row lies in one of 64 cells of its prediction and has one of 128 values of its label. What is
released of it is its place in a Haar tree over the cells, once as a row and once by the size of its
label. The order of the cells gives the Lorenz curve and what the model explains.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from ..engine.model_json import ModelJson
from ..request.losses import POWERS
from .figure import Figure
from .grid import tree_matrix
from .posterior import DRAWS, Solver
from .rows import Judged
from .values import smoothed, value_cells, value_points

__all__ = ["UNIT", "Deviance", "Losses", "Means", "Order", "loss_matrix"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNIT = 1 << 14
"""Grid units of what one row adds: labels are small beside the end of their range."""
_PLACES, _LABELS = 64, 128  # cells of the prediction, values of the label
_COUNT, _COUNT_TREE, _SUM, _SUM_TREE = 0.1, 0.2, 0.3, 0.4  # of the squared norm of a row
_MOMENTS = (0.2, 0.6, 0.2)  # of the squared norm of a row: rows, losses, squared losses
_LOSSES = 4096  # cells of the loss, fine where it is small
_WIDEST = 14.0  # of the range of predictions, on the scale of the logarithm
_LEAST = 1e-3  # of the usual mean: smaller labels have its deviance, where that of 0 is infinite


@dataclass(frozen=True)
class Deviance:
    """Deviance of a row from its prediction, of a variance that is a power of the mean.

    Attributes:
        power: 1 for counts, 2 for reg:gamma, between them for reg:tweedie.
        floor: Smaller labels count as this, with power 2.
    """

    power: float
    floor: float = 0.0

    def __call__(self, y: Floats, mean: Floats) -> Floats:
        """Of labels and predicted means above 0; at least 0."""
        p = self.power
        if p == 1.0:
            with np.errstate(divide="ignore", invalid="ignore"):
                own = np.where(y > 0, y * np.log(y / mean), 0.0)
            return np.asarray(2.0 * (own - y + mean))
        if p == 2.0:
            share = np.maximum(y, self.floor) / mean
            return np.asarray(2.0 * (share - 1.0 - np.log(share)))
        label = y ** (2 - p) / ((1 - p) * (2 - p))
        return np.asarray(2.0 * (label - self.slope(mean) / 2.0 * y + self.offset(mean) / 2.0))

    def slope(self, mean: Floats) -> Floats:
        """By which a deviance falls with the label, but for what no prediction changes."""
        p = self.power
        return np.asarray(2.0 * np.log(mean) if p == 1.0 else 2.0 * mean ** (1 - p) / (1 - p))

    def offset(self, mean: Floats) -> Floats:
        """What a deviance has of the prediction alone."""
        p = self.power
        return np.asarray(2.0 * np.log(mean) if p == 2.0 else 2.0 * mean ** (2 - p) / (2 - p))


@dataclass(frozen=True, eq=False)
class Order:
    """Rows and labels in each cell of the prediction, and what follows from their order.

    Attributes:
        counts: Estimated rows and sums of labels of the cells, (2 * cells,); without bias.
        draws: The same that are as likely, given the sums; (draws, 2 * cells).
        means: The prediction that stands for each cell.
        square: Mean squared label, for how much labels of one cell spread.
        deviance: That of one row.
        level: Probability with which an interval covers.
    """

    counts: Floats
    draws: Floats
    means: Floats
    square: float
    deviance: Deviance
    level: float

    def _figure(self, of: Callable[[Floats, Floats], Floats], low: float, high: float) -> Figure:
        """A smooth function of rows and sums of labels, (..., cells) each."""

        def value(counts: Floats) -> Floats:
            rows, sums = counts[..., :_PLACES], counts[..., _PLACES:]
            return of(rows, sums)

        noise, spread = (float(np.std(value(d))) for d in (self.draws, self.sampled))
        return Figure.around(
            float(value(self.counts)), spread, noise, self.level, low=low, high=high
        )

    def _quotient(
        self, of: Callable[[Floats, Floats], tuple[Floats, Floats]], low: float, high: float
    ) -> Figure:
        """A quotient of two smooth functions of rows and sums of labels, (..., cells) each."""

        def parts(counts: Floats) -> Floats:
            return np.stack(of(counts[..., :_PLACES], counts[..., _PLACES:]), axis=-1)

        noise, spread = (np.cov(parts(d), rowvar=False) for d in (self.draws, self.sampled))
        return Figure.quotient(parts(self.counts), noise, spread, self.level, low=low, high=high)

    @cached_property
    def sampled(self) -> Floats:
        """Draws for other rows of the same population: of their number, and of their labels."""
        rng = np.random.default_rng(3)
        rows, sums = (np.maximum(smoothed(v, 2), 0.0) for v in np.split(self.counts, 2))
        mean = sums / np.maximum(rows, 1.0)
        # The variance follows the power of the mean; how far, the second moment of all labels says.
        around = self.square * rows.sum() - rows @ mean**2
        shape = mean**self.deviance.power
        variance = max(around, 0.0) / max(float(rows @ shape), 1e-300) * shape
        moved = rng.normal(size=(len(self.draws), _PLACES)) * np.sqrt(rows)
        labels = rng.normal(size=moved.shape) * np.sqrt(rows * variance)
        return np.asarray(self.draws + np.hstack([moved, moved * mean + labels]))

    @property
    def gini(self) -> Figure:
        """Gini index of the ordered Lorenz curve: rows are ordered by their prediction, and the
        curve says which share of all labels the rows up to there have. 0 for no order at all.
        """

        def parts(rows: Floats, sums: Floats) -> tuple[Floats, Floats]:
            below = np.cumsum(rows, axis=-1) - 0.5 * rows
            whole = rows.sum(axis=-1) * sums.sum(axis=-1)
            return 2.0 * (sums * below).sum(axis=-1) - whole, whole

        return self._quotient(parts, -1.0, 1.0)

    @property
    def mean_ratio(self) -> Figure:
        """Mean prediction over mean label."""
        return self._quotient(
            lambda rows, sums: (rows @ self.means, sums.sum(axis=-1)), 0.0, np.inf
        )

    @property
    def deviance_saved(self) -> Figure:
        """Mean deviance of the mean label less that of the predictions: what the model explains."""
        loss = self.deviance

        def of(rows: Floats, sums: Floats) -> Floats:
            n = _above(rows.sum(axis=-1))
            mean = np.clip(sums.sum(axis=-1) / n, self.means[0], self.means[-1])[..., np.newaxis]
            own = (loss.slope(self.means) - loss.slope(mean)) * sums
            own = own + (loss.offset(mean) - loss.offset(self.means)) * rows
            return np.asarray(own.sum(axis=-1) / n)

        return self._figure(of, -np.inf, np.inf)

    def lift(self, shares: int = 10) -> list[tuple[float, float]]:
        """Mean prediction and label of equal shares of the rows, in the order of predictions."""
        rows, sums = np.maximum(self.counts[:_PLACES], 0.0), self.counts[_PLACES:]
        part = np.minimum((np.cumsum(rows) - 0.5 * rows) / _above(rows.sum()) * shares, shares - 1)
        found = []
        for own in (part.astype(int) == k for k in range(shares)):
            n = float(rows[own].sum())
            if n > 0.0:
                found.append((float(rows[own] @ self.means[own]) / n, float(sums[own].sum()) / n))
        return found


@dataclass(frozen=True, eq=False)
class Losses:
    """The mean of a loss that rows have within a public limit.

    Attributes:
        sums: Rows, losses and squared losses, (3,), losses in units of the limit; without bias.
        draws: The same that are as likely, given what was released; (draws, 3).
        most: The limit.
        level: Probability with which an interval covers.
    """

    sums: Floats
    draws: Floats
    most: float
    level: float

    @classmethod
    def read(cls, sums: Floats, noise: float, matrix: Ints, most: float, level: float) -> Losses:
        """What noisy sums of the block say."""
        # As they are in whole numbers: most losses are small beside the difference of two sums.
        weights = np.abs(matrix[:, 0])
        rng = np.random.default_rng(0)
        noisy = sums + noise * np.vstack([np.zeros(3), rng.normal(size=(DRAWS, 3))])
        told = noisy / weights
        told[:, 1:] = 0.5 * (told[:, 1:] + told[:, :1])
        return cls(told[0], told[1:], most, level)

    @property
    def mean(self) -> Figure:
        """Mean loss."""
        rows = max(float(self.sums[0]), 1.0)
        own = self.draws[:, 1] / np.maximum(self.draws[:, 0], 1.0)
        value = float(self.sums[1]) / rows
        around = max(float(self.sums[2]) / rows - value**2, 0.0)
        noise = self.most * float(np.std(own))
        spread = math.hypot(noise, self.most * math.sqrt(around / rows))
        return Figure.around(self.most * value, spread, noise, self.level, low=0.0, high=self.most)


def loss_matrix() -> Ints:
    """What a row adds whose loss lies in each of 4,096 cells: 1, 2v - 1 and 2v^2 - 1, weighted."""
    v = value_points(3, 2 * _LOSSES)[_LOSSES:]
    moments = np.stack([np.ones(_LOSSES), 2.0 * v - 1.0, 2.0 * v**2 - 1.0])
    weighted = UNIT * np.sqrt(np.array(_MOMENTS))[:, np.newaxis] * moments
    return np.rint(weighted).astype(np.int64)


def _above(values: Floats) -> Floats:
    return np.maximum(values, 1e-9)


@dataclass(frozen=True, eq=False)
class Means:
    """What is released about counts or amounts beside their errors, and how it is read.

    Attributes:
        low: Logarithm of the smallest prediction that has a cell of its own.
        high: That of the largest one.
        points: Values of the label, rising from the lower to the upper end of its range.
        deviance: That of one row.
        most: Deviances beyond count as this.
    """

    low: float
    high: float
    points: Floats
    deviance: Deviance
    most: float

    @classmethod
    def of(cls, model: Judged, objective: str, target: tuple[float, float]) -> Means:
        """For a model whose labels lie in a range. No row is looked at."""
        first, last = target
        power = POWERS.get(objective) or _tweedie(model)
        exposure = model.public.get("exposure_bounds") or [1.0, 1.0]
        low, high = (m + math.log(e) for m, e in zip(model.margins, exposure, strict=True))
        high = min(high, math.log(last))
        low = min(max(low, high - _WIDEST), high - 0.05)
        usual = math.exp(min(max(_usual_margin(model), low), high)) * math.sqrt(math.prod(exposure))
        whole = power == 1.0 and first == int(first) and last == int(last)
        if whole and last - first < _LABELS:
            points = np.linspace(first, last, int(last - first) + 1)
        else:  # fine where labels are small, as most of them are
            points = first + (last - first) * np.linspace(0.0, 1.0, _LABELS) ** 3
        loss = Deviance(power, _LEAST * usual)
        ends = loss(np.array([first, last]), np.array([usual, usual]))
        return cls(low, high, points, loss, float(ends.max()))

    @property
    def means(self) -> Floats:
        """The prediction that stands for each cell."""
        edges = np.linspace(self.low, self.high, _PLACES + 1)
        return np.asarray(np.exp(0.5 * (edges[1:] + edges[:-1])))

    @property
    def _trees(self) -> tuple[Floats, Floats]:
        return tuple(
            UNIT * tree_matrix(_PLACES, *own) for own in ((_COUNT, _COUNT_TREE), (_SUM, _SUM_TREE))
        )  # type: ignore[return-value]

    def matrix(self) -> Ints:
        """What a row adds: (sums, cells times labels), labels of the first cell first."""
        rows, sums = self._trees
        one = np.ones(len(self.points))
        share = self.points / self.points[-1]
        whole = np.vstack([np.kron(rows, one), np.kron(sums, share)])
        # Up or down by public coins, so that many small labels are not all rounded one way.
        coins = np.random.default_rng(4).random(whole.shape)
        return np.floor(whole + np.where(whole == 0.0, 0.0, coins)).astype(np.int64)

    def cells(self, predictions: Floats, labels: Floats) -> Ints:
        """The cell of each row."""
        with np.errstate(divide="ignore", invalid="ignore"):
            place = (np.log(predictions) - self.low) / (self.high - self.low) * _PLACES
        place = np.clip(np.nan_to_num(place, nan=0.0, neginf=0.0, posinf=_PLACES), 0, _PLACES - 1)
        between = 0.5 * (self.points[1:] + self.points[:-1])
        label = np.searchsorted(between, np.nan_to_num(labels, nan=0.0), side="right")
        return np.asarray(place.astype(np.int64) * len(self.points) + label)

    def losses(self, predictions: Floats, labels: Floats) -> Ints:
        """The cell of each row by its deviance; what is no number counts as the most."""
        inside = np.clip(labels, self.points[0], self.points[-1])
        with np.errstate(all="ignore"):
            found = self.deviance(inside, np.asarray(predictions, dtype=np.float64)) / self.most
        found = np.clip(np.nan_to_num(found, nan=1.0, posinf=1.0), 0.0, 1.0)
        return np.asarray(value_cells(found, 3, 2 * _LOSSES) - _LOSSES)

    def read(self, sums: Floats, noise: float, share: float, square: float, level: float) -> Order:
        """The cells behind noisy sums."""
        rows, labels = self._trees
        solver = Solver.of(math.sqrt(share) * block_diag(rows, labels / self.points[-1]))
        counts = solver.covariance @ (solver.matrix.T @ sums)
        rng = np.random.default_rng(0)
        draws = counts + noise * rng.normal(size=(DRAWS, 2 * _PLACES)) @ solver.root.T
        return Order(counts, draws, self.means, square, self.deviance, level)


def _tweedie(model: Judged) -> float:
    config = ModelJson.config_of(model.booster)
    return float(config.objective_parameter("tweedie_variance_power"))


def _usual_margin(model: Judged) -> float:
    """The margin of the average row, by the covers in the model; public like the model."""
    saved = ModelJson.of(model.booster)
    margin = saved.intercept_margin
    for tree in saved.trees:
        cover = np.maximum(np.array(tree.covers)[tree.leaves], 0.0) + 1e-9
        margin += float(np.array(tree.leaf_values) @ cover / cover.sum())
    return margin
