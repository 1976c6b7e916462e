"""Scores of counts, amounts, times and quantiles, of predictions on test rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, xlogy

Floats = npt.NDArray[np.float64]
# Days at which predicted survival is set beside that of Kaplan and Meier, and groups of rows.
HORIZON = 180.0
GROUPS = 10
TWEEDIE_POWER = 1.5


def poisson_deviance(y: Floats, mean: Floats) -> float:
    """Mean deviance of counts from predicted means."""
    return 2.0 * float(np.mean(xlogy(y, y / mean) - y + mean))


def gamma_deviance(y: Floats, mean: Floats) -> float:
    """Mean deviance of positive amounts from predicted means."""
    return 2.0 * float(np.mean(y / mean - np.log(y / mean) - 1.0))


def tweedie_deviance(y: Floats, mean: Floats, power: float = TWEEDIE_POWER) -> float:
    """Mean deviance of amounts of at least 0 from predicted means, of a power between 1 and 2."""
    a, b = 1.0 - power, 2.0 - power
    return 2.0 * float(np.mean(y**b / (a * b) - y * mean**a / a + mean**b / b))


DEVIANCES = {
    "count:poisson": poisson_deviance,
    "reg:gamma": gamma_deviance,
    "reg:tweedie": tweedie_deviance,
}


def _gini(y: Floats, rate: Floats, exposure: Floats) -> float:
    """One less twice the area under the Lorenz curve of labels, rows of low rates first.

    Rows of one rate are taken together, so that their order does not matter.
    """
    _, group = np.unique(rate, return_inverse=True)
    amounts, shares = np.bincount(group, y), np.bincount(group, exposure)
    curve = np.concatenate([[0.0], np.cumsum(amounts) / amounts.sum()])
    widths = shares / shares.sum()
    return 1.0 - float(np.sum((curve[1:] + curve[:-1]) * widths))


def gini(y: Floats, mean: Floats, exposure: Floats) -> float:
    """Gini index of labels by predicted rate, over that of the best order.

    Args:
        y: Labels of at least 0, not all 0.
        mean: Predicted means, of the whole exposure of a row.
        exposure: Exposure of each row, above 0.
    """
    return _gini(y, mean / exposure, exposure) / _gini(y, y / exposure, exposure)


def concordance(time: Floats, seen: npt.NDArray[np.bool_], predicted: Floats) -> float:
    """Harrell's index: how often the row that is predicted to last longer does.

    Args:
        time: Time of each row, until the event or until its observation ended.
        seen: Whether the event was seen.
        predicted: What is larger the longer a row is expected to last; ties count one half.
    """
    right = pairs = 0.0
    for i in np.flatnonzero(seen):
        later = time > time[i]
        pairs += np.count_nonzero(later)
        right += np.count_nonzero(predicted[later] > predicted[i])
        right += 0.5 * np.count_nonzero(predicted[later] == predicted[i])
    return right / pairs


def kaplan_meier(time: Floats, seen: npt.NDArray[np.bool_], horizon: float) -> float:
    """Share of rows that last longer than the horizon."""
    share = 1.0
    for t in np.unique(time[seen & (time <= horizon)]):
        share *= 1.0 - np.count_nonzero(seen & (time == t)) / np.count_nonzero(time >= t)
    return share


def survival_gap(
    time: Floats, seen: npt.NDArray[np.bool_], margin: Floats, distribution: str, scale: float
) -> float:
    """Mean distance of predicted survival at the horizon from what happened, over ten groups.

    Args:
        time: Time of each row.
        seen: Whether the event was seen.
        margin: Predicted location of the logarithm of the time.
        distribution: "normal", "logistic" or "extreme".
        scale: Its scale.
    """
    z = (np.log(HORIZON) - margin) / scale
    if distribution == "normal":
        lasts = ndtr(-z)
    elif distribution == "logistic":
        lasts = 1.0 / (1.0 + np.exp(z))
    else:
        lasts = np.exp(-np.exp(z))
    gaps = [
        abs(lasts[part].mean() - kaplan_meier(time[part], seen[part], HORIZON))
        for part in np.array_split(np.argsort(lasts, kind="stable"), GROUPS)
    ]
    return float(np.mean(gaps))


def pinball(y: Floats, quantiles: Floats, levels: tuple[float, ...]) -> float:
    """Mean pinball loss over rows and levels.

    Args:
        y: Labels, shape (rows,).
        quantiles: Predictions, shape (rows, levels).
        levels: Of the quantiles.
    """
    over = y[:, None] - quantiles
    return float(np.mean(np.maximum(np.asarray(levels) * over, (np.asarray(levels) - 1) * over)))


def coverage_gap(y: Floats, quantiles: Floats, levels: tuple[float, ...]) -> float:
    """Largest distance over the levels of the share of labels below a quantile from its level.

    A label that equals its prediction counts one half.
    """
    below = (y[:, None] < quantiles) + 0.5 * (y[:, None] == quantiles)
    return float(np.abs(below.mean(axis=0) - np.asarray(levels)).max())
