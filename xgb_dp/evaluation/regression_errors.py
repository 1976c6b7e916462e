"""Figures of a regression from the sums that were released of it.

All of it is post-processing of released sums and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..errors import PrivacyParameterError
from ..noisy_sums import Floats
from .amounts import Order
from .figure import Figure
from .limits import Beyond
from .values import Moment, Moments, Values

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
    beyond: Beyond = field(default_factory=Beyond)

    @property
    def _of_errors(self) -> Moments:
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
        sums = self._of_errors
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
        sums = self._of_errors
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

    def _of_level(self, level: float | None) -> tuple[float, Moments]:
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
        level, sums = self._of_level(level)
        slope = 0.5 - level
        square = {"square": 0.25 + slope**2, "signed square": slope}
        share = sums.mean({"size": 0.5, "error": slope}, sums.total(square), 0.0, 1.0)
        return share.moved(lambda loss: self.bound * loss)

    def coverage(self, level: float | None = None) -> Figure:
        """Share of the rows whose label is at most the quantile; see :meth:`pinball_loss`."""
        _, sums = self._of_level(level)
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
