"""What each column says of the label, from noisy sums of its cells by class, and the first trees.

A tree of a few columns splits on each of them in turn, whether a cell is above 0, so that its
leaves hold every sum of their effects. All is made of what was released and of public numbers.

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
from ..request.settings import Settings
from .start import Sums

Floats = npt.NDArray[np.float64]

_LEAST = 3.0  # deviations of noise: the least weight of a column's cells, so that rare ones are few
# Deviations of effects, of which a prior is a mixture: few columns may say much. As log-odds,
# whatever the number of cells; or beside the chance of which cells there are, so that rare ones say
# more.
_OF_ALL = np.concatenate([[0.0], np.geomspace(0.01, 4.0, 14)])
_OF_CHANCE = np.geomspace(0.1, 60.0, 14)
# Of the share of a class: no column is taken to rule it out, whatever a step from the mean says.
_LEAST_SHARE = 0.02
_ITERATIONS = 60  # of the estimate of the parts of the mixture
# Columns that say the same add up to more than they say together.
_STEP = 0.75
_COLUMNS_OF_TREE = 8
_MOST_COLUMNS = 1024
_LEAST_EFFECT = 1e-3  # of a column that a tree is grown for, in log-odds
_BITS = 20  # of covers, so that 32-bit floats add them up exactly


@dataclass(frozen=True)
class ColumnEffects:
    """What a cell above 0 in each column adds to the log-odds of label 1."""

    effects: Floats  # log-odds, of each column
    rates: Floats  # share of rows that have such a cell, in [0, 1]
    offered: tuple[int, ...]  # the columns that say most, ascending
    share: float  # of rows with label 1, in (0, 1)
    rows: float  # at least what noise alone may be
    centre: float  # log-odds of a row without any cell

    @classmethod
    def of(
        cls, s: Settings, noise: Calibration, first: Sequence[int], by_column: Sequence[int]
    ) -> ColumnEffects:
        """Estimate the effects. Post-processing, costs nothing."""
        sums = Sums.of(s, noise, first)
        share = min(max(0.5 + 0.5 * sums.label, 0.001), 0.999)
        cells = np.ldexp(np.array(by_column, dtype=np.float64), -noise["columns"].shift)
        variance = math.ldexp(float(noise["columns"].sigma2), -2 * noise["columns"].shift)
        effects, rates, scores = _estimate(cells.reshape(2, -1), variance, share, sums.rows)
        values = [effects.tolist(), rates.tolist(), scores.tolist()]
        # All workers take those of the first one, down to the last bits of its floats.
        text = json.dumps([*values, centre_of(effects, rates, share)]).encode()
        *values, centre = json.loads(workers.told_by(0, text))
        effects, rates, scores = map(np.array, values)
        most = np.argsort(-scores, kind="stable")[: s["dp_features_per_tree"]]
        return cls(effects, rates, tuple(sorted(most.tolist())), share, sums.rows, centre)


def _grown(effects: Floats, rates: Floats) -> npt.NDArray[np.int64]:
    """The columns that trees are grown for, those that move most predictions first."""
    order = np.argsort(-(effects**2) * rates, kind="stable")
    return order[np.abs(effects[order]) >= _LEAST_EFFECT][:_MOST_COLUMNS]


def centre_of(effects: Floats, rates: Floats, share: float) -> float:
    """The log-odds of a row without any cell.

    Where one class is rare and columns are independent of each other, the mean odds of that class
    are then those of its share.
    """
    grown = _grown(effects, rates)
    up, down = (
        float(np.log1p(rates[grown] * np.expm1(sign * effects[grown])).sum()) for sign in (1, -1)
    )
    return math.log(share / (1.0 - share)) - (1.0 - share) * up + share * down


def _estimate(
    cells: Floats, variance: float, share: float, rows: float
) -> tuple[Floats, Floats, Floats]:
    """Effects, rates, and what each column says: its chi-squared less what noise makes of it."""
    zeros, ones = cells
    odd = share * (1.0 - share)
    # The root of the number of cells of a row: each of k cells weighs 1 / root(k).
    root = min(max(float(cells.sum()) / rows, 1.0), math.sqrt(len(ones)))
    weight = np.maximum(zeros + ones, max(_LEAST * math.sqrt(2.0 * variance), 1.0))
    off = (1.0 - share) * ones - share * zeros
    # Of noise, and of the chance of which rows are there.
    spread = variance * (1.0 - 2.0 * odd) + weight * odd / root
    deviation2 = 1.0 / (odd * weight)  # of an effect, by chance alone
    seen, spreads = off * deviation2, spread * deviation2**2
    # Two kinds of tables, each as likely as what is seen makes it.
    priors = (np.tile(_OF_ALL**2, (len(ones), 1)), np.outer(deviation2, _OF_CHANCE**2))
    means, logs = zip(*(_posterior(seen, spreads, prior) for prior in priors), strict=True)
    effects = means[0] + (means[1] - means[0]) * math.exp(logs[1] - np.logaddexp(*logs))
    rates = np.clip((zeros + ones) * root / rows, 0.0, 1.0)
    return _STEP * as_log_odds(effects, share), rates, (off**2 - spread) / weight


def as_log_odds(effects: Floats, share: float) -> Floats:
    """Effects as log-odds of the share that they predict, where those are nearer to 0.

    A step from the mean goes too far towards the rarer class.
    """
    predicted = share + share * (1.0 - share) * effects
    predicted = np.clip(predicted, _LEAST_SHARE * share, 1.0 - _LEAST_SHARE * (1.0 - share))
    odds = np.log(predicted / (1.0 - predicted)) - math.log(share / (1.0 - share))
    return np.where(np.abs(odds) < np.abs(effects), odds, effects)


def _posterior(seen: Floats, variance: Floats, prior: Floats) -> tuple[Floats, float]:
    """Posterior means of effects, and how likely they are, as a logarithm.

    Args:
        seen: What was seen of each column, with noise.
        variance: Of the noise.
        prior: Variances of each column, of which it has one: the shares are found by EM.
    """
    total = variance[:, None] + prior
    log_density = -0.5 * (np.log(total) + seen[:, None] ** 2 / total)
    top = log_density.max(axis=1, keepdims=True)
    density = np.exp(log_density - top)
    parts = np.full(prior.shape[1], 1.0 / prior.shape[1])
    for _ in range(_ITERATIONS):
        of_each = density * parts
        likely = of_each.sum(axis=1, keepdims=True)
        of_each /= likely
        parts = of_each.mean(axis=0) + 1e-6
        parts /= parts.sum()
    means = np.asarray((of_each * (prior / total)).sum(axis=1) * seen)
    return means, float((np.log(likely) + top).sum())


def trees_of(effects: ColumnEffects) -> list[dict[str, Any]]:
    """The trees as XGBoost stores them in JSON, the columns that move most predictions first."""
    columns = _grown(effects.effects, effects.rates)
    cover = max(effects.rows * effects.share * (1.0 - effects.share), 1.0)
    return [
        _tree(columns[i : i + _COLUMNS_OF_TREE], effects, cover, i // _COLUMNS_OF_TREE)
        for i in range(0, len(columns), _COLUMNS_OF_TREE)
    ]


def booster_with(
    trees: list[dict[str, Any]], model: Any, params: Mapping[str, Any], cache: Sequence[Any]
) -> Booster:
    """A booster with these trees, each a round of its own, in place of one that has none."""
    content = ChangedModel.from_booster(model)
    content.set_trees(trees)
    with native.threads(params.get("nthread")):  # XGBoost loads models with as many as there are
        return Booster(dict(params), list(cache), content.to_bytes())


def _tree(
    columns: npt.NDArray[np.int64], effects: ColumnEffects, total: float, number: int
) -> dict[str, Any]:
    """A complete tree, level by level: to the left of a split the cell is not above 0."""
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
