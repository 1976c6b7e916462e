"""Quantiles: their levels, the bound of a row, and the widths of the kernel that smooths the loss.

Proof: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..errors import PrivacyParameterError
from . import parse

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["QUANTILES", "levels"]

_MOST = 64  # quantiles of one model
# Widths of the kernel in the first and the last rounds, in deviations of the labels.
_FIRST, _LAST, _DECAY = 0.5, 0.1, 0.95


def levels(name: str, value: Any, s: Settings) -> tuple[float, ...]:
    """One level in (0, 1), or a list of them in rising order."""
    given = parse.listed(value)
    found = [value] if given is None else given
    out = tuple(
        parse.parse_number(name, v, low=0, high=1, open_low=True, open_high=True) for v in found
    )
    if not 1 <= len(out) <= _MOST or any(a >= b for a, b in pairwise(out)):
        raise PrivacyParameterError(
            f"`{name}` must be a level above 0 and below 1, or a list of at most {_MOST} levels in "
            "rising order, e.g. quantile_alpha=[0.1, 0.5, 0.9]."
        )
    return out


class _Quantiles:
    """The figures of the quantile loss, from checked settings."""

    def levels(self, s: Settings) -> tuple[float, ...]:
        """Levels of all outputs; the median where none are given."""
        found: tuple[float, ...] | None = s["quantile_alpha"]
        return (0.5,) if found is None else found

    def gradient_bound(self, s: Settings) -> float:
        """The norm of a row whose label lies at the worse end, all quantiles being in order."""
        found = self.levels(s)
        worst = max(math.fsum(a * a for a in found), math.fsum((1 - a) ** 2 for a in found))
        return math.sqrt(worst) * float(s["dp_max_weight"] or 1.0)

    def hessian_weight(self, s: Settings) -> float:
        """The largest r with which a row near its quantile has no larger norm than one far away."""
        return 2.0 / 3.0 * min(max(a, 1.0 - a) for a in self.levels(s))

    def plan(self, s: Settings) -> dict[str, Any]:
        """Parameters of the loss; the widths are those of labels that fill the declared range."""
        return {"levels": list(self.levels(s)), **self.widths(s.half_width / 2)}

    def widths(self, spread: float) -> dict[str, float]:
        """Widths of the kernel for labels of some deviation, in the unit of the target."""
        return {"first_width": _FIRST * spread, "last_width": _LAST * spread, "width_decay": _DECAY}


QUANTILES = _Quantiles()
