"""What papers choose differently: candidates, clip, splits, leaves, ensembles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import parse
from .errors import PrivacyParameterError, PrivacyRefusal
from .parse import choice

__all__ = ["Components", "RowClip", "resolve_clip", "resolve_components"]


@dataclass(frozen=True)
class RowClip:
    """Bound of one row, see :class:`xgb_dp.sensitivity.RowBound`.

    Attributes:
        mode: "row_weight", "gradient" or "filter".
        gradient_bound: C; regression: in half widths of the target's range.
        hessian_weight: r.
        hessian_bound: h_max; not used by "row_weight".
        max_weight: Public bound of row weights; 0 for none.
        prior_max: Largest prior variance of a leaf weight.
    """

    mode: str
    gradient_bound: float
    hessian_weight: float
    hessian_bound: float
    max_weight: float
    prior_max: float


@dataclass(frozen=True)
class Components:
    """Choices that presets make.

    Attributes:
        split: How splits are chosen, "exponential", "random", "histogram" or "partial".
        score: Utility of the exponential mechanism, "l1", "newton" or "gain".
        leaf: "newton" or "gradient", where rows count one each instead of their Hessian.
        leaf_noise: "gaussian" or "laplace" sums, or "output".
        geometric_clip: Whether output perturbation clips leaves to (1 - eta)^t.
        candidates: "quantile_tree", "histogram" or "adaptive".
        candidate_cells: Cells of the public grid under noisy histograms.
        candidate_rounds: Rounds that release candidates.
        candidate_weight: "count" or "hessian".
        candidate_noise: "gaussian" or "laplace".
        ensemble: Rounds of an ensemble on disjoint parts of the rows; 1 for none.
        ensemble_halving: Whether each takes half of the rows that are left.
        local: Whether each row's own report is noised, for the local-DP baseline.
    """

    split: str
    score: str
    leaf: str
    leaf_noise: str
    geometric_clip: bool
    candidates: str
    candidate_cells: int
    candidate_rounds: int
    candidate_weight: str
    candidate_noise: str
    ensemble: int
    ensemble_halving: bool
    local: bool


_FLOORS = {"lambda": 1.0, "min_child_weight": 0.0}
_COARSEST_GRID = 16  # steps of a gradient C


def resolve_clip(p: Mapping[str, Any], kind: str, leaf: str) -> RowClip:
    """Row bound for a kind of label; the figures are those of docs/proofs/sensitivity.md.

    Args:
        p: Flat parameters.
        kind: "binary", "regression" or "multiclass".
        leaf: "newton" or "gradient".

    Raises:
        PrivacyParameterError: A value is out of range.
        PrivacyRefusal: There is no proved bound.
    """
    declared: float | None = None
    if "dp_max_weight" in p:
        declared = parse.parse_number("dp_max_weight", p["dp_max_weight"], low=1e-6, high=1e6)
    unit = 1.0 if declared is None else declared
    default = "clip" if kind == "regression" or leaf == "gradient" else "row_weight"
    mode = choice(
        "dp_gradient_clip", p.get("dp_gradient_clip", default), ("row_weight", "clip", "filter")
    )
    if kind == "multiclass" and mode != "row_weight":
        raise PrivacyRefusal(
            f"`dp_gradient_clip`={mode!r} is refused for several classes: their joint bound is "
            "proved for 'row_weight' only."
        )
    if kind == "regression" and mode == "row_weight":
        raise PrivacyParameterError(
            "`dp_gradient_clip`='row_weight' is for classification. Use 'clip' or 'filter'."
        )
    default_c = 0.5 if mode == "row_weight" else 1.0
    if kind == "regression" and mode == "clip":
        default_c = 0.3
    c = parse.parse_number(
        "dp_gradient_bound", p.get("dp_gradient_bound", default_c), low=1e-6, high=1e6
    )
    # Largest Hessian of a row; by default it counts a quarter of the gradient bound.
    logistic = kind == "binary" and leaf == "newton"
    largest = unit * (0.25 if logistic else 1.0)
    default_r = {"binary": 1.0, "multiclass": 0.25}.get(kind, 1.0)
    if mode != "row_weight":
        default_r = 1.0 if logistic else (0.25 * c / largest) ** 2
    default_r = min(max(default_r, 1e-12), 1e6)
    r = parse.parse_number(
        "dp_hessian_weight", p.get("dp_hessian_weight", default_r), low=1e-12, high=1e6
    )
    counted = p.get("dp_score") == "gain" or p.get("dp_leaf_noise") == "output"
    if counted and math.sqrt(r) * _COARSEST_GRID < c:
        raise PrivacyParameterError(
            "`dp_hessian_weight` is too small for dp_score='gain' and dp_leaf_noise='output', "
            "which count rows by their Hessians: sqrt(r) must be at least C / 16. Leave it out "
            "for the default."
        )
    if mode == "row_weight":
        # The clip bounds every row whatever its weight; several classes share one row, and their
        # joint bound is smaller when the weight is bounded too.
        weight = unit if kind == "multiclass" or declared is not None else 0.0
        return RowClip(mode, c, r, 1.0, weight, 1.0)
    if math.sqrt(r) * largest > 60 * c:
        raise PrivacyParameterError(
            "`dp_hessian_weight` is too large for `dp_max_weight` and `dp_gradient_bound`: "
            "sqrt(r) * dp_max_weight must not exceed 60 C. Leave it out for the default."
        )
    return RowClip(
        "gradient" if mode == "clip" else mode,
        c,
        r,
        largest,
        unit if kind == "regression" or declared is not None else 0.0,
        0.25 if kind == "regression" else 1.0,
    )


def resolve_components(p: Mapping[str, Any], kind: str, rounds: int, *, approx: bool) -> Components:
    """Check the choices and their combinations.

    Args:
        p: Flat parameters.
        kind: "binary", "regression" or "multiclass".
        rounds: Boosting rounds.
        approx: Whether candidates are released again for each tree, as in ``dp_approx``.

    Raises:
        PrivacyParameterError: An unknown choice, or one without effect.
        PrivacyRefusal: A combination without a proved bound.
    """
    split = choice(
        "dp_split",
        p.get("dp_split", "exponential"),
        ("exponential", "random", "partial", "histogram"),
    )
    for name in ("dp_score", "dp_score_clip", "dp_no_split"):
        if split != "exponential" and name in p:
            raise PrivacyParameterError(
                f"`{name}` has an effect with dp_split='exponential' only; got {split!r}."
            )
    leaf = choice("dp_leaf", p.get("dp_leaf", "newton"), ("newton", "gradient"))
    if (
        leaf == "gradient"
        and parse.parse_number("scale_pos_weight", p.get("scale_pos_weight", 1.0)) != 1.0
    ):
        raise PrivacyParameterError(
            "`scale_pos_weight` has no meaning with dp_leaf='gradient', where every row counts one."
        )
    score = choice("dp_score", p.get("dp_score", "l1"), ("l1", "newton", "gain"))
    counts = (kind == "regression" or leaf == "gradient") and (
        p.get("dp_gradient_clip") != "row_weight"
    )
    if score == "gain" and (kind == "multiclass" or not counts):
        raise PrivacyRefusal(
            "`dp_score`='gain' is refused for this objective: one row changes the gain without "
            "bound when second derivatives vary. Use 'l1' or 'newton', or dp_leaf='gradient'."
        )
    if "dp_score_clip" in p and score != "newton":
        raise PrivacyParameterError("`dp_score_clip` has an effect with dp_score='newton' only.")
    noise = choice(
        "dp_leaf_noise", p.get("dp_leaf_noise", "gaussian"), ("gaussian", "laplace", "output")
    )
    if noise != "gaussian" and split in ("histogram", "partial"):
        raise PrivacyParameterError(
            f"`dp_leaf_noise` has no effect with dp_split={split!r}: leaves are read from the "
            "noisy sums of the splits."
        )
    if noise == "output" and (kind == "multiclass" or not counts):
        raise PrivacyRefusal(
            "`dp_leaf_noise`='output' is refused for this objective: the sensitivity of a leaf "
            "value is proved where every row counts the same. Add dp_leaf='gradient', or use "
            "'laplace'."
        )
    for name in ("gain", "output"):
        if name in (score, noise) and "dp_max_weight" in p:
            which = "dp_score" if name == "gain" else "dp_leaf_noise"
            raise PrivacyRefusal(
                f"`{which}`={name!r} is refused with row weights: it is proved for unit weights."
            )
    if noise == "output":
        # The arithmetic of the sensitivity is exact enough up to here.
        size = sum(parse.parse_number(k, p.get(k, d)) for k, d in _FLOORS.items())
        if size > 1 << 20:
            raise PrivacyParameterError(
                "`lambda` and `min_child_weight` together are at most 2^20 with "
                "dp_leaf_noise='output'."
            )
    geometric = parse.parse_flag("dp_geometric_clip", p.get("dp_geometric_clip", False))
    if geometric and noise != "output":
        raise PrivacyParameterError(
            "`dp_geometric_clip` has an effect with dp_leaf_noise='output' only."
        )
    ensemble, halving, local = _ensemble(p, split, noise)
    return Components(
        split=split,
        score=score,
        leaf=leaf,
        leaf_noise=noise,
        geometric_clip=geometric,
        **_candidates(p, kind, rounds, approx=approx, some=ensemble > 1),
        ensemble=ensemble,
        ensemble_halving=halving,
        local=local,
    )


def _candidates(
    p: Mapping[str, Any], kind: str, rounds: int, *, approx: bool, some: bool
) -> dict[str, Any]:
    candidates = choice(
        "dp_candidates",
        p.get("dp_candidates", "quantile_tree"),
        ("quantile_tree", "histogram", "adaptive"),
    )
    again = approx or candidates == "adaptive"
    weight = choice(
        "dp_candidate_weight",
        p.get("dp_candidate_weight", "hessian" if again and kind != "multiclass" else "count"),
        ("count", "hessian"),
    )
    if weight == "hessian" and kind == "multiclass":
        raise PrivacyRefusal(
            "`dp_candidate_weight`='hessian' is refused for several classes, each of which has "
            "its own. Use 'count'."
        )
    noise = choice(
        "dp_candidate_noise", p.get("dp_candidate_noise", "gaussian"), ("gaussian", "laplace")
    )
    if noise == "laplace" and candidates == "quantile_tree":
        raise PrivacyParameterError(
            "`dp_candidate_noise`='laplace' needs dp_candidates='histogram' or 'adaptive': the "
            "quantile tree releases a number of counts for which Gaussian noise is better."
        )
    default = rounds if approx else min(5, rounds) if candidates == "adaptive" else 1
    released = parse.parse_int(
        "dp_candidate_rounds", p.get("dp_candidate_rounds", default), 1, 1 << 20
    )
    released = min(released, rounds)
    if approx and "dp_candidate_rounds" in p and released != rounds:
        raise PrivacyParameterError(
            "tree_method='dp_approx' releases candidates for every tree. With "
            "`dp_candidate_rounds` use tree_method='dp_hist'."
        )
    sampled = parse.parse_number("subsample", p.get("subsample", 1.0), low=0, high=1) < 1.0
    if weight == "hessian" and (sampled or some) and released != rounds:
        raise PrivacyRefusal(
            "`dp_candidate_weight`='hessian' with `subsample` or `dp_ensemble` needs candidates in "
            "every round (tree_method='dp_approx'): all rounds must release the same from their "
            "rows. Use 'count', which reads all rows."
        )
    bins = parse.parse_int("max_bin", p.get("max_bin", 64), 2, 4096)
    cells = parse.parse_int(
        "dp_candidate_cells",
        p.get("dp_candidate_cells", max(bins, 256) if candidates == "histogram" else bins),
        2,
        65536,
    )
    if candidates == "adaptive" and cells > bins:
        raise PrivacyParameterError(
            "`dp_candidate_cells` is at most max_bin with dp_candidates='adaptive', which moves "
            "the edges of its bins."
        )
    if candidates == "quantile_tree" and "dp_candidate_cells" in p:
        raise PrivacyParameterError(
            "`dp_candidate_cells` has an effect with noisy histograms only; the quantile tree has "
            "`dp_candidate_levels`."
        )
    return {
        "candidates": candidates,
        "candidate_cells": cells,
        "candidate_rounds": released,
        "candidate_weight": weight,
        "candidate_noise": noise,
    }


def _ensemble(p: Mapping[str, Any], split: str, noise: str) -> tuple[int, bool, bool]:
    ensemble = parse.parse_int("dp_ensemble", p.get("dp_ensemble", 1), 1, 1 << 16)
    halving = parse.parse_flag("dp_ensemble_halving", p.get("dp_ensemble_halving", False))
    if ensemble > 1 and parse.parse_number("subsample", p.get("subsample", 1.0)) != 1.0:
        raise PrivacyParameterError(
            "Give `dp_ensemble` or `subsample`, not both: either decides which rows a round reads."
        )
    if halving and ensemble == 1:
        raise PrivacyParameterError("`dp_ensemble_halving` has an effect with `dp_ensemble` only.")
    local = parse.parse_flag("dp_local", p.get("dp_local", False))
    if local and not (split == "random" and noise == "gaussian" and "dp_n_public" in p):
        raise PrivacyParameterError(
            "`dp_local` needs dp_split='random', Gaussian leaves and `dp_n_public`, the number of "
            "people who report: their noise adds up."
        )
    if local and "base_score" not in p:
        raise PrivacyParameterError(
            "`dp_local` needs a public `base_score`: nobody sees the labels."
        )
    if local and (ensemble > 1 or "subsample" in p):
        raise PrivacyParameterError("`dp_local` lets every row report in every round.")
    return ensemble, halving, local
