"""Scores of a model on rows set aside, as sums that one row changes by a bounded amount.

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
from ..parameters.parse import parse_number
from ..request.objectives import QUANTILES
from ..request.settings import Settings
from . import KINDS

GRID = 1 << 16  # units of one row
_COUNT = GRID // 4  # the number of rows is released beside the sum of losses, with more noise
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
_SAID = {
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
    noise: float  # about the standard deviation of the noise in it
    rank: float  # what the runs of a selection are ordered by; larger is better
    events: tuple[GaussianEvent, ...] = ()  # what was drawn


@dataclass(frozen=True)
class Score:
    """What a selection judges models by, on rows that their training did not see.

    Privacy: every release spends budget; the noise is on sums of the rows.

    Attributes:
        name: "log_loss" (the default for classes), "brier", "accuracy", "auc" (two classes; from a
            noisy table of predictions, as in :func:`xgb_dp.evaluate`), "squared_error" (the default
            for regression), "absolute_error", "pinball_loss" (the default for quantiles: the mean
            check loss of all levels) or "time_log_loss" (the default for times: the negative log
            likelihood of the logarithm of the time).
        bound: Loss of one row from which on it counts as this: nats for "log_loss" (3 by default)
            and, in both directions, for "time_log_loss" (4); for the others the absolute error or
            check loss, in the unit of the target (a quarter of the width of ``dp_target_bounds`` by
            default). Public. The noise grows with it.

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
                raise PrivacyParameterError(
                    f"The score {self.name!r} takes no `bound`. Leave it out."
                )
            parse_number("bound", self.bound, low=0.0, open_low=True)

    @classmethod
    def default(cls, kind: str) -> Score:
        """The usual score of a kind of labels."""
        return cls(_DEFAULTS.get(kind, "log_loss"))

    def check(self, kind: str) -> None:
        """Refuse a score that these settings do not have.

        Args:
            kind: Result of :func:`predicted_kind`.

        Raises:
            PrivacyParameterError: Another kind.
        """
        if kind not in KINDS[self.name]:
            fitting = [name for name, kinds in KINDS.items() if kind in kinds]
            said = _SAID.get(kind, kind)
            raise PrivacyParameterError(
                f"The score {self.name!r} is not for settings that predict {said}. Use one of "
                f"{', '.join(map(repr, fitting))}."
            )

    @property
    def sensitivity2(self) -> int:
        """Squared L2 norm of what one row adds to the sums, in grid units."""
        return self._layout(of_persons=False).sensitivity2

    @property
    def _block(self) -> Block:
        """What a row in each cell adds."""
        return _auc_block() if self.name == "auc" else _loss_block()

    def _layout(self, *, of_persons: bool) -> Layout:
        unit = PERSON if of_persons else ROW
        return Layout((self._block,), unit=unit, name="score", all_sums=False)

    def event(self, mu: float, *, of_persons: bool = False) -> GaussianEvent:
        """Release of this score as a Gaussian of this mu.

        Args:
            mu: Shift by one row in standard deviations, > 0.
            of_persons: Whether all rows of a person together count as one row.

        Raises:
            BudgetError: The noise fits no grid.
        """
        sigma2 = max(math.ceil(self.sensitivity2 / mu**2), _LEAST_SIGMA2)
        if sigma2 > MOST_SIGMA2:
            raise BudgetError(
                "The noise of the score would be above 2^12 rows: epsilon is too small for a "
                "useful result. Take fewer runs or a larger epsilon."
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
        """Draw the noise and release the score. The exact sums leave this function in no form.

        Privacy: spends what `event` says.

        Args:
            prediction: Probabilities (rows,) or (rows, classes), values (rows,), or quantiles
                (rows, levels).
            labels: Labels, shape (rows,); of times both ends, (rows, 2).
            target: ``dp_target_bounds`` of regression.
            event: Result of :meth:`event`.
            persons: Code of the person of each row, 0, 1, ...; None where every row counts one.
            predicted: What the predictions are; needed for quantiles and times.
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
        """The cell of each row."""
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
        """The loss of each row in units of its bound; clamped to [0, 1] by the caller."""
        if target is not None:
            if self.name == "pinball_loss":
                assert predicted is not None
                return pinball(p, y, target, predicted.levels) / self._bound(target)
            if self.name == "time_log_loss":
                assert predicted is not None
                loss = time_log_loss(p, y, target, predicted) / self._bound(target)
                return np.asarray(0.5 + 0.5 * loss)  # of either sign
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
        """The mean loss from the noisy sum and the noisy number of rows; post-processing."""
        rows = max(float(sums[1]) / _COUNT, 1.0)
        rank = float(sums[0]) / GRID
        loss = min(max(0.5 - rank / rows, 0.0), 1.0)
        unit = self._bound(target) if self.name in _BOUNDED else 1.0
        scale = {"squared_error": unit**2, "time_log_loss": 2.0 * unit}.get(self.name, unit)
        value = scale * loss
        if self.name == "accuracy":
            value = 1.0 - loss
        elif self.name == "time_log_loss":  # of either sign
            value = unit * (2.0 * loss - 1.0)
        return ScoreValue(value, scale * (sigma / GRID / rows), rank)

    @staticmethod
    def _auc(sums: Floats, sigma: float) -> ScoreValue:
        """Area under the curve from a noisy table, as an evaluation reads it; post-processing."""
        solver = Solver.from_matrix(_auc_block().matrix)
        area = TwoClasses(two_classes(_AUC_GRID, solver, sums, sigma)).auc
        # Not-a-number is above nothing and below nothing: runs would have no order.
        rank = -math.inf if math.isnan(area.value) else area.value
        return ScoreValue(area.value, area.noise, rank)


@lru_cache(maxsize=1)
def _auc_block() -> Block:
    """The table of an evaluation, on the grid of scores."""
    return Block(counts_matrix(_AUC_GRID) * (GRID // UNIT))


@lru_cache(maxsize=1)
def _loss_block() -> Block:
    """Half less the loss, on the grid, and the number of rows."""
    losses = np.arange(-GRID // 2, GRID // 2 + 1)
    return Block(np.stack([losses, np.full(len(losses), _COUNT)]))


def choose_score(score: Score | str | None, kind: str) -> Score:
    """What models are judged by."""
    judge = Score.default(kind) if score is None else score
    judge = Score(judge) if isinstance(judge, str) else judge
    if not isinstance(judge, Score):
        raise PrivacyParameterError(
            "`score` must be an xgb_dp.Score or the name of one; got a "
            f"{type(judge).__name__}. Functions of exact scores would not be private."
        )
    judge.check(kind)
    return judge


@dataclass(frozen=True)
class Predicted:
    """What the predictions of a setting are; public."""

    levels: tuple[float, ...] = ()  # of quantiles
    distribution: str = "logistic"  # of the logarithm of times around that of the prediction
    scale: float = 1.0  # of the law

    @classmethod
    def from_settings(cls, s: Settings) -> Predicted:
        """What a checked setting predicts."""
        if s.objective.intervals:
            scale = float(s["aft_loss_distribution_scale"])
            return cls(distribution=s["aft_loss_distribution"], scale=scale)
        return cls(QUANTILES.levels(s)) if s["objective"] == "reg:quantileerror" else cls()


def predicted_kind(settings: Sequence[Settings]) -> str:
    """What scores can judge of all settings together."""
    if any(s.labels > 1 for s in settings):
        raise PrivacyParameterError(
            "Settings of several targets cannot be selected among: a score judges one label of "
            "each row. Select with one target, and train all of them with the setting found."
        )
    first, predicted = settings[0], {Predicted.from_settings(s).levels for s in settings}
    times = {s.objective.intervals for s in settings}
    several = any(len(levels) > 1 for levels in predicted)
    if len(times) > 1 or (several and len(predicted) > 1):
        raise PrivacyParameterError(
            "No score judges these settings together: all of a selection must predict a time, or "
            "none; and where one predicts several quantiles, all must have the same "
            "`quantile_alpha`."
        )
    if times == {True}:
        return "times"
    if len(predicted) == 1 and predicted != {()}:
        return "quantiles" if several else "quantile"
    return first.kind


def pinball(p: Floats, y: Floats, target: tuple[float, float], levels: Sequence[float]) -> Floats:
    """Mean check loss of the quantiles of each row, in the unit of the target."""
    predicted = np.clip(np.reshape(p, (len(y), len(levels))), *target)
    short = np.clip(y, *target)[:, np.newaxis] - predicted
    share = np.asarray(levels)
    return np.asarray(np.maximum(share * short, (share - 1.0) * short).mean(axis=1))


def time_log_loss(
    p: Floats, ends: Floats, target: tuple[float, float], predicted: Predicted
) -> Floats:
    """Negative log likelihood of the logarithm of each time, in nats."""
    from scipy import stats  # takes long to load

    distributions = {"normal": stats.norm, "logistic": stats.logistic, "extreme": stats.gumbel_l}
    distribution, scale = distributions[predicted.distribution], predicted.scale
    with np.errstate(all="ignore"):
        lower, upper = (np.log(np.clip(end, *target)) for end in ends.T)
        open_end = np.isinf(ends[:, 1])
        low, high = ((end - np.log(p)) / scale for end in (lower, upper))
        point = np.log(scale) - distribution.logpdf(low)
        within = -np.log(distribution.cdf(high) - distribution.cdf(low))
        return np.where(open_end, -distribution.logsf(low), np.where(lower == upper, point, within))
