"""Systems proposed or compared by Maddock et al. (2022): DP-TR, DP-EBM, DP-RF and others."""

from __future__ import annotations

from typing import Any

from . import BOUNDS, NO_DATA, RENYI, Preset, System

_RANDOM = {**RENYI, "dp_split": "random"}
_TR_FOLLOWS = (
    "totally random trees: feature and cut are drawn uniformly, without reading data (section "
    "4.3.2)",
    "noisy sums (G, H) for each leaf, with sensitivity sqrt(17/16) for unclipped logistic "
    "gradients",
    "leaf values clipped to 2, eta 0.3, 32 candidates, Renyi accounting",
)
_TR_DIFFERS = (
    "noise is drawn by an exact sampler on the integers",
    "the direction of missing values is random, as part of the split",
    "the model does not store row counts",
    NO_DATA,
)


def _adaptive(rounds: int, columns: int, trees: int) -> dict[str, Any]:
    """Return budget shares that give every query, candidates or leaves, the same noise."""
    queries = min(5, rounds) * columns
    share = queries / (queries + rounds * trees)
    return {"dp_budget_shares": {"candidates": share, "leaves": 1.0 - share}}


_PRESETS = (
    Preset(
        "dp_tr", "DP-TR Newton", "Maddock et al. (2022), sections 4 and 5", _RANDOM,
        (*_TR_FOLLOWS, "candidates on an even grid (geometric with bounds (low, high, 'log'))"),
        _TR_DIFFERS, (BOUNDS,),
    ),
    Preset(
        "dp_tr_cyc", "DP-TR Newton EBM", "Maddock et al. (2022), section 5.1",
        {**_RANDOM, "dp_features_per_tree": 1, "dp_feature_order": "cyclic"},
        (*_TR_FOLLOWS, "one feature per tree, in cyclic order"), _TR_DIFFERS, (BOUNDS,),
    ),
    Preset(
        "dp_tr_ada", "DP-TR Newton IH", "Maddock et al. (2022), section 4.5.2",
        {**_RANDOM, "dp_candidates": "adaptive"},
        (*_TR_FOLLOWS, "iterative Hessian candidates over five rounds, each query with the same "
         "noise as a leaf query (algorithm 2)"),
        (*_TR_DIFFERS, "the Hessians of a round update the candidates of the same round instead of "
         "the next; missing values are not in any bin"),
        (BOUNDS,), _adaptive,
    ),
    Preset(
        "dp_tr_ada_cyc", "DP-TR Newton IH EBM", "Maddock et al. (2022), section 5.3.3",
        {**_RANDOM, "dp_candidates": "adaptive", "dp_features_per_tree": 1,
         "dp_feature_order": "cyclic"},
        (*_TR_FOLLOWS, "iterative Hessian candidates; one feature per tree, in cyclic order"),
        _TR_DIFFERS, (BOUNDS,), _adaptive,
    ),
    Preset(
        "feverless", "FEVERLESS",
        "Wang et al. (2022), as compared by Maddock et al., section 5.3.2",
        {**RENYI, "dp_split": "histogram"},
        ("the best split on noisy (G, H) histograms of all features at every level; leaf values "
         "are computed from the last histogram", "Newton leaves, Renyi accounting"),
        ("candidates are an even grid: the original's quantile sketch is not private",
         "the noise of each cell is calibrated to the sensitivity sqrt(17/16) sqrt(F) of a level, "
         "because a row is in one cell of every feature", NO_DATA),
        (BOUNDS,),
    ),
    Preset(
        "dp_gbm", "DP-GBM", "Maddock et al. (2022), section 4.3.1, gradient updates",
        {**RENYI, "dp_split": "histogram", "dp_leaf": "gradient"},
        ("the best split on noisy histograms; leaf values are mean gradients computed from the "
         "last histogram",),
        ("candidates are an even grid", NO_DATA), (BOUNDS,),
    ),
    Preset(
        "dp_pr", "DP-PR", "Maddock et al. (2022), section 4.3.2",
        {**RENYI, "dp_split": "partial"},
        ("one random cut per feature; the best of these cuts on noisy sums, which also give the "
         "leaf values",),
        ("the direction of missing values is part of the random cut", NO_DATA), (BOUNDS,),
    ),
    Preset(
        "dp_rf", "DP-RF", "Fletcher and Islam (2015; 2017), as compared by Maddock et al.",
        {**_RANDOM, "eta": 1.0, "max_delta_step": 0.0, "num_parallel_tree": 100},
        ("a forest of random trees on the same labels: one round of num_parallel_tree = 100",
         "a leaf stores the noisy share of positive rows"),
        ("the share p is stored as the margin 4 (p - 1/2), so that trees can be added; predictions "
         "are ordered like the mean share",
         "Gaussian noise and Renyi accounting, as in the comparison of Maddock et al.", NO_DATA),
        (BOUNDS,), rounds="`num_boost_round=1` (more rounds boost forests)",
    ),
    Preset(
        "dp_ebm", "DP-EBM", "Nori et al. (2021), algorithm 2",
        {**_RANDOM, "dp_accountant": "gdp", "dp_leaf": "gradient", "dp_gradient_clip": "clip",
         "dp_hessian_weight": 0.0025, "dp_candidates": "histogram", "dp_features_per_tree": 1,
         "dp_feature_order": "cyclic", "max_delta_step": 0.0, "lambda": 0.0, "max_depth": 2,
         "eta": 0.1, "dp_budget_shares": {"candidates": 0.1, "leaves": 0.9}},
        ("bins of about equal mass from one noisy histogram per feature",
         "random splits of one feature per tree, in cyclic order; leaf values are noisy sums of "
         "residuals divided by counts",
         "Gaussian DP accounting (set dp_accountant='classic' for the older results)"),
        ("residuals are clipped to the gradient bound, also in regression",
         "bounds are public instead of the minimum and maximum of the data",
         "the count of a leaf is released with its sum, at a hundredth of the cost; the original "
         "adds up noisy bin counts", NO_DATA),
        (BOUNDS,), rounds="`num_boost_round`: epochs times columns",
    ),
    Preset(
        "dp_ebm_newton", "DP-EBM Newton", "Maddock et al. (2022), section 5.3.3",
        {**_RANDOM, "dp_features_per_tree": 1, "dp_feature_order": "cyclic", "dp_candidates":
         "histogram", "dp_budget_shares": {"candidates": 0.1, "leaves": 0.9}},
        ("DP-EBM with Newton leaves and T trees in total", "private bins of about equal mass"),
        (*_TR_DIFFERS,), (BOUNDS,),
    ),
)  # fmt: skip

SYSTEM = System(
    "DP-TR, DP-EBM and DP-RF",
    "Parameters set by the presets from Maddock et al. (2022), such as `dp_tr`, "
    "[`dp_ebm`](presets.md#dp_ebm) and [`dp_rf`](presets.md#dp_rf).",
    _PRESETS,
    ("dp_split", "dp_features_per_tree", "dp_feature_order", "num_parallel_tree"),
)
