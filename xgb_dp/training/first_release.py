"""What is asked for before the first tree, and what follows from the answer.

The label sums give the intercept, the number of rows, and what a loss measures; the cells by column
give the first trees of a start from columns. What follows is post-processing and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..accounting.sensitivity import LABEL_CELLS
from ..calibrate import Calibration
from ..planning import without_reals
from ..request.losses import QUANTILES
from ..request.settings import Seen, Settings
from . import label_cells, label_means

# Deviations of the noise of a cell, of which all of them together must have as many rows: two of
# the sum of all cells.
_KNOWN = 2.0 * math.sqrt(LABEL_CELLS)
_MOST_ALPHA = 1e12  # that the trainer takes; no leaf is left long before
_MOST_ODDS = 12.0  # of a base score, in log-odds: further out a 32-bit probability is 0 or 1


def units(s: Settings, noise: Calibration, sums: list[int]) -> tuple[Seen | None, float]:
    """What these cells say of labels, and the unit of weights; post-processing, costs nothing."""
    unit = float(2 ** noise["range"].shift)
    deviation = math.sqrt(noise["range"].sigma2) / unit
    counts, seen, weight_unit = [v / unit for v in sums], s.seen, s.weight_unit
    if s["dp_target_unit"] == "released":
        assert s.target is not None
        seen = label_cells.seen(counts[:LABEL_CELLS], deviation, *s.target)
    if s.counts_weights:
        weight_unit = label_cells.top_weight(counts[-LABEL_CELLS:], deviation, s["dp_max_weight"])
    return seen, weight_unit


def in_window(s: Settings) -> dict[str, Any]:
    """The state of a request for label sums: the released range of the labels."""
    if s.seen is None:
        return {}
    low, high = s.window
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
        values = label_cells.quantiles(sums, QUANTILES.starts(s), *s.window, floor * unit * _KNOWN)
        return values if len(values) > 1 else values[0]
    if s.kind == "multiclass":
        counts = [max(v / unit, floor) for v in sums]
        return [math.log(c / sum(counts)) for c in counts]
    if s.intercept_kind == "targets":
        told_of = [label_means.Sums.of(s, noise, sums, k).label for k in range(s.labels)]
        if s.kind == "binary":
            return [_of_classes(s, label) for label in told_of]
        return [
            (low + high) / 2 + (high - low) / 2 * label
            for label, (low, high) in zip(told_of, s.targets, strict=True)
        ]
    first = label_means.Sums.of(s, noise, sums)
    if s.kind == "binary":
        return _of_classes(s, first.label)
    low, high = s.window
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
        state["rows"] = label_means.Sums.of(s, noise, sums).rows
    if capped is not None:
        assert loss is not None
        state["loss"] = {**loss, **label_means.measured(s, noise, sums, capped).to_plan()}
    elif s.intercept == "released" and loss is not None and loss["name"] == "quantile":
        spread = label_cells.spread(sums, *s.window, math.sqrt(noise["intercept"].sigma2) * _KNOWN)
        state["loss"] = {**loss, **QUANTILES.widths(s, spread)}
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
