"""The sums of labels that a training releases before its first tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import sensitivity


def release_of(request: Mapping[str, Any]) -> str:
    """The name that the draws of a request before the first tree have in a ledger."""
    kind: str = request["kind"]
    return kind if kind in ("rows", "columns", "range") else "intercept"


@dataclass(frozen=True)
class Labels:
    """The sums of labels that are released before the first tree.

    Attributes:
        kind: As in :func:`sensitivity.intercept_sens2`.
        shift: Sums are multiplied by 2**shift.
        n_public: Whether the number of rows is public.
        count: Classes, cells or targets.
        presence: Whether the cells that are present are summed too.
        exposures: Whether exposures are summed too.
    """

    kind: str
    shift: int
    n_public: bool
    count: int
    presence: bool
    exposures: bool

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Labels:
        """Those that a request asks for."""
        kind = request["kind"]
        return cls(
            kind=kind,
            shift=request["shift"],
            n_public="n_public" in request,
            count=len(request["lower"]) if kind == "targets" else request["num_class"],
            presence="columns" in request,
            exposures="exposure_lower" in request and kind in ("regression", "cells"),
        )

    def measure(self, *, person: bool) -> tuple[int, int]:
        """Squared L2 sensitivity of the sums, and how many of them one unit can touch."""
        sums: dict[str, Any] = {
            "n_public": self.n_public,
            "k": self.count,
            "presence": self.presence,
            "exposures": self.exposures,
        }
        coordinates = sensitivity.intercept_coordinates(self.kind, person=person, **sums)
        if self.kind in ("cells", "range") and person:
            coordinates = max(coordinates, self.count)
        return sensitivity.intercept_sens2(self.kind, self.shift, **sums), coordinates
