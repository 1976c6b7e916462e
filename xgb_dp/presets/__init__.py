"""Published systems as settings of one engine: ``dp_preset="sarus"`` and so on.

A preset sets components; keys that are given explicitly override it. Where a paper's algorithm is
not private, or its bound is false, the preset does the nearest private thing and says so in
``differs``. :func:`describe` and ``docs/presets/`` show all of that.

    >>> import xgb_dp
    >>> sorted(xgb_dp.presets.PRESETS)[:3]
    ['default', 'dp_ebm', 'dp_ebm_newton']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import PrivacyParameterError

__all__ = ["PRESETS", "Preset", "describe"]


def _nothing(rounds: int, columns: int, trees: int) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Preset:
    """A published system.

    Attributes:
        name: Value of ``dp_preset``.
        system: What it is called in its paper.
        source: Paper and sections.
        params: Parameters that it sets.
        follows: Where it does what the paper does.
        differs: Where it must differ to be private, or does for the sake of the engine.
        needs: Public inputs that the user must give.
        computed: Parameters that depend on the numbers of rounds, columns and parallel trees.

    Examples:
        >>> preset = xgb_dp.presets.PRESETS["sarus"]
        >>> preset.name, preset.params["max_depth"]
        ('sarus', 6)
    """

    name: str
    system: str
    source: str
    params: Mapping[str, Any]
    follows: tuple[str, ...]
    differs: tuple[str, ...]
    needs: tuple[str, ...] = ()
    computed: Callable[[int, int, int], Mapping[str, Any]] = _nothing


_NO_DATA = "the intercept is public: no label is read for it (`base_score` overrides)"
_BOUNDS = "`dp_feature_bounds` of every numeric column"
_MISSING = "both directions are candidates for missing values at every cut, and cost no more"
_PLAIN = {
    "dp_shrinkage": False,
    "dp_tree_shape": "per_node",
    "dp_split_levels": 1,
    "dp_split_prior": 0.0,
}

# Grislain and Gonzalvez 2021; Li, Wu, Wen and He 2020: pure epsilon, unit Hessians.
_PURE = {
    **_PLAIN,
    "dp_accountant": "pure",
    "dp_leaf": "gradient",
    "dp_gradient_clip": "filter",
    "dp_gradient_bound": 1.0,
    "dp_score": "gain",
    "dp_leaf_noise": "output",
    "max_delta_step": 0.0,
    "lambda": 0.1,
    "max_depth": 6,
}
_SARUS = {
    **_PURE,
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
    _MISSING,
    _NO_DATA,
)
_DPBOOST = {
    **_PURE,
    "dp_budget_shares": {"splits": 0.5, "leaves": 0.5},
    "eta": 0.1,
}
_DPBOOST_FOLLOWS = (
    "the exponential mechanism over the published gain, half of a tree's budget in equal parts "
    "for its levels (section 3.2)",
    "Laplace noise on the leaf value, the other half",
    "rows with |g| > 1 take no part in a tree (gradient filtering, section 3.1)",
    "pure epsilon",
)
_DPBOOST_DIFFERS = (
    "the candidates are an even grid on public bounds; the paper's code takes exact quantiles",
    "lemma 1 is false: the change of the gain lies in (-3, 1] for every lambda, so the range is 4",
    "the sensitivity of a leaf value is (2 + lambda) / ((1 + lambda)(2 + lambda)) = "
    "1 / (1 + lambda) as published, since the floor N of its denominator is 1",
    _MISSING,
    _NO_DATA,
)

# Maddock et al. 2022; the DP-XGB paper: Gaussian sums, Renyi accounting.
_RENYI = {
    **_PLAIN,
    "dp_accountant": "rdp",
    "dp_gradient_clip": "clip",
    "dp_gradient_bound": 1.0,
    "dp_hessian_weight": 1.0,
    "max_delta_step": 2.0,
    "eta": 0.3,
    "max_bin": 32,
}
_RANDOM = {**_RENYI, "dp_split": "random"}
_TR_FOLLOWS = (
    "totally random trees: a feature and one of its cuts, both uniform, which reads no data "
    "(section 4.3.2)",
    "noisy (G, H) of each leaf, sensitivity sqrt(17/16) for unclipped logistic gradients",
    "leaf values clipped to 2, eta 0.3, 32 candidates, Renyi accounting",
)
_TR_DIFFERS = (
    "noise comes from an exact sampler on integers",
    "a missing value goes left or right at random, as one more part of the split",
    "no count of rows is stored with the model",
    _NO_DATA,
)
_XGB = {**_RENYI, "lambda": 1.0, "dp_score": "newton", "dp_score_clip": 0.5}
_XGB_FOLLOWS = (
    "splits by the exponential mechanism over all candidates, leaves by separate noisy sums of G "
    "and H",
    "Renyi accounting with the curve of bounded range (theorem 1)",
    "eta 0.3, lambda 1",
)
_XGB_DIFFERS = (
    "the score is the Newton gain of a leaf weight of at most 0.5, of range 2: without a clip its "
    "change is unbounded under logistic loss",
    "leaves are divided by max(noisy H + lambda, ...), as in algorithm 3; the formula in the text "
    "has a minimum there",
    _MISSING,
    _NO_DATA,
)


def _one_ensemble(rounds: int, columns: int, trees: int) -> dict[str, Any]:
    return {"dp_ensemble": rounds}


def _adaptive(rounds: int, columns: int, trees: int) -> dict[str, Any]:
    """Every query with the same noise: s F of candidates against a tree's leaves each."""
    queries = min(5, rounds) * columns
    share = queries / (queries + rounds * trees)
    return {"dp_budget_shares": {"candidates": share, "leaves": 1.0 - share}}


_ALL = (
    Preset(
        "default", "xgb-dp", "docs/guarantee.md", {},
        ("private quantile trees, L1 score, oblivious and per-node trees in turn, Newton leaves "
         "with the clip by prediction and empirical-Bayes shrinkage, exact accounting; one choice "
         "of splits for the trees of all classes",
         "classification with dp_epsilon / dp_group >= 1: 256 bins and oblivious trees of depth 6, "
         "unless max_depth or another parameter of the trees is given"),
        (),
    ),
    Preset(
        "sarus", "DP-XGBoost", "Grislain and Gonzalvez (2021), sections 4 and 5", _SARUS,
        (*_SARUS_FOLLOWS, "Laplace noise on the leaf value, whose sensitivity shrinks with "
         "min_child_weight (equation 7)"),
        (*_SARUS_DIFFERS, "min_child_weight N is a floor of the denominator, max(n, N) + lambda, "
         "with sensitivity (2 N + lambda) / ((N + lambda)(N + 1 + lambda)): a test n >= N on exact "
         "counts tells neighbours apart"),
        (_BOUNDS,),
    ),
    Preset(
        "sarus_average", "DP-XGBoost, noisy average", "Grislain and Gonzalvez (2021), algorithm 1",
        {**_SARUS, "dp_leaf_noise": "laplace", "dp_hessian_weight": 1.0, "max_delta_step": 1.0},
        (*_SARUS_FOLLOWS, "a leaf is a noisy sum over a count, clipped to 1"),
        (*_SARUS_DIFFERS, "the count is noisy too: with the exact one, as published, the density "
         "of a leaf changes by (n + 1) / n at one row and no epsilon holds"),
        (_BOUNDS,),
    ),
    Preset(
        "dpboost", "DPBoost", "Li, Wu, Wen and He (2020), section 3",
        {**_DPBOOST, "dp_geometric_clip": True}, (
            *_DPBOOST_FOLLOWS,
            "leaf values clipped to (1 - eta)^(t-1), whose sensitivity falls with them",
            "the trees of an ensemble on disjoint parts of the rows, whose cost is that of one "
            "(`dp_ensemble`; all rounds are one ensemble by default)",
        ),
        (*_DPBOOST_DIFFERS, "which part a row belongs to is a coin of its own: parts of fixed "
         "sizes would tell the number of rows"),
        (_BOUNDS,), _one_ensemble,
    ),
    Preset(
        "seq", "SEQ", "Li, Wu, Wen and He (2020), section 4, after Liu et al. (2018)", _DPBOOST,
        (*_DPBOOST_FOLLOWS, "every tree reads all rows, costs add up"), _DPBOOST_DIFFERS,
        (_BOUNDS,),
    ),
    Preset(
        "para", "PARA", "Li, Wu, Wen and He (2020), section 4, after Zhao et al. (2018)",
        {**_DPBOOST, "dp_ensemble_halving": True},
        (*_DPBOOST_FOLLOWS, "each tree takes half of the rows that no tree has read yet; one "
         "tree's cost"),
        (*_DPBOOST_DIFFERS, "the noise follows the same proved sensitivities as in DPBoost, not "
         "the looser ones of the baseline"),
        (_BOUNDS,), _one_ensemble,
    ),
    Preset(
        "dp_xgb", "DP-XGB", "Revisiting Differentially Private XGBoost, sections 4 and 5",
        {**_XGB, "dp_budget_shares": {"splits": 0.7, "leaves": 0.3}},
        (*_XGB_FOLLOWS, "an even grid of candidates; shares 0.7 and 0.3"), _XGB_DIFFERS, (_BOUNDS,),
    ),
    Preset(
        "dp_xgb_cyc", "DP-XGB_cyc", "Revisiting Differentially Private XGBoost, section 6",
        {**_XGB, "dp_budget_shares": {"splits": 0.7, "leaves": 0.3}, "dp_features_per_tree": 1,
         "dp_feature_order": "cyclic"},
        (*_XGB_FOLLOWS, "one feature a tree, in turn; an even grid; shares 0.7 and 0.3"),
        _XGB_DIFFERS, (_BOUNDS,),
    ),
    Preset(
        "dp_xgb_ada", "DP-XGB_ada", "Revisiting Differentially Private XGBoost, section 6",
        {**_XGB, "dp_candidates": "adaptive",
         "dp_budget_shares": {"candidates": 0.1, "splits": 0.6, "leaves": 0.3}},
        (*_XGB_FOLLOWS, "candidates refined by noisy Hessian histograms in the first five rounds; "
         "shares 0.1, 0.6 and 0.3"),
        _XGB_DIFFERS, (_BOUNDS,),
    ),
    Preset(
        "dp_tr", "DP-TR Newton", "Maddock et al. (2022), sections 4 and 5", _RANDOM,
        (*_TR_FOLLOWS, "an even grid (geometric with bounds (low, high, 'log'))"), _TR_DIFFERS,
        (_BOUNDS,),
    ),
    Preset(
        "dp_tr_cyc", "DP-TR Newton EBM", "Maddock et al. (2022), section 5.1",
        {**_RANDOM, "dp_features_per_tree": 1, "dp_feature_order": "cyclic"},
        (*_TR_FOLLOWS, "one feature a tree, in turn"), _TR_DIFFERS, (_BOUNDS,),
    ),
    Preset(
        "dp_tr_ada", "DP-TR Newton IH", "Maddock et al. (2022), section 4.5.2",
        {**_RANDOM, "dp_candidates": "adaptive"},
        (*_TR_FOLLOWS, "iterative Hessian candidates over five rounds, each query with the noise "
         "of a leaf query (algorithm 2)"),
        (*_TR_DIFFERS, "a round's Hessians move the candidates of that very round, not of the "
         "next; missing values are in no bin"),
        (_BOUNDS,), _adaptive,
    ),
    Preset(
        "dp_tr_ada_cyc", "DP-TR Newton IH EBM", "Maddock et al. (2022), section 5.3.3",
        {**_RANDOM, "dp_candidates": "adaptive", "dp_features_per_tree": 1,
         "dp_feature_order": "cyclic"},
        (*_TR_FOLLOWS, "iterative Hessian candidates; one feature a tree, in turn"), _TR_DIFFERS,
        (_BOUNDS,), _adaptive,
    ),
    Preset(
        "feverless", "FEVERLESS",
        "Wang et al. (2022), as compared by Maddock et al., section 5.3.2",
        {**_RENYI, "dp_split": "histogram"},
        ("the best split on noisy (G, H) histograms of all features at every level; leaves are "
         "read from the last one", "Newton leaves, Renyi accounting"),
        ("candidates are an even grid: the quantile sketch of the original is not private",
         "a row is in one cell of every feature and level: sensitivity sqrt(17/16) sqrt(F), which "
         "the noise of each cell pays for", _NO_DATA),
        (_BOUNDS,),
    ),
    Preset(
        "dp_gbm", "DP-GBM", "Maddock et al. (2022), section 4.3.1, gradient updates",
        {**_RENYI, "dp_split": "histogram", "dp_leaf": "gradient"},
        ("the best split on noisy histograms, leaves of mean gradients read from the last one",),
        ("candidates are an even grid", _NO_DATA), (_BOUNDS,),
    ),
    Preset(
        "dp_pr", "DP-PR", "Maddock et al. (2022), section 4.3.2",
        {**_RENYI, "dp_split": "partial"},
        ("one random cut of each feature; the best of them on noisy sums, from which the leaves "
         "are read too",),
        ("the missing direction is part of the random cut", _NO_DATA), (_BOUNDS,),
    ),
    Preset(
        "dp_rf", "DP-RF", "Fletcher and Islam (2015; 2017), as compared by Maddock et al.",
        {**_RANDOM, "eta": 1.0, "max_delta_step": 0.0, "num_parallel_tree": 100},
        ("a forest of random trees on the same labels: one round of num_parallel_tree = 100",
         "leaves hold the noisy share of positive rows"),
        ("the share p is stored as the margin 4 (p - 1/2), its Newton step from even odds, so that "
         "trees add up; the order of predictions is that of the mean share",
         "Gaussian noise and Renyi accounting, as in the comparison of Maddock et al.", _NO_DATA),
        (_BOUNDS, "`num_boost_round=1` (more rounds boost forests)"),
    ),
    Preset(
        "dp_ebm", "DP-EBM", "Nori et al. (2021), algorithm 2",
        {**_RANDOM, "dp_accountant": "gdp", "dp_leaf": "gradient", "dp_gradient_clip": "clip",
         "dp_hessian_weight": 0.0025, "dp_candidates": "histogram", "dp_features_per_tree": 1,
         "dp_feature_order": "cyclic", "max_delta_step": 0.0, "lambda": 0.0, "max_depth": 2,
         "eta": 0.1, "dp_budget_shares": {"candidates": 0.1, "leaves": 0.9}},
        ("bins of about equal mass from one noisy histogram of each feature",
         "random splits of one feature a tree, in turn; leaves of noisy residual sums over counts",
         "Gaussian accounting (dp_accountant='classic' for the older figures)"),
        ("residuals are clipped to the gradient bound, also in regression, where the original does "
         "not",
         "bounds are public, not the data's minimum and maximum",
         "the count of a leaf is released with its sum, at a hundredth of the cost, where the "
         "original adds up noisy bin counts", _NO_DATA),
        (_BOUNDS, "`num_boost_round`: epochs times columns"),
    ),
    Preset(
        "dp_ebm_newton", "DP-EBM Newton", "Maddock et al. (2022), section 5.3.3",
        {**_RANDOM, "dp_features_per_tree": 1, "dp_feature_order": "cyclic", "dp_candidates":
         "histogram", "dp_budget_shares": {"candidates": 0.1, "leaves": 0.9}},
        ("DP-EBM with Newton leaves and T trees in all", "private bins of about equal mass"),
        (*_TR_DIFFERS,), (_BOUNDS,),
    ),
    Preset(
        "ldp", "LDP baseline", "Maddock et al. (2022), section 5.3.2",
        {**_RANDOM, "dp_local": True},
        ("every row reports its own gradients with noise in each round; totally random trees",),
        ("a row reports a noisy sum for every leaf, so that its features are protected as well: "
         "the original sends gradients alone and sees the features",
         "`dp_epsilon` is the local epsilon of one report, for any two rows; the report of the "
         "model states the much smaller one of the sums", _NO_DATA),
        (_BOUNDS, "`dp_n_public`: the number of people who report"),
    ),
)  # fmt: skip

PRESETS: dict[str, Preset] = {p.name: p for p in _ALL}
"""All presets by name."""


def describe(name: str) -> str:
    """A preset in words: its parameters, where it follows its paper and where it differs.

    Args:
        name: A key of :data:`PRESETS`.

    Raises:
        PrivacyParameterError: There is no such preset.

    Examples:
        >>> print(xgb_dp.presets.describe("sarus").splitlines()[0])
        sarus: DP-XGBoost. Source: Grislain and Gonzalvez (2021), sections 4 and 5.
    """
    if name not in PRESETS:
        raise PrivacyParameterError(f"Presets are {', '.join(PRESETS)}; got {name!r}.")
    preset = PRESETS[name]
    shown = {**preset.params, **preset.computed(100, 10, 1)}
    lines = [f"{preset.name}: {preset.system}. Source: {preset.source}."]
    lines += ["Parameters (for 100 rounds and 10 columns where they depend on that):"]
    lines += [f"  {key} = {value!r}" for key, value in shown.items()]
    for title, texts in (
        ("Needs", preset.needs),
        ("As published", preset.follows),
        ("Different", preset.differs),
    ):
        lines += [f"{title}:", *(f"  - {text}" for text in texts)] if texts else []
    return "\n".join(lines)
