"""Defaults of parameters that follow from others. The figures are those of the proofs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..accounting.sensitivity import BALLS
from ..errors import PrivacyParameterError
from .objectives import OBJECTIVES
from .readers import shares as read_shares

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["OF_TREES", "of_epsilon"]


def epsilon(s: Settings) -> float:
    """There is none."""
    raise PrivacyParameterError(
        "`dp_epsilon` is missing: private training has no default budget. Give the largest "
        "privacy loss you accept, e.g. dp_epsilon=1.0 with dp_delta=1e-6."
    )


def delta(s: Settings) -> float:
    """0 where no noise is Gaussian, or none is drawn; else there is none."""
    if math.isinf(s["dp_epsilon"]) or s["dp_accountant"] == "pure":
        return 0.0
    raise PrivacyParameterError(
        "`dp_delta` is missing: give a constant well below one over the number of people, "
        "e.g. dp_delta=1e-6. It must not be computed from the data."
    )


def objective(s: Settings) -> str:
    """As in XGBoost, but only where the range of a target is declared."""
    if "dp_target_bounds" in s.given or "dp_objective" in s.given:
        return "reg:squarederror"
    raise PrivacyParameterError(
        f"`objective` is missing. Private training supports {', '.join(OBJECTIVES)}."
    )


def of_objective(name: str, value: Any) -> Callable[[Settings], Any]:
    """XGBoost's default of a parameter of some objectives; None for the others."""
    return lambda s: value if name in s.objective.parameters else None


def target_bounds(s: Settings) -> tuple[float, float] | None:
    """There is none for regression but the range that an objective has; no target for classes."""
    known = s.objective
    if math.isfinite(known.lowest) and math.isfinite(known.highest):
        return known.lowest, known.highest
    if s.kind == "regression":
        raise PrivacyParameterError(
            "`dp_target_bounds` is missing: regression needs a public range of the target, e.g. "
            "dp_target_bounds=(0, 100). Choose it from knowledge of the domain, not from the "
            "training labels; labels beyond it are clamped."
        )
    return None


def huber_slope(s: Settings) -> float | None:
    """A tenth of the range; XGBoost's own is 1, whatever the unit of the target is."""
    if "huber_slope" not in s.objective.parameters:
        return None
    assert s.target is not None
    return (s.target[1] - s.target[0]) / 10.0


OF_TREES = {"max_depth", "dp_tree_shape", "dp_split", "dp_split_levels", "dp_no_split"}
"""Parameters of the trees: who chooses one of them has none of the others chosen by the default."""
_DEEP = {"max_depth": 6, "dp_tree_shape": "oblivious", "max_bin": 256}
_SHALLOW = {"max_depth": 4, "dp_tree_shape": "alternate", "max_bin": 64}
_PUBLIC = _SHALLOW | {"dp_tree_shape": "per_node"}
_ADDITIVE = _SHALLOW | {"max_depth": 2, "max_bin": 16}


def of_epsilon(s: Settings) -> dict[str, Any]:
    """What the default makes of epsilon, which is public: the trees of a classifier.

    From epsilon 1 on the leaves of deeper trees stand out of the noise; docs/accuracy.md has the
    evidence. A user who chooses any parameter of the trees has the defaults of small epsilon.
    """
    chosen = set(s.given)
    if s["dp_preset"] != "default" or s.kind == "regression" or chosen & OF_TREES:
        return {}
    # Bins are also the cells of other candidates than the default's.
    if "dp_candidates" in chosen:
        chosen.add("max_bin")
    trees = _DEEP if s.unit_epsilon >= 1.0 else _SHALLOW
    return {name: value for name, value in trees.items() if name not in chosen}


def of_trees(name: str) -> Callable[[Settings], Any]:
    """Default of a parameter of the trees."""

    def value(s: Settings) -> Any:
        others = _ADDITIVE if s.additive else _PUBLIC if s["dp_split"] == "public" else _SHALLOW
        return of_epsilon(s).get(name, others[name])

    return value


def eta(s: Settings) -> float:
    """Less where many trees take a step at once."""
    return 0.3 if s.additive else 0.5


def parallel_trees(s: Settings) -> int:
    """One of each column in an additive round."""
    return s.schema.width if s.additive else 1


def gradient_clip(s: Settings) -> str:
    """Both derivatives together where they shrink together, by a factor without the label."""
    if s.loss is not None:
        return s.loss.clip
    clipped = s.kind == "regression" or s["dp_leaf"] == "gradient"
    return "clip" if clipped else "prediction"


def class_trees(s: Settings) -> str:
    """Joint where trees of several classes or quantiles have the selections of the default."""
    selected = s["dp_split"] == "exponential" and s["dp_score"] == "l1"
    bounded = s.trees_per_round > 1 and s["dp_gradient_clip"] == "prediction"
    return "joint" if s["dp_preset"] == "default" and selected and bounded else "per_class"


def gradient_bound(s: Settings) -> float:
    """C, see docs/proofs/sensitivity.md."""
    if s.loss is not None:
        return s.loss.gradient_bound(s)
    if s["dp_gradient_clip"] == "prediction" and s.kind == "multiclass":
        return 1.0
    if s["dp_gradient_clip"] in BALLS:
        return 0.5
    return 0.3 if s.kind == "regression" and s["dp_gradient_clip"] == "clip" else 1.0


def hessian_weight(s: Settings) -> float:
    """By default the largest Hessian of a row counts a quarter of the gradient bound."""
    if s["dp_gradient_clip"] in BALLS:
        if s.loss is not None:
            return s.loss.hessian_weight(s)
        return 1.0 if s.kind == "binary" and s["dp_gradient_clip"] == "row_weight" else 0.25
    if s.logistic:
        return 1.0
    return min(max((0.25 * s["dp_gradient_bound"] / s.largest_hessian) ** 2, 1e-12), 1e6)


def candidate_rounds(s: Settings) -> int:
    """All of dp_approx, the first five of adaptive candidates, else the first."""
    if s["tree_method"] == "dp_approx":
        return s.rounds
    return min(5, s.rounds) if s["dp_candidates"] == "adaptive" else 1


def candidate_weight(s: Settings) -> str:
    """Hessians where candidates are released again and again."""
    again = s["tree_method"] == "dp_approx" or s["dp_candidates"] == "adaptive"
    return "hessian" if again and s.trees_per_round == 1 else "count"


def candidate_cells(s: Settings) -> int | None:
    """At least 256 where bins are cut at equal mass; a quantile tree has none."""
    if s["dp_candidates"] == "quantile_tree":
        return None
    bins = int(s["max_bin"])
    return max(bins, 256) if s["dp_candidates"] == "histogram" else bins


def features_per_tree(s: Settings) -> int:
    """XGBoost's fraction of the columns."""
    return max(1, int(s["colsample_bytree"] * s.schema.width))


def split_levels(s: Settings) -> int:
    """Two where complete trees are grown by selections."""
    return 2 if s.complete_selections else 1


def split_prior(s: Settings) -> float:
    """Gains are released by selections only."""
    return 0.5 if s["dp_split"] == "exponential" else 0.0


def mean_correction(s: Settings) -> bool:
    """On for means by the default, where epsilon pays and the user divides nothing."""
    return (
        s.corrects_mean
        and s["dp_preset"] == "default"
        and s.unit_epsilon >= 1.0
        and "dp_budget_shares" not in s.given
        and s["dp_split"] == "exponential"
        and s["dp_leaf_noise"] == "gaussian"
        and s["dp_accountant"] != "pure"
        and s["dp_ensemble"] == 1
        and s["subsample"] == 1.0
        and s["num_parallel_tree"] == 1
        and not s["dp_local"]
        and not s["dp_secure_sum"]
    )


def shrinkage(s: Settings) -> bool:
    """On where there are noisy sums."""
    return bool(s["dp_leaf_noise"] != "output")


def free_directions(s: Settings) -> tuple[int, ...]:
    """No order of any column."""
    return (0,) * s.schema.width


def shares(s: Settings) -> dict[str, float]:
    """See :mod:`xgb_dp.request.shares`."""
    return read_shares("dp_budget_shares", None, s)
