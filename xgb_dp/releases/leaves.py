"""Sums of gradients and Hessians of the leaves, or leaf values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..accounting import GaussianEvent, LaplaceEvent, sensitivity
from ..accounting.enforced import LEAF_NOISES
from ..accounting.events import PlainEvent
from ..accounting.sensitivity import RowBound, leaf_coordinates
from ..errors import PrivacyRefusal
from ..parameters.parameter import FREE, PUBLIC, SPENDS, Parameter, Rule, Table
from ..parameters.parse import Choice, Flag, Number
from .release import Asked, Noise, OfRounds, Part, grid_sigma2, laplace_scale

if TYPE_CHECKING:
    from ..request.settings import Settings

_LARGEST_ALPHA = 1e12  # half widths


def _has_sums(s: Settings) -> bool:
    """Output perturbation releases no sums, by which signal could be told from noise."""
    return bool(s["dp_leaf_noise"] != "output")


def _shrinkage(name: str, value: Any, s: Settings) -> bool:
    return Flag()(name, value) and _has_sums(s)


# fmt: off
_PARAMETERS = (
    Parameter("dp_leaf", "how a leaf gets its value: by a Newton step, or as a mean gradient, in "
              "which every row counts 1 instead of its Hessian", Choice(("newton", "gradient")),
              "newton", PUBLIC, "leaves", Table.PUBLISHED),
    Parameter("dp_leaf_noise", "what gets the noise in a leaf: its sums (Gaussian or Laplace), or "
              "its value (Laplace). With 'output' min_child_weight is a floor in the denominator",
              Choice(LEAF_NOISES), "gaussian", SPENDS, "leaves",
              Table.PUBLISHED, plan="leaf.noise"),
    Parameter("dp_geometric_clip", "clips the values of round t to (1 - eta)^t gradient bounds",
              Flag(), False, PUBLIC, "leaves", Table.PUBLISHED,
              values="bool; with dp_leaf_noise='output'", plan="leaf.geometric_clip"),
    Parameter("dp_eta_start", "the learning rate of the first round, as a share of eta. It rises "
              "to eta by equal steps from round to round", Number(1e-3, 1), 1.0, FREE, "leaves",
              Table.DEFAULT, unit="share of eta", shown="1; open rounds of quantiles: follows the "
              "rows, unless eta is given", plan="leaf.eta_start"),
    Parameter("dp_shrinkage", "shrinks leaves whose signal is smaller than their noise and the "
              "chance of the rows", _shrinkage, _has_sums, FREE, "leaves", Table.DEFAULT,
              values="bool", shown="True; False with dp_leaf_noise='output', which releases no "
              "sums", plan="leaf.shrinkage"),
    Parameter("dp_shrinkage_strata", "shrinks the effects of a tree's selections and their "
              "interactions each by its own estimate, in complete trees of depth 8 or less, "
              "instead of all leaves by one", Flag(), True, FREE, "leaves", Table.DEFAULT,
              plan="leaf.strata"),
    Parameter("eta", "the learning rate. It also sets the clip of dp_geometric_clip",
              Number(0, 1, open_low=True), 0.5, PUBLIC, "XGBoost",
              shown="0.5; open rounds: follows the rows", aliases=("learning_rate",),
              plan="leaf.eta", xgboost=True),
    Parameter("lambda", "L2 penalty on leaf weights; part of the scores newton and gain and of the "
              "sensitivity of dp_leaf_noise='output'", Number(0, 1e12), 1.0, PUBLIC, "XGBoost",
              Table.DEFAULT, unit="hessian", values=">= 0", aliases=("reg_lambda",),
              plan="leaf.lambda", xgboost=True),
    Parameter("alpha", "L1 penalty on leaf weights", Number(0, 1e12), 0.0, FREE, "XGBoost",
              Table.DEFAULT, unit="gradient", values=">= 0", aliases=("reg_alpha",)),
    Parameter("max_delta_step", "largest leaf weight before eta; 0 for none", Number(0, 1e12), 2.0,
              FREE, "XGBoost", Table.DEFAULT, unit="leaf weight; regression: the unit of "
              "dp_target_unit", values=">= 0", plan="leaf.max_delta_step", xgboost=True),
    Parameter("min_child_weight", "floor of the noisy hessian sum in a leaf; part of the "
              "sensitivity of dp_leaf_noise='output'", Number(0, 1e12), 0.0, PUBLIC, "XGBoost",
              Table.PUBLISHED, unit="hessian", values=">= 0", plan="leaf.min_child_weight",
              xgboost=True),
)
_RULES = (
    Rule("gradient leaves weigh no class",
         lambda s: s["dp_leaf"] == "gradient" and s["scale_pos_weight"] != 1.0,
         "`scale_pos_weight` has no meaning with dp_leaf='gradient', where every row counts one. "
         "Leave it out."),
    Rule("noisy sums bring Gaussian leaves",
         lambda s: s["dp_leaf_noise"] != "gaussian" and s.noisy_sums,
         "`dp_leaf_noise` has no effect with dp_split={dp_split!r}: leaves are read from the "
         "noisy sums of the splits. Leave it out."),
    Rule("leaf noise output needs rows that count alike",
         lambda s: s["dp_leaf_noise"] == "output" and not s.rows_count_alike,
         "`dp_leaf_noise`='output' is refused for this objective: the "
         "sensitivity of a leaf value is proved where every row counts the same. "
         "Add dp_leaf='gradient', or use 'laplace'.", PrivacyRefusal),
    Rule("output leaves need unit weights",
         lambda s: s["dp_leaf_noise"] == "output" and "dp_max_weight" in s.given,
         "`dp_leaf_noise`='output' is refused with row weights: it is proved for unit weights. "
         "Leave {`dp_max_weight`} out, or take another value.", PrivacyRefusal),
    Rule("output leaves of rows",
         lambda s: s.unit == "person" and s["dp_leaf_noise"] == "output",
         "`dp_leaf_noise`='output' is refused with {`dp_privacy_id`}: the sensitivity of a leaf "
         "value is proved where every row counts one, and the rows of a person share what a "
         "person may count. Use 'gaussian' or 'laplace'.", PrivacyRefusal),
    Rule("denominators of output leaves",  # the arithmetic of the sensitivity is exact up to here
         lambda s: s["dp_leaf_noise"] == "output" and s["lambda"] + s["min_child_weight"] > 1 << 20,
         "`lambda` and `min_child_weight` together are at most 2^20 with dp_leaf_noise='output'. "
         "Lower them."),
    Rule("geometric clip needs output leaves",
         lambda s: s["dp_geometric_clip"] and s["dp_leaf_noise"] != "output",
         "`dp_geometric_clip` has an effect with dp_leaf_noise='output' only. Leave it out."),
    Rule("one learning rate of a geometric clip",
         lambda s: s["dp_geometric_clip"] and s["dp_eta_start"] < 1.0,
         "`dp_geometric_clip` follows one learning rate of all rounds. Leave `dp_eta_start` out."),
    Rule("alpha in the unit of leaves",
         lambda s: s["alpha"] > _LARGEST_ALPHA * s.scale,
         "`alpha` must be at most 1e12 times half the width of dp_target_bounds; got {alpha}."),
)
# fmt: on


@dataclass(frozen=True)
class Leaves(OfRounds):
    """The leaves of all trees of a round.

    Proof: docs/proofs/leaves.md
    """

    name = "leaves"
    share = "leaves"
    of_rest = 0.7
    words = (("leaves", "the leaf values (noisy sums, or the values with noise)"),)
    parameters = _PARAMETERS
    rules = _RULES

    row_bound: RowBound  # bound of one row
    outputs: int = 1  # trees of a round on gradients of their own, K >= 1
    draws: int = 1  # trees of each output in one round, on the same gradients
    # "gaussian" or "laplace" sums, or "output", the leaf value with Laplace noise
    mechanism: str = "gaussian"
    touched: int = 1  # leaves of one release that a unit can touch, for each output
    # whether persons count more where their rows are in several leaves; then the sums of all rows
    # are released beside the leaves
    spread: bool = False

    @classmethod
    def wanted(cls, s: Settings) -> bool:
        """Unless the sums that chose the splits give the leaves too."""
        return not s.noisy_sums

    @classmethod
    def of(cls, asked: Asked) -> Leaves:
        """The leaves of all trees of a round."""
        s = asked.settings
        # A row is in one leaf of a tree. The rows of a person may be in all leaves there are.
        cells = 1 << s["max_depth"] if s.row_bound.of_person else 1
        return cls(
            s.row_bound.of_person,
            s.row_bound,
            outputs=s.trees_per_round,
            draws=s["num_parallel_tree"],
            mechanism=s["dp_leaf_noise"],
            touched=cells + s.spread_leaves,
            spread=s.spread_leaves,
        )

    @classmethod
    def section(cls, s: Settings, noise: Noise) -> dict[str, Any]:
        """Its noise, and what of leaves follows from several parameters."""
        return {
            "leaf": {
                "sigma2": noise.sigma2,
                "scale": noise.scale,
                "alpha": s.alpha,
                "prior_max": s.prior_max,
                "spread": s.spread_leaves,
            }
        }

    @property
    def gaussian(self) -> bool:
        """Unless it is Laplace noise."""
        return self.mechanism == "gaussian"

    def sens2(self, grid_bits: int) -> int:
        """Squared L2 sensitivity of the sums of one tree of each output."""
        bound = self.row_bound.spread_sens2 if self.spread else self.row_bound.round_sens2
        return bound(grid_bits, self.outputs)

    def variance(self, part: Part, grid_bits: int) -> float:
        """Of the sums of a leaf."""
        return self.sens2(grid_bits) / part.mu2 if self.gaussian else 0.0

    def noise(self, part: Part, grid_bits: int) -> tuple[Noise, PlainEvent]:
        """Noise on each sum, or on each value."""
        if not self.gaussian:
            sens = sensitivity.leaf_sens(self.mechanism, self.row_bound, grid_bits, self.outputs)
            scale = laplace_scale(sens, part.laplace)
            return Noise(scale=scale), LaplaceEvent(self.name, sens, scale, self.draws)
        sigma2 = grid_sigma2(self.variance(part, grid_bits))
        coordinates = self.touched * leaf_coordinates(self.outputs)
        return (
            Noise(sigma2=sigma2),
            GaussianEvent(self.name, self.sens2(grid_bits), sigma2, coordinates, self.draws),
        )
