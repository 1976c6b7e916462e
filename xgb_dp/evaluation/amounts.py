"""Evaluation of a model of counts or amounts: deviance, and labels along the order of predictions.

A row lies in one of 64 cells of its prediction and has one of 128 values of its label. What is
released of it is its place in a Haar tree over the cells, once as a row and once by the size of its
label. The order of the cells gives the Lorenz curve and what the model explains.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from ..engine.saved_model import SavedModel
from ..noisy_sums import Floats, Ints
from ..request.losses import POWERS
from .figure import Figure, figure_of, quotient_of
from .grid import log_cells, tree_matrix, value_cells, value_points
from .posterior import Solver
from .rows import Judged
from .values import FINE_UNIT, Moment, Moments, moment_matrix, smoothed

_PLACES, _LABELS = 64, 128  # cells of the prediction, values of the label
_COUNT, _COUNT_TREE, _SUM, _SUM_TREE = 0.1, 0.2, 0.3, 0.4  # of the squared norm of a row
_LOSSES = 4096  # cells of the loss, fine where it is small
_WIDEST = 14.0  # of the range of predictions, on the scale of the logarithm
_TINY = 1e-9
_LEAST = 1e-3  # of the usual mean: smaller labels have its deviance, where that of 0 is infinite
_OF_LOSS = (
    Moment("rows", np.ones_like, 0.2),
    Moment("loss", np.asarray, 0.6, even=True),
    Moment("loss 2", np.square, 0.2, even=True),
)


@dataclass(frozen=True)
class Deviance:
    """Deviance of a row from its prediction, of a variance that is a power of the mean."""

    power: float  # 1 for counts, 2 for reg:gamma, between them for reg:tweedie
    floor: float = 0.0  # smaller labels count as this, with power 2

    def __call__(self, y: Floats, mean: Floats) -> Floats:
        """Of labels and predicted means above 0; at least 0."""
        p = self.power
        if p == 1.0:
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.where(y > 0, y * np.log(y / mean), 0.0)
            return np.asarray(2.0 * (logs - y + mean))
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
    """Rows and labels in each cell of the prediction, and what follows from their order."""

    counts: Floats  # estimated rows and sums of labels of the cells, (2 * cells,); without bias
    draws: Floats  # the same that are as likely, given the sums; (draws, 2 * cells)
    means: Floats  # the prediction that stands for each cell
    square: float  # mean squared label, for how much labels of one cell spread
    deviance: Deviance
    most: float  # deviances beyond count as this
    level: float

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

        def parts(counts: Floats) -> Floats:
            rows, sums = _halves(counts)
            below = np.cumsum(rows, axis=-1) - 0.5 * rows
            whole = rows.sum(axis=-1) * sums.sum(axis=-1)
            return np.stack([2.0 * (sums * below).sum(axis=-1) - whole, whole], axis=-1)

        return quotient_of(self, parts, -1.0, 1.0)

    @property
    def mean_ratio(self) -> Figure:
        """Mean prediction over mean label."""

        def parts(counts: Floats) -> Floats:
            rows, sums = _halves(counts)
            return np.stack([rows @ self.means, sums.sum(axis=-1)], axis=-1)

        return quotient_of(self, parts, 0.0, np.inf)

    @property
    def deviance_saved(self) -> Figure:
        """Mean deviance of the mean label less that of the predictions: what the model explains."""
        loss = self.deviance

        def of(counts: Floats) -> Floats:
            rows, sums = _halves(counts)
            n = np.maximum(rows.sum(axis=-1), _TINY)
            mean = np.clip(sums.sum(axis=-1) / n, self.means[0], self.means[-1])[..., np.newaxis]
            saved = (loss.slope(self.means) - loss.slope(mean)) * sums
            saved = saved + (loss.offset(mean) - loss.offset(self.means)) * rows
            return np.asarray(saved.sum(axis=-1) / n)

        return figure_of(self, of, -np.inf, np.inf)

    def lift(self, shares: int = 10) -> list[tuple[float, float]]:
        """Mean prediction and label of equal shares of the rows, in the order of predictions."""
        rows, sums = _halves(self.counts)
        rows = np.maximum(rows, 0.0)
        place = np.cumsum(rows) - 0.5 * rows
        part = np.minimum(place / max(rows.sum(), _TINY) * shares, shares - 1).astype(int)
        totals = (
            np.bincount(part, weights=values, minlength=shares).tolist()
            for values in (rows, rows * self.means, sums)
        )
        return [(m / n, label / n) for n, m, label in zip(*totals, strict=True) if n > 0.0]


def _halves(counts: Floats) -> tuple[Floats, Floats]:
    """Rows and sums of labels, (..., cells) each."""
    return counts[..., :_PLACES], counts[..., _PLACES:]


@dataclass(frozen=True, eq=False)
class Means:
    """What is released about counts or amounts beside their errors, and how it is read."""

    low: float  # logarithm of the smallest prediction that has a cell of its own
    high: float  # that of the largest one
    points: Floats  # values of the label, rising from the lower to the upper end of its range
    deviance: Deviance
    most: float  # deviances beyond count as this

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
        rows = FINE_UNIT * tree_matrix(_PLACES, _COUNT, _COUNT_TREE)
        return rows, FINE_UNIT * tree_matrix(_PLACES, _SUM, _SUM_TREE)

    def order_matrix(self) -> Ints:
        """What a row adds: (sums, cells times labels), labels of the first cell first."""
        rows, sums = self._trees
        one = np.ones(len(self.points))
        share = self.points / self.points[-1]
        whole = np.vstack([np.kron(rows, one), np.kron(sums, share)])
        # Up or down by public coins, so that many small labels are not all rounded one way.
        coins = np.random.default_rng(4).random(whole.shape)
        return np.floor(whole + np.where(whole == 0.0, 0.0, coins)).astype(np.int64)

    def order_cells(self, predictions: Floats, labels: Floats) -> Ints:
        """The cell of each row by its prediction and label."""
        place = log_cells(predictions, self.low, self.high, _PLACES)
        between = 0.5 * (self.points[1:] + self.points[:-1])
        label = np.searchsorted(between, np.nan_to_num(labels, nan=0.0), side="right")
        return np.asarray(place * len(self.points) + label)

    def read_order(
        self, sums: Floats, noise: float, share: float, square: float, level: float
    ) -> Order:
        """The cells behind noisy sums of a block with a share of the squared norm."""
        rows, labels = self._trees
        solver = Solver.of(math.sqrt(share) * block_diag(rows, labels / self.points[-1]))
        counts, draws = solver.counts(sums, noise, np.random.default_rng(0))
        return Order(counts, draws, self.means, square, self.deviance, self.most, level)

    @staticmethod
    def loss_matrix() -> Ints:
        """What a row adds whose loss lies in each of 4,096 cells."""
        return moment_matrix(_OF_LOSS, value_points(3, 2 * _LOSSES)[_LOSSES:], 1.0)

    def losses(self, predictions: Floats, labels: Floats) -> Floats:
        """The deviance of each row in units of the limit; what is no number is beyond it."""
        inside = np.clip(labels, self.points[0], self.points[-1])
        with np.errstate(all="ignore"):
            loss = self.deviance(inside, np.asarray(predictions, dtype=np.float64)) / self.most
        return np.maximum(np.nan_to_num(loss, nan=np.inf, posinf=np.inf), 0.0)

    @staticmethod
    def loss_cells(losses: Floats) -> Ints:
        """The cell of each row by its deviance."""
        return np.asarray(value_cells(losses, 3, 2 * _LOSSES) - _LOSSES)

    @staticmethod
    def read_losses(sums: Floats, noise: float, matrix: Ints, level: float) -> Moments:
        """The sums of losses, in units of the limit, behind noisy ones of a block."""
        # As they are in whole numbers: most losses are small beside the difference of two sums.
        weights = np.abs(matrix[:, 0]).astype(np.float64)
        return Moments.read(_OF_LOSS, sums, noise, weights, level)


def _tweedie(model: Judged) -> float:
    config = SavedModel.config_of(model.booster)
    return float(config.objective_parameter("tweedie_variance_power"))


def _usual_margin(model: Judged) -> float:
    """The margin of the average row, by the covers in the model; public like the model."""
    saved = SavedModel.of(model.booster)
    margin = saved.intercept_margin
    for tree in saved.trees:
        cover = np.maximum(np.array(tree.covers)[tree.leaves], 0.0) + 1e-9
        margin += float(np.array(tree.leaf_values) @ cover / cover.sum())
    return margin
