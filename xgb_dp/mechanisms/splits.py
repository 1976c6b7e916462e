"""Selection of splits by the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..accounting.events import ExponentialEvent, PlainEvent
from ..accounting.sensitivity import MAX_RANGE, RowBound, range_int
from ..errors import BudgetError, LedgerError, PrivacyRefusal
from ..parameters.config import Config
from ..parameters.parameter import FREE, PUBLIC, SPENDS, Parameter, Rule, Table
from ..parameters.parse import Flag, Integer, Number, OneOf
from .mechanism import DrawBudget, Mechanism, Noise

SPLITS = ("exponential", "random", "partial", "histogram")
NOISY_SUMS = ("histogram", "partial")
"""Values of ``dp_split`` that use the same noisy histograms for splits and leaves."""
SCORES = ("l1", "newton", "gain")
EPS_BITS = 40
_MAX_EPS_NUM = 2**47 - 1

OF_TREES = {"max_depth", "dp_tree_shape", "dp_split", "dp_split_levels", "dp_no_split"}
"""Tree parameters. If the user sets one, the others keep their fixed defaults."""
_DEEP = {"max_depth": 6, "dp_tree_shape": "oblivious", "max_bin": 256}
_SHALLOW = {"max_depth": 4, "dp_tree_shape": "alternate", "max_bin": 64}


def default_trees(s: Config) -> dict[str, Any]:
    """Default tree parameters of a classifier, which depend on the public epsilon.

    For epsilon >= 1, the leaves of deeper trees exceed the noise; docs/accuracy.md has the
    evidence. If the user sets any tree parameter, the defaults for small epsilon apply.
    """
    if s["dp_preset"] != "default" or s.kind == "regression" or set(s.given) & OF_TREES:
        return {}
    trees = dict(_DEEP if s.unit_epsilon >= 1.0 else _SHALLOW)
    if "dp_candidates" in s.given:  # max_bin is also the number of cells of other candidates
        del trees["max_bin"]
    return {name: value for name, value in trees.items() if name not in s.given}


def tree_default(name: str) -> Callable[[Config], Any]:
    """Default of a tree parameter, as a function of the settings."""

    def value(s: Config) -> Any:
        return default_trees(s).get(name, _SHALLOW[name])

    return value


def _class_trees(s: Config) -> str:
    """Default: "joint" if trees of several classes or quantiles use the default selections."""
    selected = s["dp_split"] == "exponential" and s["dp_score"] == "l1"
    bounded = s.trees_per_round > 1 and s["dp_gradient_clip"] == "prediction"
    return "joint" if s["dp_preset"] == "default" and selected and bounded else "per_class"


def _complete(s: Config) -> bool:
    """Whether selections grow complete trees up to max_depth."""
    return s["dp_split"] == "exponential" and not s["dp_no_split"]


def _levels(s: Config) -> int:
    return 2 if _complete(s) else 1


def _prior(s: Config) -> float:
    return 0.5 if s["dp_split"] == "exponential" else 0.0


def _selections_only(name: str) -> Rule:
    return Rule(
        f"{name} needs the exponential mechanism",
        lambda s: s["dp_split"] != "exponential" and name in s.given,
        f"`{name}` requires dp_split='exponential'; got {{dp_split!r}}. Remove it.",
    )


# fmt: off
_PARAMETERS = (
    Parameter("dp_score", "Utility of a split: sum of the absolute gradient sums of both sides "
              "('l1'), gain of leaf weights clipped to dp_score_clip ('newton'), or "
              "XGBoost's gain, if all rows have the same Hessian ('gain').",
              OneOf(SCORES), "l1", PUBLIC, "exponential-mechanism", Table.PUBLISHED, plan="score"),
    Parameter("dp_score_clip", "Maximum leaf weight in the score 'newton'.",
              Number(0, 1e6, open_low=True), 0.5, PUBLIC, "exponential-mechanism", Table.PUBLISHED,
              unit="leaf weight", values="> 0", plan="score_clip"),
    Parameter("dp_tree_shape", "Whether splits are chosen for each node ('per_node'), for each "
              "level ('oblivious'), or by turns ('alternate').",
              OneOf(("alternate", "per_node", "oblivious")), tree_default("dp_tree_shape"),
              PUBLIC, "exponential-mechanism", Table.DEFAULT, shown="'alternate'; 'oblivious' for "
              "classification with dp_epsilon / dp_group_size >= 1; see "
              "[Rounds](#rounds)", plan="shape"),
    Parameter("dp_class_trees", "Whether the trees of several classes or targets share their "
                                "splits ('joint') or not ('per_class').",
              OneOf(("joint", "per_class")), _class_trees, SPENDS, "exponential-mechanism",
              Table.DEFAULT, shown="'joint' for several classes or targets in the default preset "
              "with dp_split='exponential', dp_score='l1' and dp_gradient_clip='prediction'; "
              "otherwise 'per_class'", plan="class_trees"),
    Parameter("dp_split_levels", "Number of tree levels that one selection fills, by a partition "
              "of a feature into 2^levels parts.", Integer(1, 4),
              _levels, SPENDS, "exponential-mechanism", Table.DEFAULT,
              unit="levels", shown="2; 1 with dp_no_split or another dp_split; "
              "see [Rounds](#rounds)", plan="split_levels"),
    Parameter("dp_split_candidates", "Number of random partitions per feature in a selection of "
              "several levels.", Integer(1, 4096), 16, PUBLIC, "exponential-mechanism",
              Table.DEFAULT, unit="candidates", plan="split_candidates"),
    Parameter("dp_split_prior", "Weight of the released gains of earlier trees in the selection "
              "of features.", Number(0, 0.999),
              _prior, FREE,
              "exponential-mechanism", Table.DEFAULT, shown="0.5; 0 with another dp_split",
              plan="split_prior"),
    Parameter("dp_no_split", "Lets the exponential mechanism choose not to split a node, with "
              "utility gamma.", Flag(), False, PUBLIC, "exponential-mechanism",
              Table.DEFAULT, shown="False: trees are complete up to max_depth", plan="no_split"),
    Parameter("gamma", "Utility of not splitting a node; requires dp_no_split.", Number(0, 1e12),
              0.0, PUBLIC, "XGBoost", Table.DEFAULT, unit="score", values=">= 0",
              aliases=("min_split_loss",), plan="gamma"),
)
_RULES = (
    *map(_selections_only, ("dp_score", "dp_score_clip", "dp_no_split")),
    Rule("score gain needs equal Hessians",
         lambda s: s["dp_score"] == "gain" and not s.rows_count_alike,
         "`dp_score`='gain' is refused for this objective: if Hessians vary, one row can change "
         "the gain by an unbounded amount. Use 'l1' or 'newton', or dp_leaf='gradient'.",
         PrivacyRefusal),
    Rule("score gain needs unit weights",
         lambda s: s["dp_score"] == "gain" and "dp_max_weight" in s.given,
         "`dp_score`='gain' is refused with row weights: it is proved for unit weights only. "
         "Remove {`dp_max_weight`}, or use another score.", PrivacyRefusal),
    Rule("score gain needs rows as units",
         lambda s: s.unit == "person" and s["dp_score"] == "gain",
         "`dp_score`='gain' is refused with {`dp_privacy_id`}: its range is proved only if every "
         "row has weight 1, but the rows of a person are scaled down. Use 'l1' or 'newton'.",
         PrivacyRefusal),
    Rule("score clip needs score newton",
         lambda s: "dp_score_clip" in s.given and s["dp_score"] != "newton",
         "`dp_score_clip` requires dp_score='newton'. Remove it."),
    Rule("several levels need complete selections",
         lambda s: s["dp_split_levels"] > 1 and not _complete(s),
         "`dp_split_levels` above 1 requires dp_split='exponential' and dp_no_split=False, because "
         "one selection fills several levels. Set it to 1, or change these."),
    Rule("joint trees need several outputs",
         lambda s: s["dp_class_trees"] == "joint" and s.trees_per_round == 1,
         "`dp_class_trees`='joint' requires several classes, quantiles or targets. Remove it."),
    Rule("joint trees need the prediction clip",
         lambda s: s["dp_class_trees"] == "joint" and s["dp_gradient_clip"] != "prediction",
         "`dp_class_trees`='joint' requires dp_gradient_clip='prediction', which bounds the norm "
         "of a row over all classes; got {dp_gradient_clip!r}."),
    Rule("joint trees need l1 selections",
         lambda s: (s["dp_class_trees"] == "joint"
                    and (s["dp_split"] != "exponential" or s["dp_score"] != "l1")),
         "`dp_class_trees`='joint' requires dp_split='exponential' and dp_score='l1', because "
         "splits are selected by the norm of the gradients over all classes."),
    Rule("gamma needs dp_no_split",
         lambda s: s["gamma"] != 0.0 and not s["dp_no_split"],
         "`gamma` is refused without dp_no_split=True: a threshold on the exact gain is not "
         "private. With dp_no_split it is the utility of not splitting.", PrivacyRefusal),
)
# fmt: on


@dataclass(frozen=True)
class Splits(Mechanism):
    """Selections of one round on the path of a row through every tree.

    Proof: docs/proofs/exponential-mechanism.md
    """

    name = "splits"
    section = ("selection",)
    integers = ("eps_num",)
    share = "splits"
    of_rest = 0.3
    of_rounds = True
    words = (("splits", "the splits (exponential mechanism)"),)
    gaussian = False
    parameters = _PARAMETERS
    rules = _RULES

    selections: int  # number of selections, > 0
    score: str = "l1"  # utility of a split
    score_clip: float = 0.0  # clip of the leaf weight in the score
    joint: bool = False  # whether one selection serves the trees of all classes
    depth: int = 0  # largest depth of a tree
    range: int = 0  # utility range that the selections use; 0 before the grid is known

    @classmethod
    def is_enabled(cls, s: Config) -> bool:
        """Whether splits are selected from the rows."""
        return bool(s["dp_split"] == "exponential")

    @classmethod
    def plan_section(cls, s: Config) -> dict[str, Any]:
        """A section that will contain only the noise."""
        return {"selection": {}}

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any], bound: RowBound) -> Splits | None:
        """The selections of all trees of a round."""
        if plan["split"] != "exponential":
            return None
        joint = plan["class_trees"] == "joint"
        trees = plan["parallel_trees"] * (1 if joint else plan["num_class"])
        return cls(
            bound,
            trees * -(-plan["depth"] // plan["split_levels"]),
            plan["score"],
            float(plan["score_clip"]),
            joint,
            plan["depth"],
            plan["selection"].get("range", 0),
        )

    def check_range(self, grid_bits: int) -> None:
        """Refuse a utility range that is too small: the privacy loss could exceed eps0."""
        least = range_int(
            self.score, self.bound, grid_bits, self.score_clip, joint=self.joint, depth=self.depth
        )
        if not least <= self.range < MAX_RANGE:
            raise LedgerError(
                f"The plan assumes a utility range of {self.range} for the splits, but the range "
                f"must be at least {least}."
            )

    @property
    def draws(self) -> int:
        """Number of selections in a round."""
        return self.selections

    def noise(self, budget: DrawBudget, grid_bits: int) -> Noise:
        """The range of the privacy loss of one selection."""
        return Noise(eps_num=min(max(1, math.floor(budget.selection * 2**EPS_BITS)), _MAX_EPS_NUM))

    def event(self, noise: Noise, grid_bits: int, count: int) -> PlainEvent:
        """The event of the selections on the path of one row."""
        return ExponentialEvent(self.name, noise.eps_num, EPS_BITS, count)


def plan_range(plan: Mapping[str, Any], bound: RowBound) -> int:
    """Range of the split utility under the bound and the grid of a plan."""
    places = {"joint": plan["class_trees"] == "joint", "depth": plan["depth"]}
    return range_int(plan["score"], bound, plan["grid_bits"], float(plan["score_clip"]), **places)


def finest_grid(score: str, bound: RowBound, tau: float, **places: Any) -> int:
    """Number of bits of the finest grid on which the utility range is below ``MAX_RANGE``."""
    for bits in range(18, 3, -1):
        if range_int(score, bound, bits, tau, **places) < MAX_RANGE:
            return bits
    raise BudgetError(
        "`dp_score_clip` or `dp_max_rows_per_person` is too large for this gradient bound. Lower "
        "them."
    )
