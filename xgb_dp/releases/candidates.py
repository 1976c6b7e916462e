"""Counts from which the split candidates of columns without public ones follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting import GaussianEvent, LaplaceEvent
from ..accounting.events import PlainEvent
from ..accounting.sensitivity import RowBound, candidates_sens2
from . import columns
from .release import (
    EXACT_BITS,
    Asked,
    Noise,
    Part,
    Release,
    grid_sigma2,
    laplace_scale,
    laplace_shift,
    shifted,
)

if TYPE_CHECKING:
    from ..request.settings import Settings

__all__ = ["Candidates"]


@dataclass(frozen=True)
class Candidates(Release):
    """Noisy counts of the cells of each column, or of its quantile tree.

    Proof: docs/proofs/candidates.md

    Attributes:
        row_bound: Bound of one row.
        features: Features with private candidates, F > 0.
        levels: Cells of one feature that a row is in: released levels of each quantile tree, or 1
            for histograms.
        cells: All sums that one release may have, any of which the rows of a person may be in.
        rounds: Rounds that release candidates, from the first one on.
        of_all_rounds: Whether these are all rounds, and each weighs the rows that it reads.
        hessian: Whether a row weighs its bounded Hessian, instead of one.
        laplace: Whether the noise is Laplace instead of Gaussian.
    """

    name = "candidates"
    share = "candidates"
    words = (("candidates", "the split candidates (noisy counts)"),)

    row_bound: RowBound
    features: int
    levels: int = 17
    cells: int = 0
    rounds: int = 1
    of_all_rounds: bool = False
    hessian: bool = False
    laplace: bool = False

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """Where a column has no public candidates."""
        return s.private_features > 0

    @classmethod
    def default_share(cls, s: Settings, given: Mapping[str, float]) -> float:
        """A tenth of what the sums of columns leave over."""
        by_column = given.get(columns.Columns.share, columns.SHARE)
        return 0.1 * (1.0 - by_column) if columns.Columns.wanted(s) else 0.1

    @classmethod
    def of(cls, asked: Asked) -> Candidates:
        """Counts of all columns without public candidates."""
        s = asked.settings
        hessian, rounds = s["dp_candidate_weight"] == "hessian", s["dp_candidate_rounds"]
        tree = s["dp_candidates"] == "quantile_tree"
        return cls(
            s.row_bound.of_person,
            s.row_bound,
            features=s.private_features,
            levels=s["dp_candidate_levels"] if tree else 1,
            cells=s.candidate_cells,
            rounds=rounds,
            of_all_rounds=hessian and rounds == s.rounds,
            hessian=hessian,
            laplace=s["dp_candidate_noise"] == "laplace",
        )

    @property
    def draws(self) -> int:
        """One in each round that releases candidates."""
        return 1 if self.of_all_rounds else self.rounds

    @property
    def of_rounds(self) -> bool:
        """Where all rounds release Hessians."""
        return self.of_all_rounds

    @property
    def gaussian(self) -> bool:
        """Unless it is Laplace noise."""
        return not self.laplace

    @property
    def touched(self) -> int:
        """Counts that one row is in."""
        return self.features * self.levels

    def _hessian_sens2(self, grid_bits: int) -> int:
        return self.touched * self.row_bound.most_hessian(grid_bits) ** 2

    def variance(self, part: Part, grid_bits: int) -> float:
        """Of sums of Hessians."""
        if self.laplace or not self.hessian:
            return 0.0
        return self._hessian_sens2(grid_bits) / part.mu2

    def exact(self) -> Noise:
        """The shares of a person's rows are not rounded to 0."""
        return Noise(shift=EXACT_BITS if self.persons and not self.hessian else 0)

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Noise on each count or sum of Hessians."""
        if self.laplace:
            return self._laplace(part.laplace, grid_bits)
        if self.hessian:
            shift, sens2 = 0, self._hessian_sens2(grid_bits)
            sigma2 = grid_sigma2(sens2 / part.mu2)
        else:
            shift, sigma2 = shifted(self.touched, part.mu2, persons=self.persons)
            sens2 = candidates_sens2(self.features, self.levels, shift)
        coordinates = self.cells if self.persons else self.touched
        return (
            Noise(sigma2=sigma2, shift=shift),
            GaussianEvent(self.name, sens2, sigma2, coordinates, self.draws),
        )

    def _laplace(self, epsilon: float, grid_bits: int) -> tuple[Noise, PlainEvent]:
        if self.hessian:
            shift, unit = 0, self.row_bound.most_hessian(grid_bits)
        else:
            shift = laplace_shift(self.touched / epsilon, persons=self.persons)
            unit = 1 << shift
        scale = laplace_scale(self.touched * unit, epsilon)
        return (
            Noise(scale=scale, shift=shift),
            LaplaceEvent(self.name, self.touched * unit, scale, self.draws),
        )
