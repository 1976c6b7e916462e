"""Evaluate regression models: the released blocks, and the figures computed from them.

Moments of errors and targets are released as sums. Models of counts or amounts have additional
blocks, see ``amounts.py``.

Figures are free post-processing of the released sums. Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError
from ..noisy_sums import Floats, Ints, NoisySums
from ..parameters.parse import parse_number
from ..request.objectives import OBJECTIVES
from .amounts import OF_MEANS, CellMeans, Means, Order, variance_power
from .counts import CELLS, DRAWS, Solver, tree_matrix, value_cells, value_points
from .figures import (
    FINE,
    FINE_UNIT,
    Figure,
    Limits,
    Moment,
    Moments,
    SharesBeyond,
    Values,
    moment_matrix,
    moment_weights,
    outside,
    shrunk,
)
from .report import Cost, EvaluationReport
from .rows import EvaluatedModel, Groups, ModelKind, Rows, scaled

# Moments of a row's error v, in units of the bound, and its target t, scaled to [-1, 1]. Squared
# errors are released in two parts, below and above half the bound. Most errors are below, where the
# sum has a quarter of the noise, and the part above is known to be nonnegative.
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
"""Share of a row's squared norm that goes to the tree of errors."""
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
    """Figures of a regression model for one set of rows.

    An error is the prediction minus the target. Targets are clipped to the target bounds, errors to
    the error bound.

    Attributes:
        sums: Moments of the errors, and of the target if its bounds are known.
        errors: Distribution of the errors; None for quantile regression.
        bound: Clipping bound of the absolute error.
        clipped: Whether errors can exceed the bound even if labels and predictions are within the
            target bounds.
        target: Target bounds; None if they are unknown.
        level: Confidence level of each interval.
        quantiles: Moments of the errors by level of the predicted quantiles.
        losses: Moments of the deviance; None unless the labels are counts or amounts.
        order: Figures of the ordering by prediction; None unless the labels are counts or amounts.
        within: Target bounds derived from the range of labels that the training released; None if
            the bounds were declared.
        beyond: Shares of rows with a label, error or deviance beyond its bound.
        scale: Number of rows in a count of 1.

    Examples:
        >>> amounts = xgb.DMatrix(table, 10 * table[:, 0])
        >>> squared = {**params, "objective": "reg:squarederror", "dp_target_bounds": (0, 10)}
        >>> trained = xgb.train(squared, amounts, 5)
        >>> report = xgb_dp.evaluate(trained, amounts, epsilon=0.5, delta=1e-6)
        >>> float(report.overall.rmse) < 2.9  # the standard deviation of the labels is 2.9
        True
    """

    sums: Moments
    errors: Values | None
    bound: float
    clipped: bool
    target: tuple[float, float] | None
    level: float
    quantiles: Mapping[float, Moments] = field(default_factory=dict)
    losses: Moments | None = None
    order: Order | None = None
    within: tuple[float, float] | None = None
    beyond: SharesBeyond = field(default_factory=SharesBeyond)
    scale: float = 1.0

    @property
    def _error_moments(self) -> Moments:
        if self.quantiles:
            raise _no_quantiles()
        return self.sums

    def _fourth(self, of: Mapping[str, float]) -> float:
        """Estimate the sum of fourth powers of the errors: the inner part only, or all."""
        sums = self.sums
        inner = max(sums.total({"inner fourth": 1.0 / 16.0}), 0.0)
        if of is _INNER:
            return inner
        # An outer fourth power is 0.4 to 1 times the outer square, whose sum has less noise.
        outer = max(sums.total({"outer": 1.0}), 0.0)
        fourth = min(max(sums.total({"outer fourth": 1.0}), 0.4 * outer), outer)
        return inner + 15.0 / 16.0 * fourth

    @property
    def _ends(self) -> tuple[tuple[Mapping[str, float], float], ...]:
        """Moments and confidence levels of the three intervals to combine."""
        strict = 0.5 + 0.5 * self.level
        return (_SQUARE, self.level), (_SQUARE, strict), (_INNER, strict)

    @property
    def rmse(self) -> Figure:
        """Root mean squared error."""
        sums = self._error_moments
        full, full_low, inner = (
            sums.mean(of, self._fourth(of), 0.0, 1.0, level) for of, level in self._ends
        )
        square = _combine_intervals(full, full_low, inner)
        return square.moved(lambda value: self.bound * math.sqrt(value))

    @property
    def mae(self) -> Figure:
        """Mean absolute error."""
        share = self._mean("size", 0.0)
        return share.moved(lambda size: self.bound * size)

    @property
    def bias(self) -> Figure:
        """Mean error; positive if predictions are too large on average."""
        share = self._mean("error", -1.0)
        return share.moved(lambda error: self.bound * error)

    def _mean(self, name: str, low: float) -> Figure:
        sums = self._error_moments
        return sums.mean({name: 1.0}, sums.total(_SQUARE), low, 1.0)

    @property
    def mean_label(self) -> Figure:
        """Mean of the target; requires its bounds."""
        return self._mean_of_target(0.0)

    @property
    def mean_prediction(self) -> Figure:
        """Mean of the prediction: :attr:`mean_label` plus :attr:`bias`."""
        return self._mean_of_target(1.0)

    def _mean_of_target(self, share: float) -> Figure:
        """Mean of the target plus `share` times the error, from the sums of both."""
        sums = self._error_moments
        if self.target is None:
            raise PrivacyParameterError(
                "Means of labels and predictions require target bounds. Call "
                "evaluate(..., target_bounds=(low, high))."
            )
        low, half, n = self.target[0], 0.5 * (self.target[1] - self.target[0]), sums.count
        of = {"target": 1.0, "error": share * self.bound / half}
        variance = sums.total({"target 2": 1.0}) / n - (sums.total({"target": 1.0}) / n) ** 2
        # The deviation of a sum is at most the sum of both deviations.
        deviation = max(variance, 0.0) ** 0.5
        deviation += of["error"] * max(sums.total(_SQUARE) / n, 0.0) ** 0.5
        square, most = n * deviation**2 + sums.total(of) ** 2 / n, 1.0 + of["error"]
        return sums.mean(of, square, -most, most).moved(lambda at: low + half * (1.0 + at))

    @property
    def r2(self) -> Figure:
        """Coefficient of determination: 1 - MSE / variance of the target.

        Raises:
            PrivacyParameterError: The target bounds are unknown, or errors are clipped.
        """
        if self.quantiles:
            raise _no_quantiles()
        if self.target is None or (self.clipped and self.within is None):
            raise PrivacyParameterError(
                "R^2 requires target bounds and errors that are not clipped. Call "
                "evaluate(..., target_bounds=(low, high)) without `error_bound`."
            )
        # From squared error units to target units.
        scale = (2.0 * self.bound / (self.target[1] - self.target[0])) ** 2
        quotients = []
        for of, level in self._ends:
            parts, noise, sampled = self._shares(of, scale)
            quotients.append(Figure.quotient(parts, noise, noise + sampled, level, low=0.0))
        return _combine_intervals(*quotients).moved(lambda left: 1.0 - left)

    def _shares(self, of: Mapping[str, float], scale: float) -> tuple[Floats, Floats, Floats]:
        """Return the residual and total sums of squares with their noise and sampling covariances.

        Both are sums over the same rows, and their covariance makes the interval of the quotient
        narrower. For the inner part of the squared errors alone it is assumed to be 0.
        """
        sums = self.sums
        n, mean = sums.count, sums.total({"target": 1.0}) / sums.count
        squares = sums.vector(of) * scale
        centred = {"target 2": 1.0, "target": -2.0 * mean, "rows": mean**2}
        pull = np.stack([squares, sums.vector(centred)])
        noise = pull @ sums.noise @ pull.T
        middle = sums.vector({"target": 1.0, "rows": -mean})
        # Noise in the mean biases the sum of squares around it downwards by this amount.
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
            # Subtract half a standard deviation of its noise, so that noise in the covariance does
            # not make the interval too narrow.
            both = float(joint @ sums.totals) - 0.5 * math.sqrt(float(joint @ sums.noise @ joint))
            both = min(max(both, 0.0), math.sqrt(squared * around))
        return parts, noise, np.array([[squared, both], [both, around]])

    def quantile(self, share: float) -> Figure:
        """Return a quantile of the error; see :meth:`Values.quantile`."""
        if self.errors is None:
            raise _no_quantiles()
        return self.errors.quantile(share)

    def _pinball_at(self, level: float | None) -> tuple[float, Moments]:
        if level is None and len(self.quantiles) == 1:
            [level] = self.quantiles
        values = None if level is None else self.quantiles.get(level)
        if level is None or values is None:
            raise PrivacyParameterError(
                "`level` must be one of the quantile levels of the model: "
                f"{', '.join(f'{q:g}' for q in self.quantiles) or 'it predicts no quantiles'}."
            )
        return level, values

    def pinball_loss(self, level: float | None = None) -> Figure:
        """Return the mean pinball loss of a predicted quantile.

        Args:
            level: Quantile level. Optional if the model predicts only one quantile.

        Raises:
            PrivacyParameterError: The model does not predict this quantile.
        """
        level, sums = self._pinball_at(level)
        slope = 0.5 - level
        square = {"square": 0.25 + slope**2, "signed square": slope}
        share = sums.mean({"size": 0.5, "error": slope}, sums.total(square), 0.0, 1.0)
        return share.moved(lambda loss: self.bound * loss)

    def coverage(self, level: float | None = None) -> Figure:
        """Return the share of rows with a label at or below the predicted quantile.

        Args:
            level: See :meth:`pinball_loss`.
        """
        _, sums = self._pinball_at(level)
        share = {"side": 0.5, "rows": 0.5}
        return sums.mean(share, sums.total(share), 0.0, 1.0)

    @property
    def deviance(self) -> Figure:
        """Mean deviance, for models of counts or amounts; see :meth:`Order.deviance_saved`."""
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

    def lift(self, share: float) -> Figure:
        """See :meth:`Order.lift`."""
        return self._in_order("lift").lift(share)

    def calibration_curve(self, shares: int = 10) -> list[tuple[float, Figure, float]]:
        """See :meth:`Order.calibration_curve`."""
        points = self._in_order("calibration_curve").calibration_curve(shares)
        return [(mean, label, self.scale * rows) for mean, label, rows in points]

    def mean_offset(self, *, log: bool) -> float:
        """Return the offset of margins that makes mean prediction and mean label equal.

        It is shrunk, so that noise alone does not move predictions.

        Args:
            log: Whether the margin is the logarithm of the prediction.
        """
        figure = self.mean_ratio if log else self.bias
        if not log:
            return -shrunk(figure.value, figure.noise)
        ratio = max(figure.value, 1e-9)
        return -shrunk(math.log(ratio), figure.noise / ratio)

    def _in_order(self, name: str) -> Order:
        if self.order is None:
            raise PrivacyParameterError(
                f"`{name}` is available only for count:poisson, reg:gamma and reg:tweedie. Use "
                "another figure."
            )
        return self.order

    def figures(self) -> dict[str, Figure]:
        """Return all figures by name; names of clipped ones begin with "clipped"."""
        out = {"rows": self.sums.rows.times(self.scale)}
        if self.quantiles:
            out |= {f"coverage of {level:g}": self.coverage(level) for level in self.quantiles}
            losses = {f"pinball loss of {q:g}": self.pinball_loss(q) for q in self.quantiles}
            return out | self.beyond.figures(losses)
        figures = {"rmse": self.rmse, "mae": self.mae, "bias": self.bias}
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            figures[f"error at {share:.0%}"] = self.quantile(share)
        if self.target is not None:
            figures |= {"mean label": self.mean_label, "mean prediction": self.mean_prediction}
            if self.within is not None or not self.clipped:
                figures["r2"] = self.r2
        if self.order is not None:
            figures |= {"deviance": self.deviance, "deviance saved": self.deviance_saved}
            figures |= {"gini": self.gini, "mean ratio": self.mean_ratio}
        return out | self.beyond.figures(figures)


def _no_quantiles() -> PrivacyParameterError:
    return PrivacyParameterError(
        "This figure is not available for quantile regression. Use `coverage(level)` and "
        "`pinball_loss(level)`."
    )


def _combine_intervals(full: Figure, full_low: Figure, inner: Figure) -> Figure:
    """Combine the intervals of a sum and of its inner part.

    The outer part is nonnegative, but its estimate is noisy. The upper end of the interval comes
    from the full sum. The lower end is the larger of the lower ends for the full sum and for the
    inner part, each computed for half of the error probability.
    """
    gap = full.value - inner.value
    more = max(shrunk(gap, full.noise), 0.0)
    low = max(full_low.low, inner.low)
    high = max(full.high, low)
    return Figure(min(max(inner.value + more, low), high), low, high, full.noise)


_OF_MEANS = {"errors": 0.3, "deviance": 0.3, "order": 0.4}  # shares of a row's squared norm
_POWER = 3  # cell spacing of the tree: fine around 0, where most errors are
# If the declared range is wider than the range of observed labels by this factor, it is narrowed:
# the additional noise would do more harm than clipping the tail.
_FAR_WIDER = 4.0
_NARROWED = (
    " (the declared range is much wider than the range in which the training saw labels; pass "
    "`target_bounds` to use other bounds, such as the declared ones)"
)
_COARSE = 128  # cells per axis in the joint block of errors and targets


@dataclass(frozen=True, eq=False)
class Regression(ModelKind):
    """Blocks and figures of a regression model."""

    bound: float  # clipping bound of the absolute error, in the unit of the target
    target: tuple[float, float] | None  # target bounds
    groups: Groups | None
    # The target bounds were derived from the range of labels that the training released.
    narrowed: bool = False
    levels: tuple[float, ...] = ()  # levels of the predicted quantiles
    means: Means | None = None  # additional blocks for counts and amounts
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def from_model(
        cls,
        model: EvaluatedModel,
        groups: Groups | None,
        error_bound: float | None,
        target: tuple[float, float] | None,
    ) -> Regression:
        """Build the blocks for a model, without reading any row."""
        known, narrowed = model.public.get("target_bounds"), False
        if target is None and known:
            declared = (float(known[0]), float(known[1]))
            target = _target_range(model.public.get("target_seen", declared), declared)
            narrowed = target != declared
        if error_bound is not None:
            bound = parse_number("error_bound", error_bound, low=0.0, open_low=True)
        elif target is not None:
            bound = target[1] - target[0]
        else:
            raise PrivacyParameterError(
                "`target_bounds` is missing. Evaluating a regression model requires a public "
                "bound on the errors. Pass the public range of the target, e.g. "
                "target_bounds=(0, 100). Otherwise pass `error_bound` in the unit of the target: "
                "larger errors are clipped to it, and the figures are based on clipped errors."
            )
        means = None
        if model.objective in OF_MEANS:
            means = Means.from_model(model, label_bounds(model.objective, target))
        limits = _limits(model, bound, target, means, narrowed=narrowed)
        return cls(bound, target, groups, narrowed, model.levels, means, limits)

    @property
    def _rest(self) -> float:
        """Share of a row's squared norm for the blocks for all rows, except the limits block."""
        return self.share * self.limits.rest

    @property
    def _moments(self) -> tuple[Moment, ...]:
        """Moments of errors and, if its bounds are known, of the target."""
        if self.levels:
            return QUANTILE
        return ERRORS if self.target is None else (*ERRORS, *TARGET, *JOINT)

    @property
    def _part(self) -> float:
        """Factor that scales the shares of the moments."""
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
            part = self._rest * _OF_MEANS["order"]
            matrices += [scaled(matrix, part) for matrix in self.means.order_matrices()]
        return matrices + limits

    def _cells(self, rows: Rows) -> list[Ints]:
        predictions, labels = rows.predictions, rows.labels
        outputs = predictions.T if predictions.ndim == 2 else [predictions]
        # Clip labels as in training, so that errors and targets refer to the same labels. Quantile
        # regression compares the original labels.
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
            cells += self.means.order_cells(rows)
        return cells + self.limits.cells(beyond)

    def _view(self, sums: list[Floats], noise: float, level: float) -> Errors:
        moments, weights = self._moments, moment_weights(self._moments, self._part)
        target = self.target
        clipped = target is None or self.bound < target[1] - target[0] or self.narrowed
        sums, beyond = (sums[:-1], sums[-1:]) if self.limits.strings else (sums, [])
        released = [sums[0], *(sums[2:4] if self.target is not None and not self.levels else ())]
        totals = Moments.read(moments, np.concatenate(released), noise, weights, level)
        rows = float(totals.totals[0]), float(totals.noise[0, 0])
        known: dict[str, Any] = {
            "beyond": self.limits.read(beyond, self.share, noise, rows, level),
            "within": self.target if self.narrowed else None,
        }
        if self.levels:
            read = [Moments.read(moments, block, noise, weights, level) for block in sums]
            known["quantiles"] = dict(zip(self.levels, read, strict=True))
            return Errors(totals, None, self.bound, clipped, target, level, **known)
        solver = Solver.from_matrix(np.vstack([np.full((1, CELLS), weights[0]), self._tree()]))
        tree = np.concatenate([sums[0][:1], sums[1]])
        values = Values.from_sums(solver, tree, noise, 0.0, self.bound, level, _POWER)
        if self.means is not None:
            matrix, share = self.blocks[len(sums) - 3].matrix, self._rest * _OF_MEANS["order"]
            square = self._square(totals)
            known |= {
                "losses": self.means.read_losses(sums[-3], noise, matrix, level),
                "order": self.means.read_order(
                    np.concatenate(sums[-2:]), noise, share, square, totals.count, level
                ),
            }
        return Errors(totals, values, self.bound, clipped, target, level, **known)

    def _square(self, sums: Moments) -> float:
        """Return the mean squared label."""
        assert self.target is not None
        low, high = self.target
        middle, half = low + (high - low) / 2.0, (high - low) / 2.0
        of = {"target 2": half**2, "target": 2.0 * middle * half, "rows": middle**2}
        return sums.total(of) / sums.count


_RATIOS, _LEVELS = 32, 4096  # cells of the ratio of two predictions, and of a value
_FARTHEST = 2.0  # larger logarithms of the ratio are clipped
_EACH, _SQUARE_SHARE = 0.27, 0.03  # shares of a row's squared norm for each of three values


@dataclass(frozen=True, eq=False)
class DoubleLift:
    """Comparison of two models of counts or amounts by the ratio of their predictions.

    Attributes:
        values: Labels, and predictions of the first and the second model, by cell of their ratio;
            all are clipped to the target bounds.
        beyond: Share of rows with a label beyond its bounds.
        scale: Number of rows in a count of 1.

    Examples:
        >>> amounts = xgb.DMatrix(table, 10 * table[:, 0])
        >>> gamma = {**params, "objective": "reg:gamma", "dp_target_bounds": (0.01, 10)}
        >>> pair = [xgb.train({**gamma, "max_depth": depth}, amounts, 5) for depth in (2, 4)]
        >>> report = xgb_dp.evaluate(pair, amounts, epsilon=2.0, delta=1e-6)
        >>> rows, label, first, second = report.double_lift()[0]
        >>> label.low <= float(label) <= label.high
        True
    """

    values: Sequence[CellMeans]
    beyond: SharesBeyond
    scale: float

    def double_lift(self, shares: int = 10) -> list[tuple[float, Figure, Figure, Figure]]:
        """Return (rows, mean label, mean first and second prediction) by ascending ratio.

        Args:
            shares: Number of groups of about equal size; fewer if the models hardly differ.
        """
        rows, (label, first, second) = self.values[0].counts[:_RATIOS], self.values
        return [
            (self.scale * float(rows @ m), label.mean(m), first.mean(m), second.mean(m))
            for m in label.shares(shares)
        ]

    def figures(self) -> dict[str, Figure]:
        """Return the means over all rows, by name."""
        names = "mean label", "mean of the first", "mean of the second"
        means = [one.mean(np.ones(_RATIOS)) for one in self.values]
        return self.beyond.figures(dict(zip(names, means, strict=True)))


@dataclass(frozen=True, eq=False)
class PairedMeans(ModelKind):
    """Blocks and figures of a comparison of two models of counts or amounts.

    The blocks are row counts by cell of the ratio of both predictions, and for labels and for the
    predictions of each model, sums by cell and the sum of squares.
    """

    target: tuple[float, float]
    power: float
    limits: Limits
    groups: Groups | None = None

    @classmethod
    def from_models(
        cls, models: tuple[EvaluatedModel, ...], target: tuple[float, float] | None
    ) -> PairedMeans:
        """Build the blocks for two models, without reading any row."""
        known = [Regression.from_model(model, None, None, target).target for model in models]
        low, high = zip(*filter(None, known), strict=True)
        wide = (min(low), max(high))
        strings = Regression.from_model(models[0], None, None, wide).limits.strings
        limits = Limits({name: text for name, text in strings.items() if name == "labels"})
        return cls(wide, variance_power(models[0]), limits)

    def _matrices(self) -> list[Ints]:
        points, count = np.linspace(0.0, 1.0, _LEVELS) ** 3, 1.0 - 3.0 * (_EACH + _SQUARE_SHARE)
        sums = math.sqrt(_EACH) * np.kron(np.eye(_RATIOS), points)
        squares = math.sqrt(_SQUARE_SHARE) * np.tile(points**2, _RATIOS)
        rows = scaled(FINE_UNIT * np.eye(_RATIOS), self.limits.rest * count)
        each = scaled(FINE_UNIT * np.vstack([sums, squares]), self.limits.rest)
        return [rows, each, each, each, *self.limits.matrices(1.0)]

    def _cells(self, rows: Rows) -> list[Ints]:
        predictions, labels = rows.predictions, rows.labels
        with np.errstate(all="ignore"):
            ratio = np.log(predictions[0] / predictions[1]) / _FARTHEST
        place, top = value_cells(ratio, _POWER, _RATIOS), self.target[1]
        inside = (np.clip(np.nan_to_num(v), *self.target) / top for v in (labels, *predictions))
        levels = (np.rint(np.cbrt(v) * (_LEVELS - 1)).astype(np.int64) for v in inside)
        beyond = {"labels": outside(labels, *self.target)}
        return [place, *(place * _LEVELS + v for v in levels), *self.limits.cells(beyond)]

    def report(
        self, released: NoisySums, cost: Cost, level: float, model: Any = None
    ) -> EvaluationReport:
        """Build the report."""
        of_rows, top = float(self.blocks[0].matrix[0, 0]), self.target[1]
        of_value, of_square = self.blocks[1].matrix[[0, -1], _LEVELS - 1].astype(np.float64)
        (count, *values), noise = [sums[0] for sums in released.sums], released.noise
        rng, shape = np.random.default_rng(0), (DRAWS, _RATIOS)
        rows = count / of_rows
        drawn = rows + noise / of_rows * rng.normal(size=shape)
        means = []
        for sums, power in zip(values[:3], (self.power, 2.0, 2.0), strict=True):
            total, unit = top / of_value * sums[:-1], top * noise / of_value
            draws = np.hstack([drawn, total + unit * rng.normal(size=shape)])
            square = top**2 * float(sums[-1]) / of_square / max(float(rows.sum()), 1.0)
            means.append(CellMeans(np.append(rows, total), draws, square, power, level, 0))
        every = float(rows.sum()), _RATIOS * (noise / of_rows) ** 2
        beyond = self.limits.read(values[3:], 1.0, noise, every, level)
        view = DoubleLift(means, beyond, float(released.layout.max_rows))
        return EvaluationReport("regression", view, {}, cost, level)


def _target_range(seen: Sequence[float], declared: tuple[float, float]) -> tuple[float, float]:
    """Return the declared range, or twice the observed range if the declared one is much wider.

    The observed range is noisy and can miss a few outliers, so figures computed with the narrowed
    range are named "clipped".
    """
    low, high = float(seen[0]), float(seen[1])
    margin = (high - low) / 2.0
    if declared[1] - declared[0] <= _FAR_WIDER * (high - low):
        return declared
    return max(declared[0], low - margin), min(declared[1], high + margin)


def _limits(
    model: EvaluatedModel,
    bound: float,
    target: tuple[float, float] | None,
    means: Means | None,
    *,
    narrowed: bool,
) -> Limits:
    """Describe what is clipped; nothing if the bounds cover every valid label and error."""
    strings: dict[str, str] = {}
    known = OBJECTIVES[model.objective]
    every = target is not None and target[0] <= known.lowest and known.highest <= target[1]
    if target is not None and not every and not model.levels:
        strings["labels"] = (
            f"Labels below {target[0]:g} or above {target[1]:g} are clipped to these bounds"
            f"{_NARROWED if narrowed else ''}"
        )
    if not every or bound < known.highest - known.lowest:
        strings["errors"] = (
            f"Errors below -{bound:g} or above {bound:g} are clipped to these bounds"
        )
    if means is not None:
        strings["deviances"] = (
            f"To sort rows, predictions{' for an exposure of 1' if means.exposures else ''} are "
            f"clipped to the range {math.exp(means.low):g} to "
            f"{math.exp(means.high):g}. Deviances above {means.most:g} are clipped to this bound"
        )
    return Limits(strings)


def label_bounds(objective: str, target: tuple[float, float] | None) -> tuple[float, float]:
    """Check the label range for models of counts or amounts."""
    if target is None:
        raise PrivacyParameterError(
            f"`target_bounds` is missing. Evaluating {objective} requires a public range of the "
            "labels. Pass e.g. target_bounds=(0, 10)."
        )
    if target[0] < OBJECTIVES[objective].lowest:
        raise PrivacyParameterError(
            f"The lower end of `target_bounds` must be at least 0, because labels of {objective} "
            "are nonnegative. Pass their public range, e.g. target_bounds=(0, 10)."
        )
    return target
