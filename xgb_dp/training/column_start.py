"""Estimate the effect of each column on the label, and build the first trees from these effects.

The effects are estimated from noisy sums of cells by class. A tree covers a few columns and splits
on each in turn at "cell above 0"; its leaf values are sums of their effects. Everything here is
post-processing of released sums and public numbers.

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
from xgboost.core import Booster

from ..calibrate import Calibration
from ..engine import native, workers
from ..engine.saved_model import ChangedModel, complete_tree
from ..mechanisms.column_sums import PRESENT
from ..parameters.config import Config
from .start import Sums

Floats = npt.NDArray[np.float64]

_LEAST = 3.0  # minimum weight of the cells of a column, in standard deviations of the noise
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
    weight = np.maximum(zeros + ones, max(_LEAST * math.sqrt(2.0 * variance), 1.0))
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
