"""What one row loses by a prediction of quantiles, or of a time.

Both are functions of one row, whose bound is that of :mod:`xgb_dp.tuning.scores`.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..errors import PrivacyParameterError
from ..noisy_sums import Floats
from ..request.losses import QUANTILES
from ..request.settings import Settings

_LAWS = {"normal": stats.norm, "logistic": stats.logistic, "extreme": stats.gumbel_l}


@dataclass(frozen=True)
class Predicted:
    """What the predictions of a setting are; public."""

    levels: tuple[float, ...] = ()  # of quantiles
    law: str = "logistic"  # of the logarithm of times around that of the prediction
    scale: float = 1.0  # of the law

    @classmethod
    def of(cls, s: Settings) -> Predicted:
        """What a checked setting predicts."""
        if s.objective.intervals:
            scale = float(s["aft_loss_distribution_scale"])
            return cls(law=s["aft_loss_distribution"], scale=scale)
        return cls(QUANTILES.levels(s)) if s["objective"] == "reg:quantileerror" else cls()


def kind_of(settings: Sequence[Settings]) -> str:
    """What scores can judge of all settings together."""
    if any(s.labels > 1 for s in settings):
        raise PrivacyParameterError(
            "Settings of several targets cannot be selected among: a score judges one label of "
            "each row. Select with one target, and train all of them with the setting found."
        )
    first, predicted = settings[0], {Predicted.of(s).levels for s in settings}
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
    law, scale = _LAWS[predicted.law], predicted.scale
    with np.errstate(all="ignore"):
        lower, upper = (np.log(np.clip(end, *target)) for end in ends.T)
        open_end = np.isinf(ends[:, 1])
        low, high = ((end - np.log(p)) / scale for end in (lower, upper))
        point = np.log(scale) - law.logpdf(low)
        within = -np.log(law.cdf(high) - law.cdf(low))
        return np.where(open_end, -law.logsf(low), np.where(lower == upper, point, within))
