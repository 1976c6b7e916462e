"""DP-XGBoost of Sarus."""

from __future__ import annotations

from .system import BOUNDS, MISSING, NO_DATA, PURE, Preset, System

__all__ = ["SYSTEM"]

_SARUS = {
    **PURE,
    "tree_method": "dp_approx",
    "dp_candidates": "histogram",
    "dp_candidate_noise": "laplace",
    "dp_budget_shares": {"candidates": 1 / 3, "splits": 1 / 3, "leaves": 1 / 3},
    "min_child_weight": 50.0,
    "subsample": 0.1,
    "eta": 0.3,
}
_SARUS_FOLLOWS = (
    "a histogram of weights on an even grid with Laplace noise, for each feature and tree, gives "
    "the candidates (section 4.1)",
    "the exponential mechanism over the published gain S^2 / (n + lambda) of all candidates "
    "(section 4.2)",
    "rows with |g| > 1 take no part in a tree (gradient filtering)",
    "pure epsilon, a third each for candidates, splits and leaves; Poisson row sampling of 0.1 "
    "with amplification of each tree (section 4.4)",
)
_SARUS_DIFFERS = (
    "the range of the gain is 4, not the sensitivity 3 in both directions that doubles to 6: its "
    "change lies in (-3, 1], so the splits are less noisy at the same epsilon",
    "gains and leaves count rows instead of adding Hessians: the published bound of the gain "
    "fails where Hessians vary, as in logistic loss",
    "the noisy histogram is cut at equal mass directly; XGBoost's sketch would do the same with "
    "an error of its own",
    "coins of the row sampling are secret, never a seed; each row is drawn independently",
    MISSING,
    NO_DATA,
)

_PRESETS = (
    Preset(
        "sarus", "DP-XGBoost", "Grislain and Gonzalvez (2021), sections 4 and 5", _SARUS,
        (*_SARUS_FOLLOWS, "Laplace noise on the leaf value, whose sensitivity shrinks with "
         "min_child_weight (equation 7)"),
        (*_SARUS_DIFFERS, "min_child_weight N is a floor of the denominator, max(n, N) + lambda, "
         "with sensitivity (2 N + lambda) / ((N + lambda)(N + 1 + lambda)): a test n >= N on exact "
         "counts tells neighbours apart"),
        (BOUNDS,),
    ),
    Preset(
        "sarus_average", "DP-XGBoost, noisy average", "Grislain and Gonzalvez (2021), algorithm 1",
        {**_SARUS, "dp_leaf_noise": "laplace", "dp_hessian_weight": 1.0, "max_delta_step": 1.0},
        (*_SARUS_FOLLOWS, "a leaf is a noisy sum over a count, clipped to 1"),
        (*_SARUS_DIFFERS, "the count is noisy too: with the exact one, as published, the density "
         "of a leaf changes by (n + 1) / n at one row and no epsilon holds"),
        (BOUNDS,),
    ),
)  # fmt: skip

SYSTEM = System(
    "DP-XGBoost of Sarus",
    "What the presets [`sarus`](presets/sarus.md) and [`sarus_average`](presets/sarus_average.md) "
    "set: noisy histograms as candidates, leaves whose noise follows `min_child_weight`, and "
    "rounds that read a sample of the rows.",
    _PRESETS,
    (
        "dp_candidates",
        "dp_candidate_rounds",
        "dp_candidate_weight",
        "dp_candidate_noise",
        "dp_candidate_cells",
        "dp_leaf",
        "dp_leaf_noise",
        "min_child_weight",
        "subsample",
    ),
)
