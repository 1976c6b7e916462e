"""Sums of gradients and Hessians of the leaves, or leaf values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting import GaussianEvent, LaplaceEvent, sensitivity
from ..accounting.events import PlainEvent
from ..accounting.sensitivity import RowBound
from .release import MIN_SIGMA2, Asked, Noise, Part, Release, grid_sigma2, laplace_scale

if TYPE_CHECKING:
    from ..request.settings import Settings

__all__ = ["Leaves"]


@dataclass(frozen=True)
class Leaves(Release):
    """The leaves of all trees of a round.

    Proof: docs/proofs/leaves.md

    Attributes:
        row_bound: Bound of one row.
        outputs: Trees of a round on gradients of their own, K >= 1.
        trees: Trees of each output in one round, on the same gradients.
        mechanism: "gaussian" or "laplace" sums, or "output", the leaf value with Laplace noise.
        touched: Leaves of one release that a unit can touch, for each output.
        spread: Whether persons count more where their rows are in several leaves; then the sums of
            all rows are released beside the leaves.
        reports: Rows that each report their sums with noise of their own; 0 for noise on sums. The
            target epsilon is then that of all reports of one row, for any two rows.
    """

    name = "leaves"
    share = "leaves"
    words = (("leaves", "the leaf values (noisy sums, or the values with noise)"),)

    row_bound: RowBound
    outputs: int = 1
    trees: int = 1
    mechanism: str = "gaussian"
    touched: int = 1
    spread: bool = False
    reports: int = 0

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """Unless the sums that chose the splits give the leaves too."""
        return not s.noisy_sums

    @classmethod
    def of(cls, asked: Asked) -> Leaves:
        """The leaves of all trees of a round."""
        s = asked.settings
        # A row is in one leaf of a tree, and in the sum of all rows of an additive round. The rows
        # of a person may be in all leaves there are.
        cells = 1 << s["max_depth"] if s.row_bound.of_person else 1
        trees = s["dp_features_per_tree"] if s.additive else 1
        return cls(
            s.row_bound.of_person,
            s.row_bound,
            outputs=s.trees_per_round,
            trees=1 if s.additive and s["dp_leaf_noise"] == "gaussian" else s["num_parallel_tree"],
            mechanism=s["dp_leaf_noise"],
            touched=trees * cells + (s.additive or s.spread_leaves),
            spread=s.spread_leaves,
            reports=s["dp_n_public"] if s["dp_local"] else 0,
        )

    @property
    def draws(self) -> int:
        """One for each tree; the leaves of an additive round are one release."""
        return self.trees

    @property
    def of_rounds(self) -> bool:
        """In each of them."""
        return True

    @property
    def gaussian(self) -> bool:
        """Unless it is Laplace noise."""
        return self.mechanism == "gaussian"

    def sens2(self, grid_bits: int) -> int:
        """Squared L2 sensitivity of the sums of one tree of each output."""
        bound = self.row_bound.spread_sens2 if self.spread else self.row_bound.round_sens2
        return bound(grid_bits, self.outputs)

    def variance(self, part: Part, grid_bits: int) -> float:
        """Of the sums of a leaf.

        The reports of two rows differ by twice the norm of one, and a report has one part in n of
        the noise.
        """
        reported = 4 * self.reports if self.reports else 1
        return self.sens2(grid_bits) * reported / part.mu2 if self.gaussian else 0.0

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Noise on each sum, or on each value."""
        if not self.gaussian:
            sens = sensitivity.leaf_sens(self.mechanism, self.row_bound, grid_bits, self.outputs)
            scale = laplace_scale(sens, part.laplace)
            return Noise(scale=scale), LaplaceEvent(self.name, sens, scale, self.trees)
        least = MIN_SIGMA2 * max(self.reports, 1)
        sigma2 = max(grid_sigma2(self.variance(part, grid_bits)), least)
        coordinates = self.touched * sensitivity.leaf_coordinates(self.outputs)
        return (
            Noise(sigma2=sigma2),
            GaussianEvent(self.name, self.sens2(grid_bits), sigma2, coordinates, self.trees),
        )
