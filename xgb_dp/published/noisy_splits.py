"""Noisy sums of every bin of a node, of which both splits and leaves are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..accounting import GaussianEvent, sensitivity
from ..accounting.events import PlainEvent
from ..accounting.sensitivity import RowBound, leaf_coordinates
from ..releases.release import Asked, Noise, OfRounds, Part, grid_sigma2

if TYPE_CHECKING:
    from ..request.settings import Settings


def _cells(s: Settings) -> int:
    """Sums that the noisy histogram of one feature of one node has at most."""
    if s["dp_split"] == "partial":
        return 2
    sizes = [(f.kind, f.size or len(f.cuts) or len(f.grid)) for f in s.features]
    tree = s["dp_candidates"] == "quantile_tree"
    return sensitivity.feature_cells(sizes, s["max_bin"], tree=tree)


@dataclass(frozen=True)
class Histograms(OfRounds):
    """Noisy sums of each level of each tree.

    Proof: docs/proofs/leaves.md
    """

    name = "histograms"
    share = "leaves"  # they stand in for splits and leaves
    of_rest = 0.7
    words = (("histograms", "the noisy sums of split candidates (splits and leaf values)"),)

    row_bound: RowBound  # bound of one row
    outputs: int  # trees of a round on gradients of their own, K >= 1
    levels: int  # levels of all trees of each output in one round
    features: int  # features of one tree, of which the sums hold one cell each for a row
    cells: int  # sums of one feature of one level that a unit can touch

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """With ``dp_split`` "histogram" or "partial"."""
        return s.noisy_sums

    @classmethod
    def of(cls, asked: Asked) -> Histograms:
        """The sums of all levels of a round."""
        s = asked.settings
        cells = _cells(s) << (s["max_depth"] - 1) if s.row_bound.of_person else 1
        return cls(
            s.row_bound.of_person,
            s.row_bound,
            outputs=s.trees_per_round,
            levels=s["num_parallel_tree"] * s["max_depth"],
            features=s["dp_features_per_tree"],
            cells=cells,
        )

    @classmethod
    def section(cls, s: Settings, noise: Noise) -> dict[str, Any]:
        """Its noise."""
        return {"histogram": {"sigma2": noise.sigma2}}

    @property
    def draws(self) -> int:
        """One for each level."""
        return self.levels

    def sens2(self, grid_bits: int) -> int:
        """Squared L2 sensitivity of the sums of one level."""
        return self.features * self.row_bound.round_sens2(grid_bits, self.outputs)

    def variance(self, part: Part, grid_bits: int) -> float:
        """Of the sums of a bin."""
        return self.sens2(grid_bits) / part.mu2

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Gaussian noise on each sum."""
        sigma2 = grid_sigma2(self.variance(part, grid_bits))
        coordinates = self.features * self.cells * leaf_coordinates(self.outputs)
        return (
            Noise(sigma2=sigma2),
            GaussianEvent(self.name, self.sens2(grid_bits), sigma2, coordinates, self.levels),
        )
