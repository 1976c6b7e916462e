"""Losses of means on the log scale, and of times: their parameters in the plan.

The mean of the labels is released first, and after it the mean of labels that are cut at a few
means. Gradients are measured in that cap, so that a row counts at most one, however far the
declared range reaches; the mean itself is kept, because labels after the cut are set beside their
own mean.

Proof: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["MEANS", "POWERS", "TIMES", "Measured"]

# Labels are cut at so many means: of few and large amounts, how many there are says most of what
# can be told of their sum.
_CAP = 2.0
# Of counts not below one event.
_LEAST_COUNT = 1.0


@dataclass(frozen=True)
class Measured:
    """What a loss of means takes from the first releases; public numbers where there are none.

    Attributes:
        mean: Of labels within the declared range, above 0.
        cap: Where labels are cut.
        capped_mean: Of labels after the cut, above 0.
        start: Logarithm of what a margin of 0 predicts, where rows bring their own margins.
    """

    mean: float
    cap: float
    capped_mean: float
    start: float = 0.0

    def to_plan(self) -> dict[str, float]:
        """As the plan has it."""
        return {
            "mean": self.mean,
            "cap": self.cap,
            "capped_mean": self.capped_mean,
            "start": self.start,
        }


POWERS = {"count:poisson": 1.0, "reg:gamma": 2.0}
"""The power of the mean that is the variance; reg:tweedie has a parameter for it."""


class _Means:
    """The figures of the losses of means, from checked settings."""

    def power(self, s: Settings) -> float:
        """The variance is the mean to that power."""
        return POWERS.get(s["objective"]) or float(s["tweedie_variance_power"])

    def cap(self, s: Settings, mean: float) -> float:
        """Where labels are cut, of a mean that was released or is public."""
        assert s.target is not None
        least = _LEAST_COUNT if s["objective"] == "count:poisson" else 0.0
        low, high = s.target
        # Above the lower end of the range, which is the mean where it is all noise.
        return min(max(_CAP * mean, least, low + 1e-3 * (high - low)), high)

    def public(self, s: Settings) -> Measured:
        """What holds before anything is released, and where the intercept is public."""
        assert s.target is not None
        given = s["base_score"]
        mean = (s.target[0] + s.target[1]) / 2 if given is None else float(given)
        start = math.log(mean) if s["dp_base_margin"] and given is not None else 0.0
        return Measured(mean, self.cap(s, mean), mean, start)

    def plan(self, s: Settings) -> dict[str, Any]:
        """Parameters of the loss, before anything is released."""
        return {"power": self.power(s), **self.public(s).to_plan()}


class _Times:
    """The figures of the loss of times."""

    def gradient_bound(self, s: Settings) -> float:
        """The largest norm of a logistic error; of others, which have none, two scales."""
        largest = 1.0 if s["aft_loss_distribution"] == "logistic" else 2.0
        return largest * float(s["dp_max_weight"] or 1.0)

    def plan(self, s: Settings) -> dict[str, Any]:
        """Parameters of the loss."""
        return {
            "law": s["aft_loss_distribution"],
            "scale": float(s["aft_loss_distribution_scale"]),
        }


MEANS = _Means()
TIMES = _Times()
