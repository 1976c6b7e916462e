"""Evaluation of a model of times: the share of pairs that predictions put in the right order.

A row lies in one of 32 cells of its prediction, one of 32 cells of its time, and one of two halves
by whether the end of its time was seen. A Haar tree in both directions of each half is released.
Concordance, which looks at pairs of rows, is a function of these counts.

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
from .rows import Groups, Judged, ModelKind, scaled

_UNIT = 1 << 12  # grid units of what one row adds: in a tree of two directions all are small
_PLACES = 32  # cells of the prediction, and of the time
_ROOT, _TREE = 0.3, 0.7  # of the squared norm of a row in one direction
_WIDEST = 12.0  # of the range of predictions, on the scale of the logarithm


def _tree() -> Floats:
    return tree_matrix(_PLACES, _ROOT, _TREE)


@dataclass(frozen=True, eq=False)
class Times:
    """What the released sums say about a model of times, on one set of rows."""

    counts: Floats  # estimated rows by (seen or not, prediction, time); noisy, without bias
    draws: Floats  # counts that are as likely, given the sums
    # Covariance of the noise of two cells of one half, by rows and columns of the tree, in the unit
    # of the counts: its Kronecker product with itself.
    error: Floats
    level: float  # probability with which each interval covers
    beyond: SharesBeyond  # the share of the rows whose time lies beyond its bounds

    @cached_property
    def sampled(self) -> Floats:
        """Draws of the counts of other rows of the same population."""
        rng = np.random.default_rng(3)
        # By the counts of predictions and of times alone, which have little noise.
        places, when = (np.maximum(self.counts.sum(axis=axis), 0.0) for axis in (2, 1))
        total = np.maximum(places.sum(axis=1), 1.0)
        around = (
            places[:, :, np.newaxis] * when[:, np.newaxis, :] / total[:, np.newaxis, np.newaxis]
        )
        return np.asarray(self.draws + rng.normal(size=self.draws.shape) * np.sqrt(around))

    @property
    def rows(self) -> Figure:
        """Number of rows, or persons."""
        return figure_from_draws(self, lambda counts: counts.sum(axis=(-1, -2, -3)), 0.0, np.inf)

    @property
    def seen(self) -> Figure:
        """Share of the rows of which the end of the time was seen."""

        def parts(counts: Floats) -> Floats:
            seen = counts[..., 0, :, :].sum(axis=(-1, -2))
            return np.stack([seen, counts.sum(axis=(-1, -2, -3))], axis=-1)

        return quotient_from_draws(self, parts, 0.0, 1.0)

    @property
    def concordance(self) -> Figure:
        """Harrell's index: the share of pairs, whose earlier time was seen to end, in which the
        model predicts the earlier time for that row. Half of those of one cell of the prediction
        count; pairs within one cell of the time are left out. 0.5 for no order at all.
        """
        # What the noise, which both rows of a pair share, adds to products of counts on average.
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
        # Of pairs within one cell it is only known that they are in order as often as others, or
        # by chance, or anything between both.
        alike, tied = self._within_cells
        more = max(figure.value - 0.5, 0.0)
        low, high = max(figure.low - alike * more, 0.0), min(figure.high + tied * more, 1.0)
        return replace(figure, low=low, high=high)

    @property
    def _within_cells(self) -> tuple[float, float]:
        """Shares of all pairs whose times lie in one cell, and whose predictions do."""
        first, every = self.counts[0], self.counts.sum(axis=0)
        whole = max(float(first.sum() * every.sum()), 1.0)
        alike, tied = (
            float(first.sum(axis=axis) @ every.sum(axis=axis)) / whole for axis in (0, 1)
        )
        return min(max(alike, 0.0), 1.0), min(max(tied, 0.0), 1.0)

    def figures(self) -> dict[str, Figure]:
        """The plain figures by name; those that depend on public bounds begin with "clipped"."""
        clipped = self.beyond.figures({"concordance": self.concordance})
        return {"rows": self.rows, "seen": self.seen, **clipped}


def _after(counts: Floats) -> Floats:
    """Counts of all cells behind each, along the last axis."""
    whole = counts.sum(axis=-1, keepdims=True)
    return np.asarray(whole - np.cumsum(counts, axis=-1))


@dataclass(frozen=True, eq=False)
class Survival(ModelKind):
    """What is released about times, and how it is read."""

    low: float  # logarithm of the smallest prediction that has a cell of its own
    high: float  # that of the largest one
    target: tuple[float, float]  # logarithms of the bounds of times
    groups: Groups | None
    limits: Limits

    @classmethod
    def from_model(
        cls, model: Judged, groups: Groups | None, target: tuple[float, float] | None
    ) -> Survival:
        """The blocks for a model. No row is looked at."""
        known = target or model.public.get("target_bounds")
        if not known or not known[0] > 0.0:
            raise PrivacyParameterError(
                "`target_bounds` is missing, or does not begin above 0: the figures of "
                "survival:aft need a public range of times, e.g. target_bounds=(1, 3000)."
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
            {"times": f"Times below {known[0]:g} and above {known[1]:g} count as these"}
        )
        return cls(low, high, (first, last), groups, limits)

    @property
    def _rest(self) -> float:
        return self.share * self.limits.rest

    def _matrices(self) -> list[Ints]:
        both = np.kron(np.eye(2), np.kron(_tree(), _tree()))
        whole = np.rint(_UNIT * both).astype(np.int64)
        return [scaled(whole, self._rest), *self.limits.matrices(self.share)]

    def _cells(self, predictions: Floats, labels: Floats) -> list[Ints]:
        """Labels are both ends of the time, (rows, 2)."""
        lower, upper = labels[:, 0], labels[:, 1]
        seen = np.isfinite(upper)
        with np.errstate(all="ignore"):
            time = np.where(seen, np.sqrt(lower) * np.sqrt(upper), lower)
        place = log_cells(predictions, self.low, self.high, _PLACES)
        when = log_cells(time, *self.target, _PLACES)
        beyond = {"times": outside(time, *np.exp(self.target))}
        cells = ((~seen).astype(np.int64) * _PLACES + place) * _PLACES + when
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
