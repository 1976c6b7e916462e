"""Noisy sums of every bin of a node, which determine both splits and leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..accounting.events import GaussianEvent, PlainEvent
from ..accounting.sensitivity import RowBound, feature_cells, leaf_coordinates
from ..parameters.config import Config
from .mechanism import DrawBudget, Mechanism, Noise, grid_sigma2
from .splits import NOISY_SUMS


def _cells(plan: Mapping[str, Any]) -> int:
    """Largest number of sums in the noisy histogram of one feature of one node."""
    if plan["split"] == "partial":
        return 2
    sizes = [
        (f["kind"], f["size"] if f["kind"] == "categorical" else len(f.get("cuts", f.get("grid"))))
        for f in plan["features"]
    ]
    counts = plan["candidates"]
    return feature_cells(sizes, counts["max_bin"], tree=counts["kind"] == "quantile_tree")


@dataclass(frozen=True)
class Histograms(Mechanism):
    """Noisy histograms of each level of each tree.

    Proof: docs/proofs/leaves.md
    """

    name = "histograms"
    section = ("histogram",)
    integers = ("sigma2",)
    share = "leaves"  # histograms replace splits and leaves
    of_rest = 0.7
    of_rounds = True
    words = (("histograms", "the noisy sums of split candidates (splits and leaf values)"),)

    outputs: int  # outputs (classes, quantiles or targets) with separate gradients, K >= 1
    levels: int  # levels of all trees of each output in one round
    features: int  # features of one tree; a row is in one cell of each
    cells: int  # sums of one feature of one level that a unit can touch

    @classmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether ``dp_split`` is "histogram" or "partial"."""
        return s.noisy_sums

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """A section that will contain only the noise."""
        return {"histogram": {}}

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> Histograms | None:
        """The sums of all levels of a round."""
        if plan["split"] not in NOISY_SUMS:
            return None
        cells = _cells(plan) << (plan["depth"] - 1) if bound.of_person else 1
        levels = plan["parallel_trees"] * plan["depth"]
        return cls(bound, plan["num_class"], levels, plan["features_per_tree"], cells)

    @property
    def draws(self) -> int:
        """One draw for each level."""
        return self.levels

    def sens2(self, grid_bits: int) -> int:
        """Squared L2 sensitivity of the sums of one level."""
        return self.features * self.bound.round_sens2(grid_bits, self.outputs)

    def variance(self, budget: DrawBudget, grid_bits: int) -> float:
        """Variance of the sums of a bin."""
        return self.sens2(grid_bits) / budget.mu2

    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """Gaussian noise on each sum."""
        return Noise(sigma2=grid_sigma2(self.variance(budget, grid_bits)))

    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """The event of the sums of one level of one tree of each output."""
        coordinates = self.features * self.cells * leaf_coordinates(self.outputs)
        return GaussianEvent(self.name, self.sens2(grid_bits), noise.sigma2, coordinates, count)
