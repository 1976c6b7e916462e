"""Sums of gradients and Hessians of the leaves, or leaf values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..accounting.events import GaussianEvent, LaplaceEvent, PlainEvent
from ..accounting.sensitivity import RowBound, leaf_coordinates, leaf_sens
from ..errors import PrivacyRefusal
from ..parameters.config import Config
from ..parameters.parameter import FREE, PUBLIC, SPENDS, Parameter, Rule, Table
from ..parameters.parse import Flag, Number, OneOf
from .mechanism import DrawBudget, Mechanism, Noise, grid_sigma2, laplace_scale
from .splits import NOISY_SUMS

LEAF_NOISES = ("gaussian", "laplace", "output")
_LARGEST_ALPHA = 1e12  # in half widths of the label range


def _shrinkage(name: str, value: Any, s: Config) -> bool:
    """Read a flag; shrinkage needs leaf sums, and "output" releases values only."""
    return Flag()(name, value) and s["dp_leaf_noise"] != "output"


def _noise_share(s: Config) -> float:
    """Default of `dp_shrinkage_noise`: 1, but less if the user sets a small learning rate."""
    return min(1.0, max(1e-6, (s["eta"] / 0.5) ** 2)) if "eta" in s.given else 1.0


# fmt: off
_PARAMETERS = (
    Parameter("dp_leaf", "Leaf values: the Newton step ('newton'), or the mean gradient, with "
              "weights in place of Hessians ('gradient').",
              OneOf(("newton", "gradient")), "newton", PUBLIC, "leaves", Table.PUBLISHED),
    Parameter("dp_leaf_noise", "'gaussian' or 'laplace' noise on leaf sums, or Laplace noise on "
              "leaf values ('output').",
              OneOf(LEAF_NOISES), "gaussian", SPENDS, "leaves",
              Table.PUBLISHED, plan="leaf.noise"),
    Parameter("dp_geometric_clip", "Clips the leaf values of round t to (1 - eta)^t gradient "
              "bounds.", Flag(), False, PUBLIC, "leaves", Table.PUBLISHED,
              values="bool; requires dp_leaf_noise='output'", plan="leaf.geometric_clip"),
    Parameter("dp_eta_warmup", "Learning rate of the first round, as a fraction of eta; it rises "
              "linearly.", Number(1e-3, 1), 1.0, FREE, "leaves",
              Table.DEFAULT, unit="fraction of eta", shown="1; see "
              "[Rounds](#rounds)", plan="leaf.eta_warmup"),
    Parameter("dp_shrinkage", "Shrinks leaf values with a small signal compared with their noise.",
              _shrinkage, lambda s: s["dp_leaf_noise"] != "output", FREE, "leaves",
              Table.DEFAULT, values="bool", shown="True; False with dp_leaf_noise='output', which "
              "releases no sums", plan="leaf.shrinkage"),
    Parameter("dp_shrinkage_strata", "Estimates the shrinkage separately for main effects and "
              "interactions. Applies to complete trees up to depth 8.",
              Flag(), True, FREE, "leaves",
              Table.DEFAULT, plan="leaf.strata"),
    Parameter("dp_shrinkage_noise", "Fraction of the noise variance that shrinkage counts. Noise "
              "that is drawn anew in every round averages out over small steps.",
              Number(1e-6, 1), _noise_share, FREE, "leaves", Table.DEFAULT, unit="variance",
              shown="1; with eta below 0.5 (2 eta)^2", plan="leaf.noise_share"),
    Parameter("eta", "Learning rate.",
              Number(0, 1, open_low=True), 0.5, PUBLIC, "XGBoost",
              shown="0.5; see [Rounds](#rounds)",
              aliases=("learning_rate",), plan="leaf.eta", xgboost=True),
    Parameter("lambda", "L2 penalty on leaf weights, and in the scores 'newton' and 'gain'.",
              Number(0, 1e12), 1.0, PUBLIC,
              "XGBoost", Table.DEFAULT, unit="hessian", values=">= 0", aliases=("reg_lambda",),
              plan="leaf.lambda", xgboost=True),
    Parameter("alpha", "L1 penalty on leaf weights.", Number(0, 1e12), 0.0, FREE, "XGBoost",
              Table.DEFAULT, unit="gradient", values=">= 0", aliases=("reg_alpha",)),
    Parameter("max_delta_step", "Maximum absolute leaf weight, before multiplication by eta; 0 "
              "means no limit.", Number(0, 1e12), 2.0,
              FREE, "XGBoost", Table.DEFAULT, unit="leaf weight; regression: in units of "
              "dp_target_unit", values=">= 0", plan="leaf.max_delta_step", xgboost=True),
    Parameter("min_child_weight", "Lower bound on the noisy Hessian sum of a leaf, or with "
              "dp_leaf_noise='output' on the denominator.", Number(0, 1e12), 0.0, PUBLIC, "XGBoost",
              Table.PUBLISHED, unit="hessian", values=">= 0", plan="leaf.min_child_weight",
              xgboost=True),
)
_RULES = (
    Rule("no scale_pos_weight with gradient leaves",
         lambda s: s["dp_leaf"] == "gradient" and s["scale_pos_weight"] != 1.0,
         "`scale_pos_weight` has no effect with dp_leaf='gradient', where every row has weight 1. "
         "Remove it."),
    Rule("no leaf noise with noisy histograms",
         lambda s: s["dp_leaf_noise"] != "gaussian" and s.noisy_sums,
         "`dp_leaf_noise` has no effect with dp_split={dp_split!r}: leaves are computed from the "
         "noisy sums that determine the splits. Remove it."),
    Rule("output leaves need equal Hessians",
         lambda s: s["dp_leaf_noise"] == "output" and not s.rows_count_alike,
         "`dp_leaf_noise`='output' is refused for this objective: the sensitivity of a leaf value "
         "is proved only if all rows have the same Hessian. Set dp_leaf='gradient', or use "
         "'laplace'.", PrivacyRefusal),
    Rule("output leaves need unit weights",
         lambda s: s["dp_leaf_noise"] == "output" and "dp_max_weight" in s.given,
         "`dp_leaf_noise`='output' is refused with row weights: it is proved for unit weights "
         "only. Remove {`dp_max_weight`}, or use another value.", PrivacyRefusal),
    Rule("output leaves need rows as units",
         lambda s: s.unit == "person" and s["dp_leaf_noise"] == "output",
         "`dp_leaf_noise`='output' is refused with {`dp_privacy_id`}: the sensitivity of a leaf "
         "value is proved only if every row has weight 1, but rows of a person are scaled down. "
         "Use 'gaussian' or 'laplace'.", PrivacyRefusal),
    # The arithmetic of the sensitivity is exact up to this limit.
    Rule("largest denominator of output leaves",
         lambda s: s["dp_leaf_noise"] == "output" and s["lambda"] + s["min_child_weight"] > 1 << 20,
         "`lambda` + `min_child_weight` must be at most 2^20 with dp_leaf_noise='output'. Lower "
         "them."),
    Rule("geometric clip needs output leaves",
         lambda s: s["dp_geometric_clip"] and s["dp_leaf_noise"] != "output",
         "`dp_geometric_clip` requires dp_leaf_noise='output'. Remove it."),
    Rule("no warmup with geometric clip",
         lambda s: s["dp_geometric_clip"] and s["dp_eta_warmup"] < 1.0,
         "`dp_geometric_clip` requires the same learning rate in all rounds. Remove "
         "`dp_eta_warmup`."),
    Rule("largest alpha",
         lambda s: s["alpha"] > _LARGEST_ALPHA * s.scale,
         "`alpha` must be at most 1e12 times half the width of dp_target_bounds; got {alpha}."),
)
# fmt: on


@dataclass(frozen=True)
class Leaves(Mechanism):
    """The leaves of all trees of a round.

    Proof: docs/proofs/leaves.md
    """

    name = "leaves"
    section = ("leaf",)
    integers = ("sigma2", "scale")
    share = "leaves"
    of_rest = 0.7
    of_rounds = True
    words = (("leaves", "the leaf values (noisy sums or noisy values)"),)
    parameters = _PARAMETERS
    rules = _RULES

    outputs: int = 1  # outputs (classes, quantiles or targets) with separate gradients, K >= 1
    draws: int = 1  # trees of each output in one round
    depth: int = 0  # largest depth of a tree
    mechanism: str = "gaussian"  # noise on sums, "gaussian" or "laplace"; or on values, "output"
    spread: bool = False  # whether persons with rows in several leaves count more

    @classmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether leaves have noise of their own, unlike leaves of noisy histograms."""
        return not s.noisy_sums

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """Settings of leaves that depend on several parameters."""
        return {"leaf": {"alpha": s.alpha, "prior_max": s.prior_max, "spread": s.spread_leaves}}

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> Leaves | None:
        """The leaves of a round."""
        if plan["split"] in NOISY_SUMS:
            return None
        leaf = plan["leaf"]
        counts = plan["num_class"], plan["parallel_trees"], plan["depth"]
        return cls(bound, *counts, mechanism=leaf["noise"], spread=leaf["spread"])

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.mechanism == "gaussian"

    def sens2(self, grid_bits: int) -> int:
        """Squared L2 sensitivity of the sums of one tree of each output."""
        measure = self.bound.spread_sens2 if self.spread else self.bound.round_sens2
        return measure(grid_bits, self.outputs)

    def variance(self, budget: DrawBudget, grid_bits: int) -> float:
        """Variance of the sums of a leaf."""
        return self.sens2(grid_bits) / budget.mu2 if self.gaussian else 0.0

    def _sens1(self, grid_bits: int) -> int:
        return leaf_sens(self.mechanism, self.bound, grid_bits, self.outputs)

    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """Noise on each sum or on each value."""
        if not self.gaussian:
            return Noise(scale=laplace_scale(self._sens1(grid_bits), budget.laplace))
        return Noise(sigma2=grid_sigma2(self.variance(budget, grid_bits)))

    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """The event of the leaves of one tree of each output.

        A row is in one leaf of a tree, and in the sum of all rows if that sum is released. The rows
        of a person may be in all leaves.
        """
        if not self.gaussian:
            return LaplaceEvent(self.name, self._sens1(grid_bits), noise.scale, count)
        leaves = (1 << self.depth if self.persons else 1) + self.spread
        coordinates = leaves * leaf_coordinates(self.outputs)
        return GaussianEvent(self.name, self.sens2(grid_bits), noise.sigma2, coordinates, count)
