"""Evaluate survival models: concordance, the share of pairs that are ranked correctly.

Rows are binned into a table of 32 predictions by 32 times, one table for observed events and one
for censored rows. For each table the coefficients of a two-dimensional Haar tree are released.
Concordance, a statistic over pairs of rows, is a function of the binned counts.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..errors import PrivacyParameterError
from ..noisy_sums import Floats, Ints
from .counts import DRAWS, log_cells, tree_matrix
from .figures import Figure, Limits, SharesBeyond, figure_from_draws, outside, quotient_from_draws
from .rows import EvaluatedModel, Groups, ModelKind, Rows, scaled

_UNIT = 1 << 12  # grid units per row; finer than elsewhere since 2D tree entries are small
_PLACES = 32  # cells per axis: prediction and time
_ROOT, _TREE = 0.3, 0.7  # shares of a row's squared norm, per axis
_WIDEST = 12.0  # maximum range of log predictions


def _tree() -> Floats:
    return tree_matrix(_PLACES, _ROOT, _TREE)


@dataclass(frozen=True, eq=False)
class Times:
    """Figures of a survival model for one set of rows."""

    counts: Floats  # estimated rows by (observed/censored, prediction, time); noisy, unbiased
    draws: Floats  # counts redrawn from the noise distribution, given the sums
    # Noise covariance along one axis of a table, in units of counts. The covariance of a whole
    # table is the Kronecker product of this matrix with itself.
    error: Floats
    level: float  # confidence level of each interval
    beyond: SharesBeyond  # share of rows with times beyond the bounds
    scale: float = 1.0  # number of rows in a count of 1

    @cached_property
    def sampled(self) -> Floats:
        """Draws of counts that include sampling from the population."""
        rng = np.random.default_rng(3)
        # Variances are estimated from the two marginals, which have little noise.
        places, when = (np.maximum(self.counts.sum(axis=axis), 0.0) for axis in (2, 1))
        total = np.maximum(places.sum(axis=1), 1.0)
        around = (
            places[:, :, np.newaxis] * when[:, np.newaxis, :] / total[:, np.newaxis, np.newaxis]
        )
        return np.asarray(self.draws + rng.normal(size=self.draws.shape) * np.sqrt(around))

    @property
    def rows(self) -> Figure:
        """Number of rows (or persons)."""
        rows = figure_from_draws(self, lambda counts: counts.sum(axis=(-1, -2, -3)), 0.0, np.inf)
        return rows.times(self.scale)

    @property
    def observed(self) -> Figure:
        """Share of rows with an observed event (uncensored)."""

        def parts(counts: Floats) -> Floats:
            observed = counts[..., 0, :, :].sum(axis=(-1, -2))
            return np.stack([observed, counts.sum(axis=(-1, -2, -3))], axis=-1)

        return quotient_from_draws(self, parts, 0.0, 1.0)

    @property
    def concordance(self) -> Figure:
        """Harrell's concordance index; 0.5 for a random order.

        Among pairs of rows whose earlier event was observed, the share for which the model also
        predicts the earlier time. Pairs with predictions in the same cell count half; pairs with
        times in the same cell are excluded.
        """
        # Products of counts that share noise are biased upwards; subtract the expected bias.
        above = np.triu(self.error, 1).sum()
        order = above + 0.5 * np.trace(self.error)
        extra = above * order, above * self.error.sum()

        def parts(counts: Floats) -> Floats:
            first, all_rows = counts[..., 0, :, :], counts.sum(axis=-3)
            later = _after(all_rows)  # in time
            ties = np.swapaxes(later, -1, -2)
            longer = _after(ties)
            right = (np.swapaxes(first, -1, -2) * (longer + 0.5 * ties)).sum(axis=(-1, -2))
            pairs = (first.sum(axis=-2) * later.sum(axis=-2)).sum(axis=-1)
            return np.stack([right - extra[0], pairs - extra[1]], axis=-1)

        figure = quotient_from_draws(self, parts, 0.0, 1.0)
        # For pairs within one cell, assume an order anywhere between random and as good as for
        # other pairs, and widen the interval accordingly.
        same_time, same_prediction = self._within_cells
        more = max(figure.value - 0.5, 0.0)
        low, high = (
            max(figure.low - same_time * more, 0.0),
            min(figure.high + same_prediction * more, 1.0),
        )
        return replace(figure, low=low, high=high)

    @property
    def _within_cells(self) -> tuple[float, float]:
        """Share of pairs with times in the same cell, and with predictions in the same cell."""
        first, every = self.counts[0], self.counts.sum(axis=0)
        whole = max(float(first.sum() * every.sum()), 1.0)
        same_time, same_prediction = (
            float(first.sum(axis=axis) @ every.sum(axis=axis)) / whole for axis in (0, 1)
        )
        return min(max(same_time, 0.0), 1.0), min(max(same_prediction, 0.0), 1.0)

    def figures(self) -> dict[str, Figure]:
        """Return all figures by name; names of clipped ones begin with "clipped"."""
        clipped = self.beyond.figures({"concordance": self.concordance})
        return {"rows": self.rows, "observed": self.observed, **clipped}


def _after(counts: Floats) -> Floats:
    """Sum the counts of all later cells, for each cell along the last axis."""
    whole = counts.sum(axis=-1, keepdims=True)
    return np.asarray(whole - np.cumsum(counts, axis=-1))


@dataclass(frozen=True, eq=False)
class Survival(ModelKind):
    """Blocks and figures of a survival model."""

    low: float  # log of the smallest prediction that is not clipped
    high: float  # log of the largest prediction that is not clipped
    target: tuple[float, float]  # logs of the bounds of times
    groups: Groups | None
    limits: Limits

    @classmethod
    def from_model(
        cls, model: EvaluatedModel, groups: Groups | None, target: tuple[float, float] | None
    ) -> Survival:
        """Build the blocks for a model, without reading any row."""
        known = target or model.public.get("target_bounds")
        if not known or not known[0] > 0.0:
            raise PrivacyParameterError(
                "`target_bounds` is missing or its lower end is not above 0. Evaluating "
                "survival:aft requires a public range of times: pass e.g. target_bounds=(1, 3000)."
            )
        first, last = (math.log(float(v)) for v in known)
        low, high = model.margins
        low, high = max(low, first - 2.0), min(high, last + 2.0)
        if not high - low >= 0.05:
            middle = min(max(0.5 * (low + high), first), last)
            low, high = middle - 0.025, middle + 0.025
        if high - low > _WIDEST:
            middle = 0.5 * (low + high)
            low, high = middle - _WIDEST / 2.0, middle + _WIDEST / 2.0
        limits = Limits(
            {"times": f"Times below {known[0]:g} or above {known[1]:g} are clipped to these bounds"}
        )
        return cls(low, high, (first, last), groups, limits)

    @property
    def _rest(self) -> float:
        return self.share * self.limits.rest

    def _matrices(self) -> list[Ints]:
        both = np.kron(np.eye(2), np.kron(_tree(), _tree()))
        whole = np.rint(_UNIT * both).astype(np.int64)
        return [scaled(whole, self._rest), *self.limits.matrices(self.share)]

    def _cells(self, rows: Rows) -> list[Ints]:
        """Assign cells; labels are lower and upper bounds of the time, (rows, 2)."""
        lower, upper = rows.labels[:, 0], rows.labels[:, 1]
        observed = np.isfinite(upper)
        with np.errstate(all="ignore"):
            time = np.where(observed, np.sqrt(lower) * np.sqrt(upper), lower)
        place = log_cells(rows.predictions, self.low, self.high, _PLACES)
        when = log_cells(time, *self.target, _PLACES)
        beyond = {"times": outside(time, *np.exp(self.target))}
        cells = ((~observed).astype(np.int64) * _PLACES + place) * _PLACES + when
        return [cells, *self.limits.cells(beyond)]

    def _view(self, sums: list[Floats], noise: float, level: float) -> Times:
        inverse = np.linalg.inv(math.sqrt(_UNIT * math.sqrt(self._rest)) * _tree())
        shape = (2, _PLACES, _PLACES)
        moved = noise * np.random.default_rng(0).normal(size=(DRAWS, *shape))
        counts = inverse @ sums[0].reshape(shape) @ inverse.T
        draws = counts + inverse @ moved @ inverse.T
        error = noise * inverse @ inverse.T
        rows = float(counts.sum()), 2.0 * float(error.sum()) ** 2
        beyond = self.limits.read(sums[1:], self.share, noise, rows, level)
        return Times(counts, draws, error, level, beyond)
