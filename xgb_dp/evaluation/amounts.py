"""Evaluate models of counts and amounts (Poisson, gamma, Tweedie): deviance, ordering, calibration.

Predictions are binned into 64 cells and labels rounded to one of at most 128 values. Two Haar trees
over the prediction cells are released, one for row counts and one for label sums. They give the
Lorenz curve, the lift, the mean label by prediction and the deviance that the model explains. With
exposures, counts are binned by rate, and each row counts as its exposure instead of 1.

Figures are free post-processing of the released sums. Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from ..engine.saved_model import SavedModel
from ..noisy_sums import Floats, Ints
from ..request.objectives import POWERS
from .counts import Solver, log_cells, tree_matrix, value_cells, value_points
from .figures import (
    FINE_UNIT,
    Figure,
    Moment,
    Moments,
    figure_from_draws,
    moment_matrix,
    moving_average,
    parse_share,
    quotient_from_draws,
    top_sums,
)
from .rows import EvaluatedModel, Rows

OF_MEANS = ("count:poisson", "reg:gamma", "reg:tweedie")
"""Objectives of counts and amounts."""

_PLACES, _LABELS, _EXPOSURES = 64, 128, 512  # cells of the prediction, values of the others
_COUNT, _COUNT_TREE, _SUM, _SUM_TREE = 0.1, 0.2, 0.3, 0.4  # shares of a row's squared norm
_LOSSES = 4096  # cells of the deviance, fine near 0
_WIDEST = 14.0  # maximum range of log predictions
_ABOVE_USUAL = math.log(4.0)  # the highest rate is at least 4 times the usual one
_TINY = 1e-9
_LEAST = 1e-3  # floor of gamma labels, relative to the typical mean: the deviance at 0 is infinite
_OF_LOSS = (
    Moment("rows", np.ones_like, 0.2),
    Moment("loss", np.asarray, 0.6, even=True),
    Moment("loss 2", np.square, 0.2, even=True),
)


@dataclass(frozen=True)
class Deviance:
    """Unit deviance of a Tweedie distribution, whose variance is a power of the mean."""

    power: float  # 1 for count:poisson, 2 for reg:gamma, in between for reg:tweedie
    floor: float = 0.0  # smaller labels are raised to this if power is 2

    def __call__(self, y: Floats, mean: Floats) -> Floats:
        """Compute the deviance of labels from positive predicted means; >= 0."""
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
        """Return s(mean) in deviance = -s(mean) * y + o(mean) + (a function of y only)."""
        p = self.power
        return np.asarray(2.0 * np.log(mean) if p == 1.0 else 2.0 * mean ** (1 - p) / (1 - p))

    def offset(self, mean: Floats) -> Floats:
        """Return o(mean), the part of the deviance that depends on the prediction only."""
        p = self.power
        return np.asarray(2.0 * np.log(mean) if p == 2.0 else 2.0 * mean ** (2 - p) / (2 - p))


@dataclass(frozen=True, eq=False)
class CellMeans:
    """Row counts (or exposures) and sums of a nonnegative value by ordered cells."""

    counts: Floats  # estimated row counts, then sums of the value; unbiased, (2 * cells,)
    draws: Floats  # draws of `counts` that vary with the privacy noise, (draws, 2 * cells)
    square: float  # mean squared value; determines the variance of the value within cells
    power: float  # the variance within a cell is proportional to this power of its mean
    level: float  # confidence level of each interval
    reach: int  # neighbours over which the variances of cells are averaged
    per_row: float = field(default=1.0, kw_only=True)  # mean exposure, as a share of the largest

    @cached_property
    def sampled(self) -> Floats:
        """Draws of `counts` that vary with privacy noise and sampling of rows and values."""
        rng = np.random.default_rng(3)
        rows, sums = (
            np.maximum(moving_average(v, self.reach), 0.0) for v in np.split(self.counts, 2)
        )
        mean = sums / np.maximum(rows, 1.0)
        # The second moment of all values determines the factor of the variance.
        around = self.square * rows.sum() / self.per_row - self.per_row * (rows @ mean**2)
        shape = mean**self.power
        variance = max(around, 0.0) / max(float(rows @ shape), 1e-300) * shape
        moved = rng.normal(size=(len(self.draws), len(rows))) * np.sqrt(rows)
        values = rng.normal(size=moved.shape) * np.sqrt(rows * variance)
        return np.asarray(self.draws + np.hstack([moved, moved * mean + values]))

    def shares(self, shares: int) -> list[Floats]:
        """Return masks of consecutive cells with about equal numbers of rows, without empty ones.

        Masks are omitted if their estimated row count is below 1 or below twice its noise.
        """
        rows = np.maximum(_halves(self.counts)[0], 0.0)
        place = (np.cumsum(rows) - 0.5 * rows) / max(rows.sum(), _TINY) * shares
        part = np.minimum(place, shares - 1).astype(np.int64)
        masks = (np.asarray(part == k, dtype=np.float64) for k in range(shares))
        return [m for m in masks if self._counted(m)]

    def _counted(self, mask: Floats) -> bool:
        noise = float(np.std(_halves(self.draws)[0] @ mask))
        return float(_halves(self.counts)[0] @ mask) >= max(1.0, 2.0 * noise)

    def mean(self, mask: Floats) -> Figure:
        """Build a figure for the mean value of the rows in the cells of a mask."""

        def parts(counts: Floats) -> Floats:
            rows, sums = _halves(counts)
            return np.stack([sums @ mask, rows @ mask], axis=-1)

        return quotient_from_draws(self, parts, 0.0, np.inf)


@dataclass(frozen=True, eq=False)
class Order(CellMeans):
    """Label sums by prediction cell, and the figures of the ordering."""

    means: Floats  # representative prediction of each cell
    deviance: Deviance
    most: float  # clipping limit of the deviance
    unit: float = 1.0  # the largest exposure

    @property
    def gini(self) -> Figure:
        """Gini index of the ordered Lorenz curve; 0 for a random order.

        Rows are sorted by prediction, and the curve gives their cumulative share of all labels.
        With exposures, counts are sorted by predicted rate and weighted by exposure.
        """

        def parts(counts: Floats) -> Floats:
            rows, sums = _halves(counts)
            below = np.cumsum(rows, axis=-1) - 0.5 * rows
            whole = rows.sum(axis=-1) * sums.sum(axis=-1)
            return np.stack([2.0 * (sums * below).sum(axis=-1) - whole, whole], axis=-1)

        return quotient_from_draws(self, parts, -1.0, 1.0)

    @property
    def mean_ratio(self) -> Figure:
        """Mean prediction divided by mean label."""

        def parts(counts: Floats) -> Floats:
            rows, sums = _halves(counts)
            return np.stack([rows @ self.means, sums.sum(axis=-1)], axis=-1)

        return quotient_from_draws(self, parts, 0.0, np.inf)

    @property
    def deviance_saved(self) -> Figure:
        """Deviance explained by the model: mean deviance of a constant prediction minus its own.

        With exposures, the constant prediction of counts is the mean rate.
        """
        loss = self.deviance

        def of(counts: Floats) -> Floats:
            rows, sums = _halves(counts)
            n = np.maximum(rows.sum(axis=-1), _TINY)
            mean = np.clip(sums.sum(axis=-1) / n, self.means[0], self.means[-1])[..., np.newaxis]
            saved = (loss.slope(self.means) - loss.slope(mean)) * sums
            saved = saved + (loss.offset(mean) - loss.offset(self.means)) * rows
            return np.asarray(saved.sum(axis=-1) / n * self.per_row)

        return figure_from_draws(self, of, -np.inf, np.inf)

    def lift(self, share: float) -> Figure:
        """Return the mean label of the `share` of rows with the highest predictions, over all.

        With exposures: the rate of the `share` of all exposure with the highest predicted rates.
        """
        share = parse_share(share)

        def parts(counts: Floats) -> Floats:
            top = top_sums(*_halves(counts), share)
            return np.stack([top, share * _halves(counts)[1].sum(axis=-1)], axis=-1)

        return quotient_from_draws(self, parts, 0.0, 1.0 / share)

    def calibration_curve(self, shares: int = 10) -> list[tuple[float, Figure, float]]:
        """Return (mean prediction, mean label, number of rows) for equal shares of sorted rows.

        With exposures: (mean predicted rate, rate, total exposure).
        """
        out = []
        for mask in self.shares(shares):
            rows = _halves(self.counts)[0] * mask
            count = float(rows.sum())
            kept = np.maximum(rows, 0.0)
            mean, label = float(kept @ self.means / kept.sum()), self.mean(mask)
            out.append((mean / self.unit, label.times(1.0 / self.unit), count * self.unit))
        return out


def _halves(counts: Floats) -> tuple[Floats, Floats]:
    """Split into row counts and label sums, (..., cells) each."""
    cells = counts.shape[-1] // 2
    return counts[..., :cells], counts[..., cells:]


@dataclass(frozen=True, eq=False)
class Means:
    """Additional blocks and figures of models of counts or amounts: deviance and ordering."""

    low: float  # log of the smallest prediction that is not clipped
    high: float  # log of the largest prediction that is not clipped
    points: Floats  # values to which labels are rounded, ascending over the label range
    deviance: Deviance
    most: float  # clipping limit of the deviance
    exposures: tuple[float, float] | None  # bounds; None if rows are not sorted by rate

    @classmethod
    def from_model(cls, model: EvaluatedModel, target: tuple[float, float]) -> Means:
        """Build the blocks for a model with a label range, without reading any row."""
        first, last = target
        power = variance_power(model)
        exposure = model.public.get("exposure_bounds") or [1.0, 1.0]
        known = (float(exposure[0]), float(exposure[1])) if model.ranks_rates else None
        scale = exposure if known is None else (1.0, 1.0)
        low, high = (m + math.log(e) for m, e in zip(model.margins, scale, strict=True))
        highest = math.log(last)
        if known is not None:
            # Higher rates cost noise. At this one, the largest exposure has the largest label.
            highest = max(highest - math.log(known[1]), _usual_margin(model) + _ABOVE_USUAL)
        high = min(high, highest)
        low = min(max(low, high - _WIDEST), high - 0.05)
        usual = math.exp(min(max(_usual_margin(model), low), high)) * math.sqrt(math.prod(exposure))
        whole = power == 1.0 and first == int(first) and last == int(last)
        if whole and last - first < _LABELS:
            points = np.linspace(first, last, int(last - first) + 1)
        else:  # finer near the lower end, since most labels are small
            points = first + (last - first) * np.linspace(0.0, 1.0, _LABELS) ** 3
        loss = Deviance(power, _LEAST * usual)
        ends = loss(np.array([first, last]), np.array([usual, usual]))
        return cls(low, high, points, loss, float(ends.max()), known)

    @property
    def means(self) -> Floats:
        """Representative prediction of each cell."""
        edges = np.linspace(self.low, self.high, _PLACES + 1)
        return np.asarray(np.exp(0.5 * (edges[1:] + edges[:-1])))

    @property
    def _trees(self) -> tuple[Floats, Floats]:
        rows = FINE_UNIT * tree_matrix(_PLACES, _COUNT, _COUNT_TREE)
        return rows, FINE_UNIT * tree_matrix(_PLACES, _SUM, _SUM_TREE)

    def order_matrices(self) -> list[Ints]:
        """Return the contributions of a row to counts and to sums: (sums, cells * values) each.

        The values vary fastest. Both are largest for the largest exposure and label.
        """
        exposures = np.linspace(0.0, 1.0, _EXPOSURES) if self.exposures else np.ones(1)
        values = (exposures, self.points / self.points[-1])
        # Public random rounding avoids a systematic bias for small values.
        rng, out = np.random.default_rng(4), []
        for tree, share in zip(self._trees, values, strict=True):
            whole = np.kron(tree, share)
            offsets = np.where(whole == 0.0, 0.0, rng.random(whole.shape))
            out.append(np.floor(whole + offsets).astype(np.int64))
        return out

    def order_cells(self, rows: Rows) -> list[Ints]:
        """Return the cells of each row by prediction (or rate) and by exposure or label."""
        levels, (least, most) = _EXPOSURES if self.exposures else 1, self.exposures or (1.0, 1.0)
        exposures = 1.0 if rows.exposures is None else rows.exposures
        level = np.rint(np.clip(exposures, least, most) / most * (levels - 1)).astype(np.int64)
        with np.errstate(all="ignore"):
            predictions = rows.predictions / exposures
        place = log_cells(predictions, self.low, self.high, _PLACES)
        between = 0.5 * (self.points[1:] + self.points[:-1])
        label = np.searchsorted(between, np.nan_to_num(rows.labels, nan=0.0), side="right")
        return [place * levels + level, np.asarray(place * len(self.points) + label)]

    def read_order(
        self, sums: Floats, noise: float, share: float, square: float, rows: float, level: float
    ) -> Order:
        """Estimate counts and label sums from noisy sums; `share` is the blocks' norm share."""
        trees, labels = self._trees
        solver = Solver.from_matrix(math.sqrt(share) * block_diag(trees, labels / self.points[-1]))
        counts, draws = solver.counts(sums, noise, np.random.default_rng(0))
        least, unit = self.exposures or (1.0, 1.0)
        per_row = min(max(float(_halves(counts)[0].sum()) / rows, least / unit), 1.0)
        return Order(
            counts, draws, square, self.deviance.power, level, 2, unit * self.means,
            self.deviance, self.most, unit, per_row=per_row,
        )  # fmt: skip

    @staticmethod
    def loss_matrix() -> Ints:
        """Return the contribution of a row in each of 4,096 cells of the deviance."""
        return moment_matrix(_OF_LOSS, value_points(3, 2 * _LOSSES)[_LOSSES:], 1.0)

    def losses(self, predictions: Floats, labels: Floats) -> Floats:
        """Return the deviance of each row in units of the clipping limit; NaN becomes infinite."""
        inside = np.clip(labels, self.points[0], self.points[-1])
        with np.errstate(all="ignore"):
            loss = self.deviance(inside, np.asarray(predictions, dtype=np.float64)) / self.most
        return np.maximum(np.nan_to_num(loss, nan=np.inf, posinf=np.inf), 0.0)

    @staticmethod
    def loss_cells(losses: Floats) -> Ints:
        """Return the cell of each row by deviance."""
        return np.asarray(value_cells(losses, 3, 2 * _LOSSES) - _LOSSES)

    @staticmethod
    def read_losses(sums: Floats, noise: float, matrix: Ints, level: float) -> Moments:
        """Estimate moments of the deviance, in units of the limit, from a block's noisy sums."""
        # Use the rounded integer weights: rounding errors would matter for small mean deviances.
        weights = np.abs(matrix[:, 0]).astype(np.float64)
        return Moments.read(_OF_LOSS, sums, noise, weights, level)


def variance_power(model: EvaluatedModel) -> float:
    """Return the power of the mean to which the variance of the labels is proportional."""
    if model.objective in POWERS:
        return POWERS[model.objective]
    config = SavedModel.from_config(model.booster)
    return float(config.objective_parameter("tweedie_variance_power"))


def _usual_margin(model: EvaluatedModel) -> float:
    """Return the mean margin, weighted by the covers in the model; as public as the model."""
    saved = SavedModel.from_booster(model.booster)
    margin = saved.intercept_margin
    for tree in saved.trees:
        cover = np.maximum(np.array(tree.covers)[tree.leaves], 0.0) + 1e-9
        margin += float(np.array(tree.leaf_values) @ cover / cover.sum())
    return margin
