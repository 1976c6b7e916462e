"""Sums of the labels before the first tree, or the number of rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..accounting import GaussianEvent, sensitivity
from ..accounting.plain import PlainEvent
from .release import EXACT_BITS, Asked, Noise, Part, Release, shifted

__all__ = ["Intercept"]


@dataclass(frozen=True)
class Intercept(Release):
    """Sums of the labels and of rows, from which the intercept follows.

    Proof: docs/proofs/sensitivity.md

    Attributes:
        kind: "binary", "regression", "targets", "multiclass" or "cells"; "rows" where the
            intercept is public, but the number of rows is released.
        n_public: Whether the number of rows is public (then one sum less is needed).
        outputs: Classes or targets, K >= 1.
        presence: Whether the share of its cells that each row has is released too.
        exposures: Whether the sum of exposures is released too.
        times: How often the sums are released, of labels cut elsewhere each time.
    """

    name = "intercept"
    share = "base_score"

    kind: str
    n_public: bool = False
    outputs: int = 1
    presence: bool = False
    exposures: bool = False
    times: int = 1

    @classmethod
    def wanted(cls, asked: Asked) -> Intercept | None:
        """Where the intercept is released, or plans are chosen by the number of rows."""
        s = asked.settings
        if not (s.releases_labels or asked.counts):
            return None
        return cls(
            s.row_bound.of_person,
            kind=s.intercept_kind if s.releases_labels else "rows",
            n_public=s["dp_n_public"] is not None,
            outputs=s.trees_per_round,
            presence=asked.presence,
            exposures=s.exposures is not None,
            times=2 if s.measured else 1,
        )

    @property
    def draws(self) -> int:
        """As often as the labels are cut."""
        return self.times

    def exact(self) -> Noise:
        """Labels have a grid also without noise: they are not rounded to its ends."""
        return Noise(shift=EXACT_BITS)

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Gaussian noise on each sum."""
        del grid_bits
        sums: dict[str, Any] = {
            "n_public": self.n_public,
            "k": self.outputs,
            "presence": self.presence,
            "exposures": self.exposures,
        }
        in_rows = sensitivity.intercept_sens2(self.kind, 0, **sums)
        coordinates = sensitivity.intercept_coordinates(self.kind, person=self.persons, **sums)
        shift, sigma2 = shifted(in_rows, part.mu2, persons=self.persons)
        sens2 = sensitivity.intercept_sens2(self.kind, shift, **sums)
        label = "rows" if self.kind == "rows" else self.name
        event = GaussianEvent(label, sens2, sigma2, coordinates, self.times)
        return Noise(sigma2=sigma2, shift=shift), event
