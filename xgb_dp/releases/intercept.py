"""Sums of the labels before the first tree, or the number of rows alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..accounting import GaussianEvent, sensitivity
from ..accounting.events import PlainEvent
from .release import EXACT_BITS, Asked, Noise, Part, Release, shifted

if TYPE_CHECKING:
    from ..request.settings import Settings

__all__ = ["COUNT", "Intercept"]

COUNT = 0.009
"""Share of the label sums, and of the number of rows where it is released alone."""
_MEAN = 0.027


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
    words = (
        ("intercept", "the intercept (noisy label sums)"),
        ("rows", "the number of rows (a noisy count)"),
    )

    kind: str
    n_public: bool = False
    outputs: int = 1
    presence: bool = False
    exposures: bool = False
    times: int = 1

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """Where the intercept is released; the number of rows is asked for besides."""
        return s.releases_labels

    @classmethod
    def default_share(cls, s: Settings, given: Mapping[str, float]) -> float:
        """More where the mean of a regression is not corrected after training."""
        del given
        return _MEAN if s.kind == "regression" and not s["dp_mean_correction"] else COUNT

    @classmethod
    def of(cls, asked: Asked) -> Intercept:
        """The labels, or the number of rows by which plans are chosen."""
        s = asked.settings
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
