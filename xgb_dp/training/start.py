"""Everything that follows from the releases before the first tree.

Label counts give the unit of labels and weights, label sums give the intercept, the number of rows
and the parameters of a loss. All of it is post-processing of noisy sums and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from ..accounting.sensitivity import LABEL_CELLS
from ..calibrate import Calibration
from ..mechanisms.label_range import JUST_ABOVE, edges, weight_edges
from ..planning import without_reals
from ..request.objectives import MEANS, QUANTILES, Measured
from ..request.settings import ReleasedRange, Settings

# Deviations of the noise of a cell, of which all of them together must have as many rows: two of
# the sum of all cells.
_KNOWN = 2.0 * math.sqrt(LABEL_CELLS)
_MOST_ALPHA = 1e12  # that the trainer takes; no leaf is left long before
_MOST_ODDS = 12.0  # of a base score, in log-odds: further out a 32-bit probability is 0 or 1


def released_units(
    s: Settings, noise: Calibration, sums: list[int]
) -> tuple[ReleasedRange | None, float]:
    """What these cells say of labels, and the unit of weights; post-processing, costs nothing."""
    unit = float(2 ** noise["range"].shift)
    deviation = math.sqrt(noise["range"].sigma2) / unit
    counts, released, weight_unit = [v / unit for v in sums], s.released_range, s.weight_unit
    if s["dp_target_unit"] == "released":
        assert s.target is not None
        released = label_range_from_counts(counts[:LABEL_CELLS], deviation, *s.target)
    if s.counts_weights:
        weight_unit = top_weight(counts[-LABEL_CELLS:], deviation, s["dp_max_weight"])
    return released, weight_unit


def label_bounds_state(s: Settings) -> dict[str, Any]:
    """The state of a request for label sums: the released range of the labels."""
    if s.released_range is None:
        return {}
    low, high = s.label_bounds
    if s.objective.intervals:
        low, high = math.log(low), math.log(high)
    return {"target_lower": repr(low), "target_upper": repr(high)}


def state_in_unit(s: Settings, plan: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a training in the released units of labels and weights."""
    state: dict[str, Any] = {"scale": s.scale, "alpha": min(s.alpha, _MOST_ALPHA)}
    if s.counts_weights:
        state["weight_unit"] = s.weight_unit
    if s.loss is not None:
        state["loss"] = {**plan["loss"], **s.loss.plan(s)}
    return dict(without_reals(state))


def base_score_from_sums(s: Settings, noise: Calibration, sums: list[int]) -> float | list[float]:
    """Intercept from the released label sums; post-processing, costs nothing."""
    unit = float(2 ** noise["intercept"].shift)
    floor = max(math.sqrt(noise["intercept"].sigma2) / unit, 1.0)
    if s.intercept_kind == "cells":
        values = label_quantiles(sums, QUANTILES.starts(s), *s.label_bounds, floor * unit * _KNOWN)
        return values if len(values) > 1 else values[0]
    if s.kind == "multiclass":
        counts = [max(v / unit, floor) for v in sums]
        return [math.log(c / sum(counts)) for c in counts]
    if s.intercept_kind == "targets":
        told_of = [Sums.of(s, noise, sums, k).label for k in range(s.labels)]
        if s.kind == "binary":
            return [_of_classes(s, label) for label in told_of]
        return [
            (low + high) / 2 + (high - low) / 2 * label
            for label, (low, high) in zip(told_of, s.targets, strict=True)
        ]
    first = Sums.of(s, noise, sums)
    if s.kind == "binary":
        return _of_classes(s, first.label)
    low, high = s.label_bounds
    if s.objective.intervals:
        return math.exp(first.mean(math.log(low), math.log(high)))
    if s.objective.link == "log":  # a mean that is told from 0, at least by its noise
        return first.mean(low, high)
    centre = (low + high) / 2 + (high - low) / 2 * first.label
    return min(max(centre, 0.001), 0.999) if s.objective.link == "logit" else centre


def base_score_of_columns(s: Settings, centre: float) -> float:
    """The intercept below the first trees, whose log-odds are these."""
    odds = min(max(centre, -_MOST_ODDS), _MOST_ODDS)
    return 1.0 / (1.0 + math.exp(-odds)) if s["objective"] == "binary:logistic" else odds


def state_after_release(
    s: Settings,
    noise: Calibration,
    loss: Mapping[str, Any] | None,
    sums: list[int],
    capped: list[int] | None = None,
) -> dict[str, Any]:
    """The state that the loss and the mean correction derive from the released label sums.

    Post-processing, costs nothing.

    Args:
        s: Checked settings.
        noise: Noise of the plan.
        loss: Current parameters of the loss; None for XGBoost's own losses.
        sums: Released sums.
        capped: Released sums of capped labels; None if they were not released.
    """
    state: dict[str, Any] = {}
    if s["dp_mean_correction"] and s.squared and s.intercept == "released":
        state["rows"] = Sums.of(s, noise, sums).rows
    if capped is not None:
        assert loss is not None
        state["loss"] = {**loss, **label_means(s, noise, sums, capped).to_plan()}
    elif s.intercept == "released" and loss is not None and loss["name"] == "quantile":
        width = label_spread(sums, *s.label_bounds, math.sqrt(noise["intercept"].sigma2) * _KNOWN)
        state["loss"] = {**loss, **QUANTILES.widths(s, width)}
    return dict(without_reals(state))


def rows_from_sums(kind: str, noise: Calibration, sums: list[int]) -> float:
    """The noisy number of rows in what was released first; post-processing, costs nothing."""
    if kind in ("multiclass", "cells"):
        counts = sums
    elif kind == "targets":  # the sums of the labels come first
        counts = sums[-1:]
    else:
        counts = sums[:1] if kind == "rows" else sums[1:2]
    return math.ldexp(float(sum(counts)), -noise["intercept"].shift)


def present_from_sums(noise: Calibration, sums: list[int]) -> float:
    """The sum over rows of the share of its cells that a row has; at least that, as a rule.

    One standard deviation of the noise is added: a table is taken for sparse where it is seen to
    be.
    """
    return math.ldexp(sums[2] + math.sqrt(noise["intercept"].sigma2), -noise["intercept"].shift)


def _of_classes(s: Settings, label: float) -> float:
    """The intercept of two classes from their mean label, of which one is -1 and one 1."""
    share = min(max(0.5 + 0.5 * label, 0.001), 0.999)
    return share if s["objective"] == "binary:logistic" else _logit(share)


def _logit(share: float) -> float:
    """The margin that XGBoost makes of a probability, in 32-bit floats as there."""
    odds = np.float32(1.0) / np.float32(share) - np.float32(1.0)
    return -float(np.float32(math.log(float(odds))))


_DEVIATIONS = 2.5631  # between the first and the last decile of a normal distribution
# Deviations of the noise of a sum that tell it from none, in any of the cells.
_CLEAR = 5.0
# The least spread, in widths of the declared range.
_LEAST = 1e-9
# Share of the rows that the spread leaves out at the far end.
_TAIL = 0.01
_LOST = 0.05  # share of all weight that may be cut off

Floats = npt.NDArray[np.float64]


def label_quantiles(
    sums: list[int], levels: tuple[float, ...], low: float, high: float, floor: float
) -> list[float]:
    """Values below which the given shares of the labels lie, in rising order."""
    # The nearest sequence that never falls, by squares.
    below = isotonic_regression(np.cumsum(np.asarray(sums, dtype=np.float64))).x
    total = float(below[-1])
    edges = np.linspace(low, high, len(sums) + 1)
    if total <= floor:
        return [low + level * (high - low) for level in levels]
    shares = np.concatenate([[0.0], np.clip(below / total, 0.0, 1.0)])
    return [float(np.interp(level, shares, edges)) for level in levels]


def label_spread(sums: list[int], low: float, high: float, floor: float) -> float:
    """About the standard deviation of the labels, at least half a cell; in their unit."""
    first, last = label_quantiles(sums, (0.1, 0.9), low, high, floor)
    return max((last - first) / _DEVIATIONS, (high - low) / (2 * len(sums)))


def top_weight(counts: Sequence[float], deviation: float, most: float) -> float:
    """A weight above which rows have a small share of all weight; 1 where noise hides all of it.

    Args:
        counts: Noisy numbers of rows, cell by cell.
        deviation: Standard deviation of their noise, in rows.
        most: The declared bound of weights.
    """
    ends = np.array([*weight_edges(most), most])
    rows = np.asarray(counts, dtype=np.float64)
    top = len(rows) - 1 - _first_holding(rows[::-1], deviation)
    if top < 0:
        return 1.0
    rows, ends = rows[: top + 1], ends[: top + 1]
    lost = math.fsum(rows * ends) * _LOST
    while top and math.fsum(rows[top:] * (ends[top:] - ends[top - 1])) <= lost:
        top -= 1
    return float(ends[top]) / (JUST_ABOVE if ends[top] < most else 1.0)


def label_range_from_counts(
    counts: Sequence[float], deviation: float, low: float, high: float
) -> ReleasedRange | None:
    """What counts of the cells say; None where noise hides all of it."""
    ends = np.array([low, *edges(low, high), high])
    left, right = ends[:-1], ends[1:]
    anchor = min(max(0.0, low), high)
    values = np.asarray(counts, dtype=np.float64)
    places = np.arange(len(values))
    # From the far end of each side to the anchor.
    sides = [places[right <= anchor], places[left >= anchor][::-1]]
    there = np.concatenate([side[_holding(values[side], deviation)] for side in sides])
    if set(there) <= {side[-1] for side in sides if len(side)}:
        return None  # next to the anchor, no cell has a scale
    rows = np.zeros_like(values)
    rows[there] = np.maximum(values[there], 0.0)
    low_end, high_end = float(left[there.min()]), float(right[there.max()])
    for side in sides:  # few rows far away say nothing of the others
        rows[side[np.cumsum(rows[side]) < _TAIL * rows.sum()]] = 0.0
    middles = (left + right) / 2.0
    mean = math.fsum(rows * middles) / math.fsum(rows)
    # Labels are spread evenly in a cell, as far as anybody knows.
    squares = (middles - mean) ** 2 + (right - left) ** 2 / 12.0
    spread = math.sqrt(math.fsum(rows * squares) / math.fsum(rows))
    # So far below the declared width, 32-bit labels do not differ: it is noise in an empty cell.
    return ReleasedRange(low_end, high_end, spread) if spread > _LEAST * (high - low) else None


def _holding(counts: Floats, deviation: float) -> slice:
    """The cells from the first to the last that hold rows, as far as noise shows them."""
    first = _first_holding(counts, deviation)
    return slice(first, max(len(counts) - _first_holding(counts[::-1], deviation), first))


def _first_holding(counts: Floats, deviation: float) -> int:
    """Where the sum of some adjacent counts first stands out, and most of all; else their number.

    That of counts without rows does so with a probability of about 0.0003.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    for last in range(1, len(sums)):
        clear = (sums[last] - sums[:last]) / np.sqrt(np.arange(last, 0, -1))
        if clear.max() > _CLEAR * deviation:
            return int(np.argmax(clear))
    return len(counts)


@dataclass(frozen=True)
class Sums:
    """What one release of label sums has said, per row."""

    rows: float  # their number, at least what noise alone may be
    floor: float  # standard deviation of the noise of a sum, in rows, at least 1
    label: float  # mean of labels, on [-1, 1]
    exposure: float | None  # the same of exposures; None where they are not released

    @classmethod
    def of(cls, s: Settings, noise: Calibration, sums: Sequence[int], position: int = 0) -> Sums:
        """Read the noisy integers of a release, in units of ``2**-shift``."""
        unit = float(2 ** noise["intercept"].shift)
        floor = max(math.sqrt(noise["intercept"].sigma2) / unit, 1.0)
        public = s["dp_n_public"]
        rows = max(sums[s.labels] / unit if public is None else float(public), floor)
        exposure = _within(sums[-1] / unit / rows) if s.exposures is not None else None
        return cls(rows, floor, _expected(sums[position] / unit / rows, floor / rows), exposure)

    def mean(self, low: float, high: float) -> float:
        """The mean of labels of a range."""
        half = (high - low) / 2
        # At least the standard deviation of its noise, so that it has a logarithm.
        least = min(low + half * self.floor / self.rows, low + half)
        return max(low + half + half * self.label, least)

    def mean_exposure(self, low: float, high: float) -> float:
        """The mean of exposures of a range above 0."""
        assert self.exposure is not None
        return max((low + high) / 2 + (high - low) / 2 * self.exposure, low)


def _within(value: float) -> float:
    return min(max(value, -1.0), 1.0)


def _expected(mean: float, noise: float) -> float:
    """The mean in [-1, 1] to expect where it is told with noise, and was as likely anywhere.

    An intercept at an end of its range, where noise has put it, would be worse than none.
    """
    noise *= math.sqrt(1.0 + _within(mean) ** 2)  # that of the number of rows besides
    mean = min(max(mean, -1.0 - 3.0 * noise), 1.0 + 3.0 * noise)
    ends = ((-1.0 - mean) / noise, (1.0 - mean) / noise)
    low, high = (0.5 * math.erfc(-end / math.sqrt(2.0)) for end in ends)
    first, last = (math.exp(-0.5 * end * end) for end in ends)
    return _within(mean + noise * (first - last) / math.sqrt(2.0 * math.pi) / (high - low))


def label_cap(s: Settings, noise: Calibration, sums: Sequence[int]) -> float:
    """Where labels are cut, from the first release."""
    return MEANS.cap(s, Sums.of(s, noise, sums).mean(*s.label_bounds))


def label_means(
    s: Settings, noise: Calibration, sums: Sequence[int], capped: Sequence[int]
) -> Measured:
    """What a loss of means takes from both releases."""
    first = Sums.of(s, noise, sums)
    mean, at = first.mean(*s.label_bounds), label_cap(s, noise, sums)
    capped_mean = Sums.of(s, noise, capped).mean(s.label_bounds[0], at)
    start = 0.0
    if s.exposures is not None:
        start = math.log(mean / first.mean_exposure(*s.exposures))
    return Measured(mean, at, min(capped_mean, mean), start)
