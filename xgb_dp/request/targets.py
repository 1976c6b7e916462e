"""Several targets or labels of a row: the bound of all of them together, and their loss.

Every target has residuals in half widths of its own range, clipped at one number. So a row has a
largest norm over all targets, which follows from how many there are. Labels of 0 and 1 have a
largest norm that follows from the row's predictions.

Proof: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["CLIPS", "LABELS", "TARGETS"]

CLIPS = (1e-9, 1e3)
"""Clips that the trainer takes, in half widths of the range of a target."""

# Largest residual of a target, in half widths of its range: that of a single one by default.
_CLIP = 0.3
# What the Hessian of a target counts in the norm of a row, in clipped residuals.
_HESSIAN = 0.25
# Smallest bound of a single target that the trainer takes. A larger one is enforced as well.
_LEAST = 1e-9


class _Targets:
    """The figures of the squared error of several targets, from checked settings."""

    def gradient_bound(self, s: Settings) -> float:
        """The norm of a row that is clipped in all targets."""
        return self._of_clip(s) * _CLIP

    def hessian_weight(self, s: Settings) -> float:
        """The Hessian of a target counts a quarter of its clip."""
        return min(max((_HESSIAN * self.clip(s)) ** 2, 1e-12), 1e6)

    def bound_ratio(self, s: Settings) -> float:
        """The bound of a row over that of one target."""
        return math.sqrt(len(s.targets))

    def clip(self, s: Settings) -> float:
        """Largest residual of a target, in half widths: what the bound of a row leaves to each."""
        return float(s["dp_gradient_bound"]) / self._of_clip(s)

    def of_output(self, s: Settings) -> tuple[float, float]:
        """The clip of a target and its Hessian, in units of the bound of all of them."""
        weight, largest = s["dp_max_weight"] or 1.0, s["dp_gradient_bound"]
        gradient, hessian = self.clip(s), math.sqrt(s["dp_hessian_weight"])
        return (
            min(weight * gradient / largest, 1.0),
            min(max(weight * hessian / largest, _LEAST), 1.0),
        )

    def plan(self, s: Settings) -> dict[str, Any]:
        """Parameters of the loss."""
        lower, upper = zip(*s.targets, strict=True)
        return {"clip": self.clip(s), "lower": list(lower), "upper": list(upper)}

    @staticmethod
    def _of_clip(s: Settings) -> float:
        """The norm of a row over the clip of its targets."""
        return math.sqrt(len(s.targets)) * math.hypot(1.0, _HESSIAN) * (s["dp_max_weight"] or 1.0)


class _Labels:
    """The figures of the logistic loss of several labels of 0 and 1, from checked settings."""

    def gradient_bound(self, s: Settings) -> float:
        """That of one label, of all of them together."""
        return 0.5 * self.bound_ratio(s)

    def bound_ratio(self, s: Settings) -> float:
        """The bound of a row over that of one label."""
        return math.sqrt(s.labels)

    def of_output(self, s: Settings) -> tuple[float, float]:
        """What a row scaled to C has in one label at most: sure of it, and unsure of all others.

        A gradient is at most 1 and those of the other labels at least 1/2; a Hessian is at most
        1/4, where all gradients are at least 1/2. With dp_leaf="gradient" all Hessians are 1.
        """
        k, r = s.labels, s["dp_hessian_weight"]
        most, units = (1.0, k * r) if s["dp_leaf"] == "gradient" else (0.25, 0.0)
        gradient = 1.0 / math.sqrt(1.0 + (k - 1) / 4.0 + units)
        return gradient, min(most * math.sqrt(r / (k / 4.0 + units)), 1.0)

    def plan(self, s: Settings) -> dict[str, Any]:
        """Parameters of the loss."""
        return {"count": s.labels}


LABELS = _Labels()
TARGETS = _Targets()
