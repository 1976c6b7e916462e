"""Private scores of a model on held-out rows, computed from noisy sums of bounded sensitivity.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..accounting import PERSON, ROW, GaussianEvent
from ..errors import BudgetError, PrivacyParameterError
from ..evaluation.classification import TwoClasses
from ..evaluation.counts import CELLS, UNIT, ScoreGrid, Solver, counts_matrix, two_classes
from ..noisy_sums import MOST_SIGMA2, Block, Codes, Floats, Ints, Layout, release
from ..parameters.config import Config
from ..parameters.parse import parse_number
from ..request.objectives import QUANTILES
from . import KINDS

GRID = 1 << 16  # grid units per row
_COUNT = GRID // 4  # grid units of the row count, which gets more noise than the sum of losses
_LEAST_SIGMA2 = 1 << 20
_LOG_LOSS_BOUND = 3.0
_TIME_BOUND = 4.0
_AUC_GRID = ScoreGrid()
_DEFAULTS = {
    "regression": "squared_error",
    "quantile": "pinball_loss",
    "quantiles": "pinball_loss",
    "times": "time_log_loss",
}
_BOUNDED = ("log_loss", "squared_error", "absolute_error", "pinball_loss", "time_log_loss")
_KIND_NAMES = {
    "binary": "two classes",
    "multiclass": "several classes",
    "regression": "numbers",
    "quantile": "a quantile",
    "quantiles": "several quantiles",
}


@dataclass(frozen=True)
class ScoreValue:
    """A released score."""

    value: float  # in the unit of the score
    noise: float  # approximate standard deviation of the noise in `value`
    rank: float  # sort key of the runs of a selection; larger is better
    events: tuple[GaussianEvent, ...] = ()  # the releases made


@dataclass(frozen=True)
class Score:
    """Score by which a selection compares models on held-out rows.

    Privacy: every release spends budget; noise is added to sums over the rows.

    Attributes:
        name: "log_loss" (the default for classification), "brier", "accuracy", "auc" (binary only;
            from a noisy table of predictions, as in :func:`xgb_dp.evaluate`), "squared_error" (the
            default for regression), "absolute_error", "pinball_loss" (the default for quantiles:
            the mean pinball loss over all levels) or "time_log_loss" (the default for survival
            times: the negative log likelihood of the log time).
        bound: Clipping bound of the loss of one row. In nats for "log_loss" (3 by default) and
            "time_log_loss" (4 by default; clipped to [-bound, bound]). For the other losses, a
            bound on the absolute error or pinball loss in the unit of the target (a quarter of the
            width of ``dp_target_bounds`` by default). Public. The noise grows with it.

    Examples:
        >>> common = {"tree_method": "dp_hist", "objective": "binary:logistic"}
        >>> by_auc = xgb_dp.Score("auc")
        >>> best = xgb_dp.select(common, data, {"max_depth": [2, 4]}, epsilon=2.0, delta=1e-6,
        ...                      num_boost_round=5, score=by_auc)
        >>> best.score_name
        'auc'
    """

    name: str
    bound: float | None = None

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise PrivacyParameterError(f"`score` must be one of {', '.join(map(repr, KINDS))}.")
        if self.bound is not None:
            if self.name not in _BOUNDED:
                raise PrivacyParameterError(f"The score {self.name!r} has no `bound`. Omit it.")
            parse_number("bound", self.bound, low=0.0, open_low=True)

    @classmethod
    def default(cls, kind: str) -> Score:
        """Return the default score for a kind of predictions."""
        return cls(_DEFAULTS.get(kind, "log_loss"))

    def check(self, kind: str) -> None:
        """Check that the score supports a kind of predictions.

        Args:
            kind: Result of :func:`predicted_kind`.

        Raises:
            PrivacyParameterError: The score does not support this kind.
        """
        if kind not in KINDS[self.name]:
            fitting = [name for name, kinds in KINDS.items() if kind in kinds]
            predicted = _KIND_NAMES.get(kind, kind)
            raise PrivacyParameterError(
                f"The score {self.name!r} does not support settings that predict {predicted}. Use "
                f"one of {', '.join(map(repr, fitting))}."
            )

    @property
    def sensitivity2(self) -> int:
        """Squared L2 sensitivity of the sums to one row, in grid units."""
        return self._layout(of_persons=False).sensitivity2

    @property
    def _block(self) -> Block:
        """Contribution of a row in each cell."""
        return _auc_block() if self.name == "auc" else _loss_block()

    def _layout(self, *, of_persons: bool) -> Layout:
        unit = PERSON if of_persons else ROW
        return Layout((self._block,), unit=unit, name="score", all_sums=False)

    def event(self, mu: float, *, of_persons: bool = False) -> GaussianEvent:
        """Return the event of a release of this score with a given mu.

        Args:
            mu: Sensitivity to one row divided by the noise standard deviation, > 0.
            of_persons: Whether the privacy unit is a person, who counts like one row.

        Raises:
            BudgetError: The noise is too large for the grid.
        """
        sigma2 = max(math.ceil(self.sensitivity2 / mu**2), _LEAST_SIGMA2)
        if sigma2 > MOST_SIGMA2:
            raise BudgetError(
                "The noise of the score would exceed 2^12 rows, because epsilon is too small. Use "
                "fewer runs or a larger epsilon."
            )
        [event] = self._layout(of_persons=of_persons).events(sigma2)
        return event

    def release(
        self,
        prediction: Floats,
        labels: Floats,
        target: tuple[float, float] | None,
        event: GaussianEvent,
        persons: Codes | None = None,
        predicted: Predicted | None = None,
    ) -> ScoreValue:
        """Draw the noise and release the score; the exact sums are not returned.

        Privacy: spends the cost of `event`.

        Args:
            prediction: Probabilities (rows,) or (rows, classes), values (rows,), or quantiles
                (rows, levels).
            labels: Labels, shape (rows,), or both bounds of survival times, shape (rows, 2).
            target: ``dp_target_bounds`` for regression.
            event: Result of :meth:`event`.
            persons: Person code 0, 1, ... of each row; None if every row is its own privacy unit.
            predicted: Type of the predictions; required for quantiles and survival times.
        """
        cells = self._cells(prediction, labels, target, predicted)
        layout = self._layout(of_persons=persons is not None)
        released = release(layout, [event], [cells], persons)
        sums = released.sums[0][0]
        if self.name == "auc":
            score = self._auc(sums, released.noise)
        else:
            score = self._mean(sums, released.noise, target)
        return replace(score, events=released.events)

    def _bound(self, target: tuple[float, float] | None) -> float:
        if self.bound is not None:
            return self.bound
        if self.name == "time_log_loss":
            return _TIME_BOUND
        return (target[1] - target[0]) / 4.0 if target is not None else _LOG_LOSS_BOUND

    def _cells(
        self,
        p: Floats,
        y: Floats,
        target: tuple[float, float] | None,
        predicted: Predicted | None = None,
    ) -> Ints:
        """Return the cell of each row in the table."""
        p, y = np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if self.name == "auc":
            with np.errstate(divide="ignore", invalid="ignore"):
                logit = np.log(p) - np.log1p(-p)
            return _AUC_GRID.cell(logit) + CELLS * (y > 0.5).astype(np.int64)
        loss = np.clip(np.nan_to_num(self._losses(p, y, target, predicted), nan=1.0), 0.0, 1.0)
        return np.rint((0.5 - loss) * GRID).astype(np.int64) + GRID // 2

    def _losses(
        self,
        p: Floats,
        y: Floats,
        target: tuple[float, float] | None,
        predicted: Predicted | None,
    ) -> Floats:
        """Return the loss of each row divided by its bound; the caller clips it to [0, 1]."""
        if target is not None:
            if self.name == "pinball_loss":
                assert predicted is not None
                return pinball(p, y, target, predicted.levels) / self._bound(target)
            if self.name == "time_log_loss":
                assert predicted is not None
                loss = time_log_loss(p, y, target, predicted) / self._bound(target)
                return np.asarray(0.5 + 0.5 * loss)  # the loss can be negative
            error = np.abs(np.clip(p, *target) - np.clip(y, *target)) / self._bound(target)
            return error if self.name == "absolute_error" else error**2
        if p.ndim == 1:
            p = np.stack([1.0 - p, p], axis=1)
        right = np.arange(p.shape[1]) == y[:, np.newaxis]
        if self.name == "accuracy":
            return (np.argmax(p, axis=1) != y).astype(np.float64)
        if self.name == "brier":
            return np.asarray(((p - right) ** 2).sum(axis=1) / 2.0)
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log((p * right).sum(axis=1)) / self._bound(None))

    def _mean(self, sums: Floats, sigma: float, target: tuple[float, float] | None) -> ScoreValue:
        """Compute the mean loss from the noisy sum and row count (post-processing)."""
        rows = max(float(sums[1]) / _COUNT, 1.0)
        rank = float(sums[0]) / GRID
        loss = min(max(0.5 - rank / rows, 0.0), 1.0)
        unit = self._bound(target) if self.name in _BOUNDED else 1.0
        scale = {"squared_error": unit**2, "time_log_loss": 2.0 * unit}.get(self.name, unit)
        value = scale * loss
        if self.name == "accuracy":
            value = 1.0 - loss
        elif self.name == "time_log_loss":  # maps [0, 1] back to [-bound, bound]
            value = unit * (2.0 * loss - 1.0)
        return ScoreValue(value, scale * (sigma / GRID / rows), rank)

    @staticmethod
    def _auc(sums: Floats, sigma: float) -> ScoreValue:
        """Compute the AUC from a noisy table, like :func:`xgb_dp.evaluate` (post-processing)."""
        solver = Solver.from_matrix(_auc_block().matrix)
        area = TwoClasses(two_classes(_AUC_GRID, solver, sums, sigma)).auc
        # NaN compares false with everything, so the runs would have no order.
        rank = -math.inf if math.isnan(area.value) else area.value
        return ScoreValue(area.value, area.noise, rank)


@lru_cache(maxsize=1)
def _auc_block() -> Block:
    """Return the table of a binary evaluation, scaled to the grid of scores."""
    return Block(counts_matrix(_AUC_GRID) * (GRID // UNIT))


@lru_cache(maxsize=1)
def _loss_block() -> Block:
    """Return a table with 1/2 minus the loss, in grid units, and the row count."""
    losses = np.arange(-GRID // 2, GRID // 2 + 1)
    return Block(np.stack([losses, np.full(len(losses), _COUNT)]))


def choose_score(score: Score | str | None, kind: str) -> Score:
    """Parse the argument `score`, and check that it supports a kind of predictions."""
    chosen = Score.default(kind) if score is None else score
    chosen = Score(chosen) if isinstance(chosen, str) else chosen
    if not isinstance(chosen, Score):
        raise PrivacyParameterError(
            "`score` must be an xgb_dp.Score or the name of one; got a "
            f"{type(chosen).__name__}. A custom function of exact data would not be private."
        )
    chosen.check(kind)
    return chosen


@dataclass(frozen=True)
class Predicted:
    """Type of the predictions of a setting; public."""

    levels: tuple[float, ...] = ()  # quantile levels
    distribution: str = "logistic"  # error distribution of the log time
    scale: float = 1.0  # scale of that distribution

    @classmethod
    def from_settings(cls, s: Config) -> Predicted:
        """Return the type of the predictions of validated settings."""
        if s.objective.intervals:
            scale = float(s["aft_loss_distribution_scale"])
            return cls(distribution=s["aft_loss_distribution"], scale=scale)
        return cls(QUANTILES.levels(s)) if s["objective"] == "reg:quantileerror" else cls()


def predicted_kind(settings: Sequence[Config]) -> str:
    """Return the kind of predictions that all settings have in common."""
    if any(s.labels > 1 for s in settings):
        raise PrivacyParameterError(
            "A selection does not support several targets, because a score uses one label per "
            "row. Select with one target, then train all targets with the selected settings."
        )
    first, predicted = settings[0], {Predicted.from_settings(s).levels for s in settings}
    times = {s.objective.intervals for s in settings}
    several = any(len(levels) > 1 for levels in predicted)
    if len(times) > 1 or (several and len(predicted) > 1):
        raise PrivacyParameterError(
            "No score can compare these settings. Either all or none of them must predict "
            "survival times; and if one predicts several quantiles, all must have the same "
            "`quantile_alpha`."
        )
    if times == {True}:
        return "times"
    if len(predicted) == 1 and predicted != {()}:
        return "quantiles" if several else "quantile"
    return first.kind


def pinball(p: Floats, y: Floats, target: tuple[float, float], levels: Sequence[float]) -> Floats:
    """Return the mean pinball loss over the quantiles of each row, in the unit of the target."""
    predicted = np.clip(np.reshape(p, (len(y), len(levels))), *target)
    short = np.clip(y, *target)[:, np.newaxis] - predicted
    share = np.asarray(levels)
    return np.asarray(np.maximum(share * short, (share - 1.0) * short).mean(axis=1))


def time_log_loss(
    p: Floats, ends: Floats, target: tuple[float, float], predicted: Predicted
) -> Floats:
    """Return the negative log likelihood of the log time of each row, in nats."""
    from scipy import stats  # slow to import

    distributions = {"normal": stats.norm, "logistic": stats.logistic, "extreme": stats.gumbel_l}
    distribution, scale = distributions[predicted.distribution], predicted.scale
    with np.errstate(all="ignore"):
        lower, upper = (np.log(np.clip(end, *target)) for end in ends.T)
        open_end = np.isinf(ends[:, 1])
        low, high = ((end - np.log(p)) / scale for end in (lower, upper))
        point = np.log(scale) - distribution.logpdf(low)
        within = -np.log(distribution.cdf(high) - distribution.cdf(low))
        return np.where(open_end, -distribution.logsf(low), np.where(lower == upper, point, within))
