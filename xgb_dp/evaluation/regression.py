"""Evaluation of a regression: what is released, and the figures computed from it.

Errors and targets are released as sums. For a model of counts or amounts, a row also lies in one of
64 cells of its prediction and has one of 128 values of its label. Its place in a Haar tree over the
cells is released twice, once as a row and once by the size of its label. The order of the cells
gives the Lorenz curve and what the model explains.

Figures are post-processing of released sums and cost nothing. Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from ..engine.saved_model import SavedModel
from ..errors import PrivacyParameterError
from ..noisy_sums import Floats, Ints
from ..parameters.parse import parse_number
from ..request.objectives import OBJECTIVES, POWERS
from .counts import CELLS, Solver, log_cells, tree_matrix, value_cells, value_points
from .figures import (
    FINE,
    FINE_UNIT,
    Figure,
    Limits,
    Moment,
    Moments,
    SharesBeyond,
    Values,
    figure_from_draws,
    moment_matrix,
    moment_weights,
    outside,
    quotient_from_draws,
    smoothed,
)
from .rows import Groups, Judged, ModelKind, scaled

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

        return quotient_from_draws(self, parts, -1.0, 1.0)

    @property
    def mean_ratio(self) -> Figure:
        """Mean prediction over mean label."""

        def parts(counts: Floats) -> Floats:
            rows, sums = _halves(counts)
            return np.stack([rows @ self.means, sums.sum(axis=-1)], axis=-1)

        return quotient_from_draws(self, parts, 0.0, np.inf)

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

        return figure_from_draws(self, of, -np.inf, np.inf)

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
    def from_model(cls, model: Judged, objective: str, target: tuple[float, float]) -> Means:
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
        assignments = np.random.default_rng(4).random(whole.shape)
        return np.floor(whole + np.where(whole == 0.0, 0.0, assignments)).astype(np.int64)

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
        solver = Solver.from_matrix(math.sqrt(share) * block_diag(rows, labels / self.points[-1]))
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
    config = SavedModel.from_config(model.booster)
    return float(config.objective_parameter("tweedie_variance_power"))


def _usual_margin(model: Judged) -> float:
    """The margin of the average row, by the covers in the model; public like the model."""
    saved = SavedModel.from_booster(model.booster)
    margin = saved.intercept_margin
    for tree in saved.trees:
        cover = np.maximum(np.array(tree.covers)[tree.leaves], 0.0) + 1e-9
        margin += float(np.array(tree.leaf_values) @ cover / cover.sum())
    return margin


# Numbers of a row are its error v, in units of the bound, and its target t in [-1, 1]. Squares are
# released in two parts, below half of the bound and beyond: most errors lie below, where the sum
# has a fourth of the noise, and the part beyond is at least 0.
ERRORS = (
    Moment("rows", lambda v: np.ones_like(v), 0.12),
    Moment("error", lambda v: v, 0.08),
    Moment("size", np.abs, 0.08, even=True),
    Moment("inner", lambda v: np.minimum(4.0 * v**2, 1.0), 0.08, even=True),
    Moment("outer", lambda v: np.maximum(4.0 * v**2 - 1.0, 0.0) / 3.0, 0.28),
    Moment("inner fourth", lambda v: np.minimum(16.0 * v**4, 1.0), 0.02),
    Moment("outer fourth", lambda v: np.maximum(16.0 * v**4 - 1.0, 0.0) / 15.0, 0.02),
)
TREE = 0.1
"""Squared weight of the tree of errors, of the squared norm of a row."""
TARGET = (
    Moment("target", lambda t: t, 0.06),
    Moment("target 2", lambda t: t**2, 0.08, even=True),
    Moment("target 3", lambda t: t**3, 0.02),
    Moment("target 4", lambda t: t**4, 0.02),
)
JOINT = (
    Moment("square by target", lambda p: p[0] ** 2 * p[1], 0.02),
    Moment("square by target 2", lambda p: p[0] ** 2 * p[1] ** 2, 0.02),
)
QUANTILE = (
    Moment("rows", lambda v: np.ones_like(v), 0.2),
    Moment("side", np.sign, 0.25),
    Moment("error", lambda v: v, 0.2),
    Moment("size", np.abs, 0.25, even=True),
    Moment("square", lambda v: v**2, 0.05),
    Moment("signed square", lambda v: v * np.abs(v), 0.05),
)

_INNER = {"inner": 0.25}
_SQUARE = {"inner": 0.25, "outer": 0.75}


@dataclass(frozen=True, eq=False)
class Errors:
    """What the released sums say about a regression, on one set of rows.

    An error is the prediction less the target, where a target beyond its declared bounds counts as
    the bound. Errors beyond the bound of errors count as that.

    Attributes:
        sums: Sums over the errors, and over the target where its bounds are known.
        errors: The errors by their size and sign; None for quantiles.
        bound: Largest size of an error.
        clipped: Whether errors may be beyond the bound although labels and predictions lie within
            the bounds of the target.
        width: Distance of the bounds of the target; None where none are known.
        level: Probability with which each interval covers.
        quantiles: The sums over the errors of each quantile that the model predicts.
        losses: Sums over deviances of counts and amounts; None for others.
        order: Counts and amounts by the order of their predictions; None for others.
        within: Bounds of the target that follow from where the training saw labels; None where
            they were declared.
        beyond: The shares of the rows whose label, error or loss lies beyond its bound.

    Examples:
        >>> amounts = xgb.DMatrix(table, 10 * table[:, 0])
        >>> squared = {**params, "objective": "reg:squarederror", "dp_target_bounds": (0, 10)}
        >>> trained = xgb.train(squared, amounts, 5)
        >>> report = xgb_dp.evaluate(trained, amounts, epsilon=0.5, delta=1e-6)
        >>> float(report.overall.rmse) < 2.9  # of amounts whose deviation is 2.9
        True
    """

    sums: Moments
    errors: Values | None
    bound: float
    clipped: bool
    width: float | None
    level: float
    quantiles: Mapping[float, Moments] = field(default_factory=dict)
    losses: Moments | None = None
    order: Order | None = None
    within: tuple[float, float] | None = None
    beyond: SharesBeyond = field(default_factory=SharesBeyond)

    @property
    def _error_moments(self) -> Moments:
        if self.quantiles:
            raise _no_quantiles()
        return self.sums

    def _fourth(self, of: Mapping[str, float]) -> float:
        """Sum of the squares of what rows add: of the inner part of a square, or of all of it."""
        sums = self.sums
        inner = max(sums.total({"inner fourth": 1.0 / 16.0}), 0.0)
        if of is _INNER:
            return inner
        # An outer fourth power is between 0.4 and 1 of the outer square, which has less noise.
        outer = max(sums.total({"outer": 1.0}), 0.0)
        fourth = min(max(sums.total({"outer fourth": 1.0}), 0.4 * outer), outer)
        return inner + 15.0 / 16.0 * fourth

    @property
    def _ends(self) -> tuple[tuple[Mapping[str, float], float], ...]:
        """Squares whose intervals make one, and their levels: lower ends are the larger of two."""
        strict = 0.5 + 0.5 * self.level
        return (_SQUARE, self.level), (_SQUARE, strict), (_INNER, strict)

    @property
    def rmse(self) -> Figure:
        """Root of the mean squared error."""
        sums = self._error_moments
        full, full_low, inner = (
            sums.mean(of, self._fourth(of), 0.0, 1.0, level) for of, level in self._ends
        )
        square = _at_least(full, full_low, inner)
        return square.moved(lambda value: self.bound * math.sqrt(value))

    @property
    def mae(self) -> Figure:
        """Mean absolute error."""
        share = self._mean("size", 0.0)
        return share.moved(lambda size: self.bound * size)

    @property
    def bias(self) -> Figure:
        """Mean error, above 0 where predictions are too large."""
        share = self._mean("error", -1.0)
        return share.moved(lambda error: self.bound * error)

    def _mean(self, name: str, low: float) -> Figure:
        sums = self._error_moments
        return sums.mean({name: 1.0}, sums.total(_SQUARE), low, 1.0)

    @property
    def r2(self) -> Figure:
        """Share of the variance of the target that is explained: 1 - MSE / variance.

        Raises:
            PrivacyParameterError: The bounds of the target are not known, or errors are clipped.
        """
        if self.quantiles:
            raise _no_quantiles()
        if self.width is None or (self.clipped and self.within is None):
            raise PrivacyParameterError(
                "R^2 needs the bounds of the target and errors that are not clipped. Give "
                "evaluate(..., target_bounds=(low, high)), and leave out `error_bound`."
            )
        scale = (2.0 * self.bound / self.width) ** 2  # of squared errors, in units of the target's
        quotients = []
        for of, level in self._ends:
            parts, noise, sampled = self._shares(of, scale)
            quotients.append(Figure.quotient(parts, noise, noise + sampled, level, low=0.0))
        return _at_least(*quotients).moved(lambda left: 1.0 - left)

    def _shares(self, of: Mapping[str, float], scale: float) -> tuple[Floats, Floats, Floats]:
        """Squared errors and squared deviations of the target, and their covariances.

        Both are sums over the same rows. The covariance of a row's squared error with its squared
        deviation makes the interval narrower; for the inner part alone it is taken as 0.
        """
        sums = self.sums
        n, mean = sums.count, sums.total({"target": 1.0}) / sums.count
        squares = sums.vector(of) * scale
        centred = {"target 2": 1.0, "target": -2.0 * mean, "rows": mean**2}
        pull = np.stack([squares, sums.vector(centred)])
        noise = pull @ sums.noise @ pull.T
        middle = sums.vector({"target": 1.0, "rows": -mean})
        # The noise of the mean makes the sum of squares around it smaller, by this on average.
        lost = float(middle @ sums.noise @ middle) / n
        parts = pull @ sums.totals + np.array([0.0, lost])
        squared = max(scale**2 * self._fourth(of), parts[0] ** 2 / n)
        around = sums.total(
            {
                "target 4": 1.0,
                "target 3": -4.0 * mean,
                "target 2": 6.0 * mean**2,
                "target": -4.0 * mean**3,
                "rows": mean**4,
            }
        )
        around = max(around, parts[1] ** 2 / n)
        both = 0.0
        if of is _SQUARE:
            cross = {"square by target 2": scale, "square by target": -2.0 * scale * mean}
            joint = sums.vector(cross) + mean**2 * squares
            # Half a deviation of its noise less: what is not known makes no interval narrower.
            both = float(joint @ sums.totals) - 0.5 * math.sqrt(float(joint @ sums.noise @ joint))
            both = min(max(both, 0.0), math.sqrt(squared * around))
        return parts, noise, np.array([[squared, both], [both, around]])

    def quantile(self, share: float) -> Figure:
        """The error below which a share of the rows lies; see :meth:`Values.quantile`."""
        if self.errors is None:
            raise _no_quantiles()
        return self.errors.quantile(share)

    def _pinball_at(self, level: float | None) -> tuple[float, Moments]:
        if level is None and len(self.quantiles) == 1:
            [level] = self.quantiles
        values = None if level is None else self.quantiles.get(level)
        if level is None or values is None:
            raise PrivacyParameterError(
                "`level` must be one of the levels that the model predicts: "
                f"{', '.join(f'{q:g}' for q in self.quantiles) or 'it predicts no quantiles'}."
            )
        return level, values

    def pinball_loss(self, level: float | None = None) -> Figure:
        """Mean check loss of a quantile.

        Args:
            level: Of the quantile; not needed for a model of one.

        Raises:
            PrivacyParameterError: The model does not predict this quantile.
        """
        level, sums = self._pinball_at(level)
        slope = 0.5 - level
        square = {"square": 0.25 + slope**2, "signed square": slope}
        share = sums.mean({"size": 0.5, "error": slope}, sums.total(square), 0.0, 1.0)
        return share.moved(lambda loss: self.bound * loss)

    def coverage(self, level: float | None = None) -> Figure:
        """Share of the rows whose label is at most the quantile; see :meth:`pinball_loss`."""
        _, sums = self._pinball_at(level)
        share = {"side": 0.5, "rows": 0.5}
        return sums.mean(share, sums.total(share), 0.0, 1.0)

    @property
    def deviance(self) -> Figure:
        """Mean deviance of counts or amounts; see :meth:`Order.deviance_saved`."""
        order, losses = self._in_order("deviance"), self.losses
        assert losses is not None
        share = losses.mean({"loss": 1.0}, losses.total({"loss 2": 1.0}), 0.0, 1.0)
        return share.moved(lambda loss: float(order.most * loss))

    @property
    def gini(self) -> Figure:
        """See :meth:`Order.gini`."""
        return self._in_order("gini").gini

    @property
    def mean_ratio(self) -> Figure:
        """See :meth:`Order.mean_ratio`."""
        return self._in_order("mean_ratio").mean_ratio

    @property
    def deviance_saved(self) -> Figure:
        """See :meth:`Order.deviance_saved`."""
        return self._in_order("deviance_saved").deviance_saved

    def lift(self, shares: int = 10) -> list[tuple[float, float]]:
        """See :meth:`Order.lift`."""
        return self._in_order("lift").lift(shares)

    def _in_order(self, name: str) -> Order:
        if self.order is None:
            raise PrivacyParameterError(
                f"`{name}` exists for models of count:poisson, reg:gamma and reg:tweedie only. "
                "Evaluate such a model, or use another figure."
            )
        return self.order

    def figures(self) -> dict[str, Figure]:
        """The plain figures by name; those that depend on public bounds begin with "clipped"."""
        out = {"rows": self.sums.rows}
        if self.quantiles:
            out |= {f"coverage of {level:g}": self.coverage(level) for level in self.quantiles}
            losses = {f"pinball loss of {q:g}": self.pinball_loss(q) for q in self.quantiles}
            return out | self.beyond.figures(losses)
        figures = {"rmse": self.rmse, "mae": self.mae, "bias": self.bias}
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            figures[f"error at {share:.0%}"] = self.quantile(share)
        if self.width is not None and (self.within is not None or not self.clipped):
            figures["r2"] = self.r2
        if self.order is not None:
            figures |= {"deviance": self.deviance, "deviance saved": self.deviance_saved}
            figures |= {"gini": self.gini, "mean ratio": self.mean_ratio}
        return out | self.beyond.figures(figures)


def _no_quantiles() -> PrivacyParameterError:
    return PrivacyParameterError(
        "A model of quantiles has no such figure. Use `coverage(level)` and `pinball_loss(level)`."
    )


def _at_least(full: Figure, full_low: Figure, inner: Figure) -> Figure:
    """A figure of two parts, of which the second is at least 0 and has most of the noise.

    The upper end is that of both parts. The lower end is the larger one of that of both, and of
    the first part alone: each misses with half of the probability that is left for it.
    """
    gap = full.value - inner.value
    more = max(gap - full.noise**2 / gap, 0.0) if gap > 0.0 else 0.0
    low = max(full_low.low, inner.low)
    high = max(full.high, low)
    return Figure(min(max(inner.value + more, low), high), low, high, full.noise)


_OF_MEANS = {"errors": 0.3, "deviance": 0.3, "order": 0.4}  # of the squared norm of a row
_POWER = 3  # cells of the tree are fine around 0, where most errors lie
_FAR_WIDER = 4.0  # than the range in which labels were seen: noise then says more than the tail
_NARROWED = (
    " (the declared range is far wider than that in which the training saw labels; "
    "`target_bounds` sets others, such as the declared ones)"
)
_COARSE = 128  # cells of errors, and of targets, where both are looked at together


@dataclass(frozen=True, eq=False)
class Regression(ModelKind):
    """What is released about a regression, and how it is read."""

    bound: float  # largest size of an error, in the unit of the target
    target: tuple[float, float] | None  # bounds of the target
    groups: Groups | None
    # Whether its bounds follow from what the training released of the labels.
    narrowed: bool = False
    levels: tuple[float, ...] = ()  # of the quantiles that the model predicts
    means: Means | None = None  # for counts and amounts
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def from_model(
        cls,
        model: Judged,
        groups: Groups | None,
        error_bound: float | None,
        target: tuple[float, float] | None,
    ) -> Regression:
        """The blocks for a model. No row is looked at."""
        known, narrowed = model.public.get("target_bounds"), False
        if target is None and known:
            declared = (float(known[0]), float(known[1]))
            target = _around(model.public.get("target_seen", declared), declared)
            narrowed = target != declared
        if error_bound is not None:
            bound = parse_number("error_bound", error_bound, low=0.0, open_low=True)
        elif target is not None:
            bound = target[1] - target[0]
        else:
            raise PrivacyParameterError(
                "`target_bounds` is missing. The evaluation of a regression needs a public range "
                "of the target, e.g. target_bounds=(0, 100): the width of it bounds the errors. "
                "Without one, give `error_bound` in the unit of the target: larger errors count "
                "as this bound, and the figures are those of clipped errors."
            )
        means = None
        if model.objective in ("count:poisson", "reg:gamma", "reg:tweedie"):
            means = Means.from_model(model, model.objective, label_bounds(model.objective, target))
        limits = _limits(model, bound, target, means, narrowed=narrowed)
        return cls(bound, target, groups, narrowed, model.levels, means, limits)

    @property
    def _rest(self) -> float:
        """Share of the squared norm of a row that the sums of all rows have but for the limits."""
        return self.share * self.limits.rest

    @property
    def _within(self) -> tuple[float, float] | None:
        return self.target if self.narrowed else None

    @property
    def _moments(self) -> tuple[Moment, ...]:
        """The sums over errors, and over errors and target."""
        if self.levels:
            return QUANTILE
        return ERRORS if self.target is None else (*ERRORS, *TARGET, *JOINT)

    @property
    def _part(self) -> float:
        """The factor of their shares."""
        if self.levels:
            return self._rest / len(self.levels)
        of_errors = 1.0 if self.means is None else _OF_MEANS["errors"]
        return self._rest * of_errors / (TREE + sum(one.share for one in self._moments))

    def _tree(self) -> Ints:
        tree = tree_matrix(CELLS, 0.0, TREE * self._part)[1:]
        return np.rint(FINE_UNIT * tree).astype(np.int64)

    def _matrices(self) -> list[Ints]:
        part, points = self._part, value_points(1, FINE)
        limits = self.limits.matrices(self.share)
        if self.levels:
            return [moment_matrix(QUANTILE, points, part)] * len(self.levels) + limits
        matrices = [moment_matrix(ERRORS, points, part), self._tree()]
        if self.target is not None:
            coarse = value_points(1, _COARSE)
            both = np.stack([np.repeat(coarse, _COARSE), np.tile(coarse, _COARSE)])
            matrices.append(moment_matrix(TARGET, points, part))
            matrices.append(moment_matrix(JOINT, both, part))
        if self.means is not None:
            matrices.append(scaled(self.means.loss_matrix(), self._rest * _OF_MEANS["deviance"]))
            matrices.append(scaled(self.means.order_matrix(), self._rest * _OF_MEANS["order"]))
        return matrices + limits

    def _cells(self, predictions: Floats, labels: Floats) -> list[Ints]:
        outputs = predictions.T if predictions.ndim == 2 else [predictions]
        # Clamped as in a training, so that errors and target are about the same labels. Whether a
        # label is below a quantile is not clamped.
        target = None if self.levels else self.target
        inside = labels if target is None else np.clip(labels, *target)
        with np.errstate(over="ignore", invalid="ignore"):
            errors = [(output - inside) / self.bound for output in outputs]
        cells = [value_cells(error, 1, FINE) for error in errors]
        beyond = {"errors": np.any([outside(error, -1.0, 1.0) for error in errors], axis=0)}
        if self.levels:
            return cells + self.limits.cells(beyond)
        cells.append(value_cells(errors[0], _POWER))
        if self.target is not None:
            low, high = self.target
            beyond["labels"] = outside(labels, low, high)
            with np.errstate(over="ignore", invalid="ignore"):
                place = 2.0 * (inside - low) / (high - low) - 1.0
            cells.append(value_cells(place, 1, FINE))
            coarse = value_cells(errors[0], 1, _COARSE) * _COARSE
            cells.append(coarse + value_cells(place, 1, _COARSE))
        if self.means is not None:
            losses = self.means.losses(predictions, labels)
            beyond["deviances"] = outside(losses, 0.0, 1.0)
            cells.append(self.means.loss_cells(losses))
            cells.append(self.means.order_cells(predictions, labels))
        return cells + self.limits.cells(beyond)

    def _view(self, sums: list[Floats], noise: float, level: float) -> Errors:
        moments, weights = self._moments, moment_weights(self._moments, self._part)
        width = None if self.target is None else self.target[1] - self.target[0]
        clipped = width is None or self.bound < width or self.narrowed
        sums, beyond = (sums[:-1], sums[-1:]) if self.limits.strings else (sums, [])
        released = [sums[0], *(sums[2:4] if self.target is not None and not self.levels else ())]
        totals = Moments.read(moments, np.concatenate(released), noise, weights, level)
        rows = float(totals.totals[0]), float(totals.noise[0, 0])
        known: dict[str, Any] = {
            "beyond": self.limits.read(beyond, self.share, noise, rows, level),
            "within": self._within,
        }
        if self.levels:
            read = [Moments.read(moments, block, noise, weights, level) for block in sums]
            known["quantiles"] = dict(zip(self.levels, read, strict=True))
            return Errors(totals, None, self.bound, clipped, width, level, **known)
        solver = Solver.from_matrix(np.vstack([np.full((1, CELLS), weights[0]), self._tree()]))
        tree = np.concatenate([sums[0][:1], sums[1]])
        values = Values.from_sums(solver, tree, noise, 0.0, self.bound, level, _POWER)
        if self.means is not None:
            matrix, share = self.blocks[len(sums) - 2].matrix, self._rest * _OF_MEANS["order"]
            square = self._square(totals)
            known |= {
                "losses": self.means.read_losses(sums[-2], noise, matrix, level),
                "order": self.means.read_order(sums[-1], noise, share, square, level),
            }
        return Errors(totals, values, self.bound, clipped, width, level, **known)

    def _square(self, sums: Moments) -> float:
        """Mean squared label."""
        assert self.target is not None
        low, high = self.target
        middle, half = low + (high - low) / 2.0, (high - low) / 2.0
        of = {"target 2": half**2, "target": 2.0 * middle * half, "rows": middle**2}
        return sums.total(of) / sums.count


def _around(seen: Sequence[float], declared: tuple[float, float]) -> tuple[float, float]:
    """Twice the range in which a training saw labels; the declared one unless it is far wider.

    Few labels that lie far away are not seen, so that figures within are those of clipped errors.
    """
    low, high = float(seen[0]), float(seen[1])
    margin = (high - low) / 2.0
    if declared[1] - declared[0] <= _FAR_WIDER * (high - low):
        return declared
    return max(declared[0], low - margin), min(declared[1], high + margin)


def _limits(
    model: Judged,
    bound: float,
    target: tuple[float, float] | None,
    means: Means | None,
    *,
    narrowed: bool,
) -> Limits:
    """What is clipped of a row; nothing where the objective has no other labels or errors."""
    strings: dict[str, str] = {}
    known = OBJECTIVES[model.objective]
    every = target is not None and target[0] <= known.lowest and known.highest <= target[1]
    if target is not None and not every and not model.levels:
        strings["labels"] = f"Labels below {target[0]:g} and above {target[1]:g} count as these"
        strings["labels"] += _NARROWED if narrowed else ""
    if not every or bound < known.highest - known.lowest:
        strings["errors"] = f"Errors beyond -{bound:g} and {bound:g} count as these"
    if means is not None:
        strings["deviances"] = (
            f"Predictions below {math.exp(means.low):g} and above {math.exp(means.high):g} count "
            f"as these in their order, and deviances above {means.most:g} count as that"
        )
    return Limits(strings)


def label_bounds(objective: str, target: tuple[float, float] | None) -> tuple[float, float]:
    """The range of the labels of counts or amounts."""
    if target is None:
        raise PrivacyParameterError(
            f"`target_bounds` is missing: the figures of {objective} need a public range "
            "of the labels, e.g. target_bounds=(0, 10)."
        )
    if target[0] < OBJECTIVES[objective].lowest:
        raise PrivacyParameterError(
            f"`target_bounds` must begin at 0 or later: labels of {objective} are not "
            "negative. Give their public range, e.g. target_bounds=(0, 10)."
        )
    return target
