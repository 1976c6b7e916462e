"""A rising curve from margins to probabilities that a model carries beside its trees.

XGBoost keeps it as an attribute, and predicts without it: whoever wants the calibrated
probabilities reads the margins off the curve.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LedgerError

CURVE = "dp_calibration"
"""Attribute of the model that holds it."""
_MOST = 4096


@dataclass(frozen=True)
class MarginCurve:
    """Probabilities at some margins; between them a straight line, beyond them the nearest."""

    margins: tuple[float, ...]  # ascending, finite
    probabilities: tuple[float, ...]  # as many, in (0, 1), not falling
    rounds: int  # of the model that it is for

    def __post_init__(self) -> None:
        sound = 1 <= len(self.margins) == len(self.probabilities) <= _MOST
        sound = sound and all(math.isfinite(m) for m in self.margins)
        sound = sound and all(a < b for a, b in pairwise(self.margins))
        sound = sound and all(0.0 < p < 1.0 for p in self.probabilities)
        sound = sound and all(a <= b for a, b in pairwise(self.probabilities))
        if not sound or type(self.rounds) is not int or self.rounds < 0:
            raise ValueError("a curve has ascending margins, and probabilities that do not fall")

    def __call__(self, margins: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability at each margin."""
        return np.asarray(np.interp(np.asarray(margins), self.margins, self.probabilities))

    def to_json(self) -> str:
        """The text of the attribute."""
        return json.dumps({"form": 1, **vars(self)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> MarginCurve:
        """The inverse of :meth:`to_json`."""
        data = json.loads(text)
        names = {"form", "margins", "probabilities", "rounds"}
        if not isinstance(data, Mapping) or set(data) != names or data["form"] != 1:
            raise ValueError("a curve of another form")
        try:
            margins, probabilities = map(float, data["margins"]), map(float, data["probabilities"])
            return cls(tuple(margins), tuple(probabilities), data["rounds"])
        except TypeError:
            raise ValueError("a curve is made of numbers") from None

    @classmethod
    def of(cls, booster: Any) -> MarginCurve | None:
        """The curve that a model carries; None without."""
        text = booster.attr(CURVE)
        if text is None:
            return None
        try:
            curve = cls.from_json(text)
        except ValueError:
            raise LedgerError(
                f"The attribute {CURVE!r} of the model is damaged. Calibrate the model again, or "
                f"drop the curve: booster.set_attr({CURVE}=None)."
            ) from None
        if curve.rounds != booster.num_boosted_rounds():
            raise LedgerError(
                f"The probabilities of this model were calibrated after {curve.rounds} rounds, "
                f"and the model has {booster.num_boosted_rounds()} now. Calibrate it again, or "
                f"drop the curve: booster.set_attr({CURVE}=None)."
            )
        return curve
