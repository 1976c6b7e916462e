"""Quantiles: their levels, the bound of a row, and the widths of the kernel that smooths the loss.

Proof: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..errors import PrivacyParameterError
from ..parameters import parse

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["QUANTILES", "levels"]

_MOST = 64  # quantiles of one model
_MEDIAN = 0.5
# Width of the kernel of a median, in deviations of the labels. It has no bias where labels lie
# evenly around their median, and many rows within it make a steady Hessian.
_CENTRE_WIDTH = 0.25
# Widths for other levels in the first and the last of their rounds.
_FIRST, _LAST = 0.5, 0.1
# Share of the rounds that fit the median, and how many the quantiles need at least to leave it.
_CENTRE_SHARE, _LEAST_OWN = 0.6, 12


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
        return (_MEDIAN,) if found is None else found

    def has_centre(self, s: Settings) -> bool:
        """Whether the first rounds may fit the median: all outputs start there and share splits."""
        return (
            self.levels(s) != (_MEDIAN,)
            and s.intercept in ("public", "released")
            and not isinstance(s["base_score"], list)
            and s["dp_leaf"] == "newton"
            and (s.trees_per_round == 1 or s["dp_class_trees"] == "joint")
        )

    def centre_rounds(self, s: Settings) -> int:
        """How many rounds fit the median, whatever the levels are."""
        if not self.has_centre(s):
            return 0
        return max(0, min(round(_CENTRE_SHARE * s.rounds), s.rounds - _LEAST_OWN))

    def starts(self, s: Settings) -> tuple[float, ...]:
        """The levels of the intercepts of all outputs."""
        known = self.levels(s)
        return (_MEDIAN,) * len(known) if self.centre_rounds(s) else known

    def gradient_bound(self, s: Settings) -> float:
        """The norm of a row whose label lies at the worse end, all quantiles being in order."""
        return self._largest(self.levels(s)) * float(s["dp_max_weight"] or 1.0)

    def hessian_weight(self, s: Settings) -> float:
        """The largest r with which a row near its quantile has no larger norm than one far away."""
        known = (*self.levels(s), *([_MEDIAN] if self.has_centre(s) else []))
        return 2.0 / 3.0 * min(max(a, 1.0 - a) for a in known)

    def bound_ratio(self, s: Settings) -> float:
        """The bound of a row over that of the median alone, both of weight one."""
        return self._largest(self.levels(s)) / self._largest((_MEDIAN,))

    def plan(self, s: Settings) -> dict[str, Any]:
        """Parameters of the loss; the widths are those of labels that fill the declared range."""
        return {
            "levels": list(self.levels(s)),
            "centre_rounds": self.centre_rounds(s),
            # What brings a row at the median to the bound of all levels together.
            "centre_scale": self.bound_ratio(s),
            **self.widths(s, s.half_width / 2),
        }

    def widths(self, s: Settings, spread: float) -> dict[str, float]:
        """Widths of the kernel for labels of some deviation, in the unit of the target."""
        own = max(s.rounds - self.centre_rounds(s) - 1, 1)
        median = self.levels(s) == (_MEDIAN,)
        first, last = (_CENTRE_WIDTH, _CENTRE_WIDTH) if median else (_FIRST, _LAST)
        return {
            "centre_width": _CENTRE_WIDTH * spread,
            "first_width": first * spread,
            "last_width": last * spread,
            "width_decay": (last / first) ** (1.0 / own),
        }

    @staticmethod
    def _largest(known: tuple[float, ...]) -> float:
        """The norm of a row on one side of all levels, the worse one."""
        above, below = (math.fsum(a * a for a in ends) for ends in (known, [1 - a for a in known]))
        return math.sqrt(max(above, below))


QUANTILES = _Quantiles()
