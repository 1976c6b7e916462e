"""Compute values from the releases before the first tree.

Label counts determine the units of labels and weights. Label sums determine the intercept, the
number of rows and the parameters of a loss. Privacy: free post-processing of noisy sums.

In a start from columns, noisy sums of cells by class estimate the effect of each column on the
label. The first trees are built from these effects: a tree covers a few columns and splits on each
in turn at "cell above 0", and its leaf values are sums of their effects.

Proof: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression
from xgboost.core import Booster

from ..accounting.sensitivity import LABEL_CELLS
from ..calibrate import Calibration
from ..engine import native, workers
from ..engine.saved_model import ChangedModel, complete_tree
from ..mechanisms.column_sums import PRESENT
from ..mechanisms.label_range import JUST_ABOVE, edges, weight_edges
from ..parameters.config import Config, ReleasedRange
from ..planning import without_reals
from ..request.objectives import MEANS, QUANTILES, Measured

Floats = npt.NDArray[np.float64]

# Minimum number of rows in all cells, in standard deviations of the noise of one cell: twice the
# standard deviation of the sum of all cells.
_KNOWN = 2.0 * math.sqrt(LABEL_CELLS)
_MOST_ALPHA = 1e12  # limit of the trainer; far smaller values already set all leaves to 0
_MOST_ODDS = 12.0  # limit of log-odds, so that a 32-bit probability is not 0 or 1


def released_units(
    s: Config, noise: Calibration, sums: list[int]
) -> tuple[ReleasedRange | None, float]:
    """Compute the label range and the weight unit from noisy counts (free post-processing)."""
    unit = float(2 ** noise["range"].shift)
    deviation = math.sqrt(noise["range"].sigma2) / unit
    counts, released, weight_unit = [v / unit for v in sums], s.released_range, s.weight_unit
    if s["dp_target_unit"] == "released":
        assert s.target is not None
        released = label_range_from_counts(counts[:LABEL_CELLS], deviation, *s.target)
    if s.counts_weights:
        weight_unit = top_weight(counts[-LABEL_CELLS:], deviation, s["dp_max_weight"])
    return released, weight_unit


def label_bounds_state(s: Config) -> dict[str, Any]:
    """State for a release of label sums: the released range of the labels."""
    if s.released_range is None:
        return {}
    low, high = s.label_bounds
    if s.objective.intervals:
        low, high = math.log(low), math.log(high)
    return {"target_lower": repr(low), "target_upper": repr(high)}


def state_in_unit(s: Config, plan: Mapping[str, Any]) -> dict[str, Any]:
    """State of a training in the released units of labels and weights."""
    state: dict[str, Any] = {"scale": s.scale, "alpha": min(s.alpha, _MOST_ALPHA)}
    if s.counts_weights:
        state["weight_unit"] = s.weight_unit
    if s.loss is not None:
        state["loss"] = {**plan["loss"], **s.loss.plan(s)}
    return dict(without_reals(state))


def base_score_from_sums(s: Config, noise: Calibration, sums: list[int]) -> float | list[float]:
    """Compute the intercept from the released label sums (free post-processing)."""
    unit = float(2 ** noise["intercept"].shift)
    floor = max(math.sqrt(noise["intercept"].sigma2) / unit, 1.0)
    if s.intercept_kind == "cells":
        values = label_quantiles(sums, QUANTILES.starts(s), *s.label_bounds, floor * unit * _KNOWN)
        return values if len(values) > 1 else values[0]
    if s.kind == "multiclass":
        counts = [max(v / unit, floor) for v in sums]
        return [math.log(c / sum(counts)) for c in counts]
    if s.intercept_kind == "targets":
        released_labels = [Sums.of(s, noise, sums, k).label for k in range(s.labels)]
        if s.kind == "binary":
            return [_of_classes(s, label) for label in released_labels]
        return [
            (low + high) / 2 + (high - low) / 2 * label
            for label, (low, high) in zip(released_labels, s.targets, strict=True)
        ]
    first = Sums.of(s, noise, sums)
    if s.kind == "binary":
        return _of_classes(s, first.label)
    low, high = s.label_bounds
    if s.objective.intervals:
        return math.exp(first.mean(math.log(low), math.log(high)))
    if s.objective.link == "log":  # Sums.mean keeps the mean positive
        return first.mean(low, high)
    centre = (low + high) / 2 + (high - low) / 2 * first.label
    return min(max(centre, 0.001), 0.999) if s.objective.link == "logit" else centre


def base_score_of_columns(s: Config, centre: float) -> float:
    """Compute the intercept below the first trees from its log-odds."""
    odds = min(max(centre, -_MOST_ODDS), _MOST_ODDS)
    return 1.0 / (1.0 + math.exp(-odds)) if s["objective"] == "binary:logistic" else odds


def state_after_release(
    s: Config,
    noise: Calibration,
    loss: Mapping[str, Any] | None,
    sums: list[int],
    capped: list[int] | None = None,
) -> dict[str, Any]:
    """Compute the state of the loss and of the mean correction from the released label sums.

    Privacy: free post-processing.

    Args:
        s: Checked settings.
        noise: Noise of the plan.
        loss: Current parameters of the loss; None for the losses of XGBoost.
        sums: Released sums.
        capped: Released sums of capped labels; None if not released.
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
    """Compute the noisy number of rows from the first release (free post-processing)."""
    if kind in ("multiclass", "cells"):
        counts = sums
    elif kind == "targets":  # the sums of the labels come first
        counts = sums[-1:]
    else:
        counts = sums[:1] if kind == "rows" else sums[1:2]
    return math.ldexp(float(sum(counts)), -noise["intercept"].shift)


def present_from_sums(noise: Calibration, sums: list[int]) -> float:
    """Noisy sum over rows of the share of present cells, plus one standard deviation of noise.

    With this margin it is usually an upper bound, so only a clearly sparse table counts as sparse.
    """
    return math.ldexp(sums[2] + math.sqrt(noise["intercept"].sigma2), -noise["intercept"].shift)


def _of_classes(s: Config, label: float) -> float:
    """Compute the intercept of a binary objective from the mean of its labels, -1 and 1."""
    share = min(max(0.5 + 0.5 * label, 0.001), 0.999)
    if s["objective"] == "binary:logistic":
        return share
    # A margin in 32-bit floats, as XGBoost computes it.
    odds = np.float32(1.0) / np.float32(share) - np.float32(1.0)
    return -float(np.float32(math.log(float(odds))))


_DEVIATIONS = 2.5631  # distance between the first and last decile of the standard normal
_CLEAR = 5.0  # threshold for significant sums, in standard deviations of their noise
_LEAST = 1e-9  # smallest spread, relative to the width of the declared range
_TAIL = 0.01  # share of rows at each far end that the spread ignores
_LOST = 0.05  # maximum share of all weight that clipping removes


def label_quantiles(
    sums: list[int], levels: tuple[float, ...], low: float, high: float, floor: float
) -> list[float]:
    """Estimate quantiles of the labels at increasing levels."""
    # Noisy cumulative sums can decrease; take the closest increasing sequence in least squares.
    below = isotonic_regression(np.cumsum(np.asarray(sums, dtype=np.float64))).x
    total = float(below[-1])
    edges = np.linspace(low, high, len(sums) + 1)
    if total <= floor:
        return [low + level * (high - low) for level in levels]
    shares = np.concatenate([[0.0], np.clip(below / total, 0.0, 1.0)])
    return [float(np.interp(level, shares, edges)) for level in levels]


def label_spread(sums: list[int], low: float, high: float, floor: float) -> float:
    """Estimate the standard deviation of the labels; at least half the width of a cell."""
    first, last = label_quantiles(sums, (0.1, 0.9), low, high, floor)
    return max((last - first) / _DEVIATIONS, (high - low) / (2 * len(sums)))


def top_weight(counts: Sequence[float], deviation: float, most: float) -> float:
    """Estimate a weight such that clipping to it removes little of the total weight.

    The result is 1 if no count is significant.

    Args:
        counts: Noisy number of rows by cell.
        deviation: Standard deviation of the noise, in rows.
        most: Declared bound on weights.
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
    """Estimate range and spread of labels from noisy counts; None if no count is significant."""
    ends = np.array([low, *edges(low, high), high])
    left, right = ends[:-1], ends[1:]
    anchor = min(max(0.0, low), high)
    values = np.asarray(counts, dtype=np.float64)
    places = np.arange(len(values))
    # Cells on each side of the anchor, from the far end inwards.
    sides = [places[right <= anchor], places[left >= anchor][::-1]]
    there = np.concatenate([side[_holding(values[side], deviation)] for side in sides])
    if set(there) <= {side[-1] for side in sides if len(side)}:
        return None  # cells next to the anchor do not determine a scale
    rows = np.zeros_like(values)
    rows[there] = np.maximum(values[there], 0.0)
    low_end, high_end = float(left[there.min()]), float(right[there.max()])
    for side in sides:  # ignore a few distant rows, which are not representative
        rows[side[np.cumsum(rows[side]) < _TAIL * rows.sum()]] = 0.0
    middles = (left + right) / 2.0
    mean = math.fsum(rows * middles) / math.fsum(rows)
    # Assume a uniform distribution of labels within a cell.
    squares = (middles - mean) ** 2 + (right - left) ** 2 / 12.0
    spread = math.sqrt(math.fsum(rows * squares) / math.fsum(rows))
    # 32-bit labels cannot have such a small spread, so it must be noise in an empty cell.
    return ReleasedRange(low_end, high_end, spread) if spread > _LEAST * (high - low) else None


def _holding(counts: Floats, deviation: float) -> slice:
    """Slice from the first to the last cell with a significant number of rows."""
    first = _first_holding(counts, deviation)
    return slice(first, max(len(counts) - _first_holding(counts[::-1], deviation), first))


def _first_holding(counts: Floats, deviation: float) -> int:
    """Start index of the first significant run of adjacent counts; their number if there is none.

    If there are no rows, a run is significant with probability of about 0.0003.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    for last in range(1, len(sums)):
        clear = (sums[last] - sums[:last]) / np.sqrt(np.arange(last, 0, -1))
        if clear.max() > _CLEAR * deviation:
            return int(np.argmax(clear))
    return len(counts)


@dataclass(frozen=True)
class Sums:
    """Means per row from one release of label sums."""

    rows: float  # number of rows, at least one standard deviation of the noise
    floor: float  # standard deviation of the noise of a sum, in rows, at least 1
    label: float  # mean label, scaled to [-1, 1]
    exposure: float | None  # mean exposure, scaled to [-1, 1]; None if not released

    @classmethod
    def of(cls, s: Config, noise: Calibration, sums: Sequence[int], position: int = 0) -> Sums:
        """Convert the noisy integers of a release, in units of ``2**-shift``."""
        unit = float(2 ** noise["intercept"].shift)
        floor = max(math.sqrt(noise["intercept"].sigma2) / unit, 1.0)
        public = s["dp_public_num_rows"]
        rows = max(sums[s.labels] / unit if public is None else float(public), floor)
        exposure = _within(sums[-1] / unit / rows) if s.exposures is not None else None
        return cls(rows, floor, _expected(sums[position] / unit / rows, floor / rows), exposure)

    def mean(self, low: float, high: float) -> float:
        """Mean label, scaled to the given range."""
        half = (high - low) / 2
        # Stay one standard deviation of noise above the lower end, so that the logarithm exists.
        least = min(low + half * self.floor / self.rows, low + half)
        return max(low + half + half * self.label, least)

    def mean_exposure(self, low: float, high: float) -> float:
        """Mean exposure, scaled to the given positive range."""
        assert self.exposure is not None
        return max((low + high) / 2 + (high - low) / 2 * self.exposure, low)


def _within(value: float) -> float:
    return min(max(value, -1.0), 1.0)


def _expected(mean: float, noise: float) -> float:
    """Posterior mean under a uniform prior on [-1, 1], given the noisy mean.

    Clipping the noisy mean could give an intercept at an end of the range, which is worse than no
    intercept.
    """
    noise *= math.sqrt(1.0 + _within(mean) ** 2)  # include the noise of the number of rows
    mean = min(max(mean, -1.0 - 3.0 * noise), 1.0 + 3.0 * noise)
    ends = ((-1.0 - mean) / noise, (1.0 - mean) / noise)
    low, high = (0.5 * math.erfc(-end / math.sqrt(2.0)) for end in ends)
    first, last = (math.exp(-0.5 * end * end) for end in ends)
    return _within(mean + noise * (first - last) / math.sqrt(2.0 * math.pi) / (high - low))


def label_cap(s: Config, noise: Calibration, sums: Sequence[int]) -> float:
    """Compute the cap on labels from the first release."""
    return MEANS.cap(s, Sums.of(s, noise, sums).mean(*s.label_bounds))


def label_means(
    s: Config, noise: Calibration, sums: Sequence[int], capped: Sequence[int]
) -> Measured:
    """Compute the parameters of a loss for means from both releases."""
    first = Sums.of(s, noise, sums)
    mean, at = first.mean(*s.label_bounds), label_cap(s, noise, sums)
    capped_mean = Sums.of(s, noise, capped).mean(s.label_bounds[0], at)
    start = 0.0
    if s.exposures is not None:
        start = math.log(mean / first.mean_exposure(*s.exposures))
    return Measured(mean, at, min(capped_mean, mean), start)


_LEAST_CELLS = 3.0  # minimum weight of the cells of a column, in standard deviations of the noise
# Standard deviations of the components of a mixture prior for effects, since few columns may be
# informative. The first scale is in log-odds, independent of the number of cells. The second is
# relative to the sampling error of the cells, and allows larger effects in rare columns.
_OF_ALL = np.concatenate([[0.0], np.geomspace(0.01, 4.0, 14)])
_OF_CHANCE = np.geomspace(0.1, 60.0, 14)
# Minimum predicted share of a class, relative to its overall share.
_LEAST_SHARE = 0.02
_ITERATIONS = 60  # EM iterations for the mixture weights
# Shrinks all effects, because the effects of correlated columns overlap.
_STEP = 0.75
_COLUMNS_OF_TREE = 8
_MOST_COLUMNS = 1024
_LEAST_EFFECT = 1e-3  # in log-odds; columns with smaller effects get no tree
_BITS = 20  # precision of covers, so that their sums are exact in 32-bit floats


@dataclass(frozen=True)
class ColumnEffects:
    """The effect of a cell above 0 in each column on the log-odds of label 1."""

    effects: Floats  # in log-odds, by column
    rates: Floats  # share of rows with a cell above 0, in [0, 1], by column
    offered: tuple[int, ...]  # indices of the most informative columns, ascending
    share: float  # share of rows with label 1, in (0, 1)
    rows: float  # noisy number of rows, at least one standard deviation of its noise
    centre: float  # log-odds of a row without cells above 0

    @classmethod
    def of(
        cls, s: Config, noise: Calibration, first: Sequence[int], by_column: Sequence[int]
    ) -> ColumnEffects:
        """Estimate the effects. Privacy: free post-processing."""
        sums = Sums.of(s, noise, first)
        share = min(max(0.5 + 0.5 * sums.label, 0.001), 0.999)
        cells = np.ldexp(np.array(by_column, dtype=np.float64), -noise["columns"].shift)
        variance = math.ldexp(float(noise["columns"].sigma2), -2 * noise["columns"].shift)
        effects, rates, scores = _estimate(cells.reshape(2, -1), variance, share, sums.rows)
        values = [effects.tolist(), rates.tolist(), scores.tolist()]
        # All workers use the values of the first worker, to be identical to the last bit.
        text = json.dumps([*values, centre_of(effects, rates, share)]).encode()
        *values, centre = json.loads(workers.broadcast(0, text))
        effects, rates, scores = map(np.array, values)
        most = np.argsort(-scores, kind="stable")[: s["dp_features_per_tree"]]
        return cls(effects, rates, tuple(sorted(most.tolist())), share, sums.rows, centre)


def _grown(effects: Floats, rates: Floats) -> npt.NDArray[np.int64]:
    """Indices of the columns that get trees, by decreasing effect on predictions."""
    order = np.argsort(-(effects**2) * rates, kind="stable")
    return order[np.abs(effects[order]) >= _LEAST_EFFECT][:_MOST_COLUMNS]


def centre_of(effects: Floats, rates: Floats, share: float) -> float:
    """Log-odds of a row without cells above 0.

    For a rare class and independent columns, the mean odds of the class then match its share.
    """
    grown = _grown(effects, rates)
    up, down = (
        float(np.log1p(rates[grown] * np.expm1(sign * effects[grown])).sum()) for sign in (1, -1)
    )
    return math.log(share / (1.0 - share)) - (1.0 - share) * up + share * down


def _estimate(
    cells: Floats, variance: float, share: float, rows: float
) -> tuple[Floats, Floats, Floats]:
    """Effects, rates and scores by column; a score is chi-squared minus the expected noise."""
    zeros, ones = cells
    odd = share * (1.0 - share)
    # Square root of the number of cells per row: each of k cells has weight 1 / sqrt(k).
    root = min(max(float(cells.sum()) / rows, 1.0), math.sqrt(len(ones)))
    weight = np.maximum(zeros + ones, max(_LEAST_CELLS * math.sqrt(2.0 * variance), 1.0))
    off = (1.0 - share) * ones - share * zeros
    # Variance by noise and by sampling of rows.
    spread = variance * (1.0 - 2.0 * odd) + weight * odd / root
    deviation2 = 1.0 / (odd * weight)  # variance of an effect by sampling alone
    seen, spreads = off * deviation2, spread * deviation2**2
    # Two priors, averaged by their posterior probability.
    priors = (np.tile(_OF_ALL**2, (len(ones), 1)), np.outer(deviation2, _OF_CHANCE**2))
    means, logs = zip(*(_posterior(seen, spreads, prior) for prior in priors), strict=True)
    effects = means[0] + (means[1] - means[0]) * math.exp(logs[1] - np.logaddexp(*logs))
    rates = np.clip((zeros + ones) * root / rows, 0.0, 1.0)
    return _STEP * as_log_odds(effects, share), rates, (off**2 - spread) / weight


def as_log_odds(effects: Floats, share: float) -> Floats:
    """Convert effects to log-odds of the predicted share, unless the linear effect is closer to 0.

    A linear step from the mean is too large towards the rarer class.
    """
    predicted = share + share * (1.0 - share) * effects
    predicted = np.clip(predicted, _LEAST_SHARE * share, 1.0 - _LEAST_SHARE * (1.0 - share))
    odds = np.log(predicted / (1.0 - predicted)) - math.log(share / (1.0 - share))
    return np.where(np.abs(odds) < np.abs(effects), odds, effects)


def _posterior(seen: Floats, variance: Floats, prior: Floats) -> tuple[Floats, float]:
    """Posterior means of effects, and the log-likelihood of the prior.

    Args:
        seen: Noisy effect of each column.
        variance: Variance of this noise.
        prior: Variances of the mixture components, by column. EM estimates the weights.
    """
    total = variance[:, None] + prior
    log_density = -0.5 * (np.log(total) + seen[:, None] ** 2 / total)
    top = log_density.max(axis=1, keepdims=True)
    density = np.exp(log_density - top)
    weights = np.full(prior.shape[1], 1.0 / prior.shape[1])
    for _ in range(_ITERATIONS):
        weighted = density * weights
        likely = weighted.sum(axis=1, keepdims=True)
        weighted /= likely
        weights = weighted.mean(axis=0) + 1e-6
        weights /= weights.sum()
    means = np.asarray((weighted * (prior / total)).sum(axis=1) * seen)
    return means, float((np.log(likely) + top).sum())


def trees_of(effects: ColumnEffects) -> list[dict[str, Any]]:
    """Build the trees in XGBoost's JSON format, in decreasing order of effect on predictions."""
    columns = _grown(effects.effects, effects.rates)
    cover = max(effects.rows * effects.share * (1.0 - effects.share), 1.0)
    return [
        _tree(columns[i : i + _COLUMNS_OF_TREE], effects, cover, i // _COLUMNS_OF_TREE)
        for i in range(0, len(columns), _COLUMNS_OF_TREE)
    ]


def booster_with(
    trees: list[dict[str, Any]], model: Any, params: Mapping[str, Any], cache: Sequence[Any]
) -> Booster:
    """Replace an empty booster by one with these trees, one per round."""
    content = ChangedModel.from_booster(model)
    content.set_trees(trees)
    with native.threads(params.get("nthread")):  # XGBoost loads models with all threads
        return Booster(dict(params), list(cache), content.to_bytes())


def _tree(
    columns: npt.NDArray[np.int64], effects: ColumnEffects, total: float, number: int
) -> dict[str, Any]:
    """Build a complete tree, level by level; cells that are not above 0 go to the left child."""
    weights, covers = np.zeros(1), np.full(1, total)
    for column in columns:
        rate = effects.rates[column]
        weights = np.stack([weights, weights + effects.effects[column]], axis=1).ravel()
        covers = np.stack([covers * (1.0 - rate), covers * rate], axis=1).ravel()
    unit = 2.0 ** (math.ceil(math.log2(total)) - _BITS)
    covers = np.maximum(np.rint(covers / unit), 1.0) * unit
    levels = [(weights, covers, np.zeros_like(covers))]
    while len(levels[0][0]) > 1:
        w, h, _ = levels[0]
        cover = h.reshape(-1, 2).sum(axis=1)
        weight = (w * h).reshape(-1, 2).sum(axis=1) / cover
        gain = (w**2 * h).reshape(-1, 2).sum(axis=1) - weight**2 * cover
        levels.insert(0, (weight, cover, np.maximum(gain, 0.0)))
    weights, covers, gains = (np.concatenate(values) for values in zip(*levels, strict=True))
    splits = [(int(column), PRESENT) for column in columns]
    return complete_tree(number, len(effects.effects), splits, weights, covers, gains)
