"""The parameters of private training, as one declarative table.

The documentation page, the error messages and the checks all read this table. The privacy effect
of a parameter is one of

- ``public``: the value is taken as known to everybody; it must not be chosen by looking at the
  data;
- ``spends budget``: it decides how much privacy is spent, or on what;
- ``free post-processing``: it acts on already released values only.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import PrivacyParameterError, PrivacyRefusal

__all__ = [
    "ALIASES",
    "ALLOWED",
    "ARGUMENTS",
    "DEFAULT_ROUNDS",
    "DP_PARAMETERS",
    "NEUTRAL",
    "OBJECTIVES",
    "PASSED_ON",
    "REFUSED",
    "Parameter",
    "as_markdown",
    "check_names",
    "kind_of",
]

PUBLIC = "public"
SPENDS = "spends budget"
FREE = "free post-processing"


@dataclass(frozen=True)
class Parameter:
    """One parameter as users see it.

    Attributes:
        name: Name in the parameter dictionary.
        meaning: What it means.
        unit: Its unit.
        values: The values it takes.
        default: What holds when it is unset.
        effect: Privacy effect: ``public``, ``spends budget`` or ``free post-processing``.
        source: Where it comes from: a section of ``docs/``, or XGBoost.
        aliases: Other accepted names (XGBoost's own aliases).
    """

    name: str
    meaning: str
    unit: str
    values: str
    default: str
    effect: str
    source: str
    aliases: tuple[str, ...] = ()


DEFAULT_ROUNDS = 50
"""Boosting rounds of a private training where none are given, in every interface."""

# fmt: off
_ARGUMENTS = (
    Parameter("num_boost_round", "boosting rounds; the noise is calibrated for exactly that many",
              "rounds", "int >= 1", f"{DEFAULT_ROUNDS}, in every interface", SPENDS, "accounting",
              ("n_estimators", "--rounds")),
)

_DP = (
    Parameter("dp_epsilon", "privacy budget of this training", "nats",
              "> 0; inf trains without noise and marks the model non-private",
              "none, must be given", SPENDS, "guarantee"),
    Parameter("dp_delta", "probability with which the bound e^epsilon may fail", "probability",
              "0 < delta < 1, a constant chosen without the data; 0 with dp_accountant='pure'",
              "none, must be given ('pure': 0)", SPENDS,
              "guarantee"),
    Parameter("dp_preset", "a published system: sets the components below, which explicit keys "
              "override", "", "a name of xgb_dp.presets.PRESETS", "'default'", PUBLIC, "presets"),
    Parameter("dp_accountant", "accountant that certifies dp_epsilon", "",
              "'exact', 'rdp', 'gdp', 'zcdp', 'classic' or 'pure'; the report recomputes with any",
              "'exact', the tightest", SPENDS, "accounting"),
    Parameter("dp_budget_shares", "division of mu^2, the budget in Gaussian terms",
              "fractions that sum to 1", "mapping with keys candidates, base_score, splits, leaves",
              "candidates 0.1; base_score 0.009 (regression 0.027); of the rest 0.3 splits and "
              "0.7 leaves", SPENDS, "accounting"),
    Parameter("dp_gradient_bound", "bound C of one row's gradient",
              "gradient of the objective; regression: half widths of dp_target_bounds", "> 0",
              "'row_weight' 0.5; 'clip' 1, regression 0.3; 'filter' 1", PUBLIC, "sensitivity"),
    Parameter("dp_gradient_clip",
              "how a row is bounded: gradient and Hessian scaled together, the gradient clipped, "
              "or rows beyond the bound left out of a round", "",
              "'row_weight', 'clip' or 'filter'",
              "'row_weight'; regression and dp_leaf='gradient' 'clip'", PUBLIC, "sensitivity"),
    Parameter("dp_hessian_weight",
              "weight r of the second derivative in the norm sqrt(g^2 + r h^2)", "1", "> 0",
              "1; multi-class 0.25; regression and dp_leaf='gradient' (0.25 C / dp_max_weight)^2",
              PUBLIC, "sensitivity"),
    Parameter("dp_max_weight", "largest row weight; heavier rows count as this", "row weight",
              "> 0", "binary: none needed; else 1, and a heavier row is refused",
              PUBLIC, "sensitivity"),
    Parameter("dp_base_margin", "declares that every row brings a base_margin, which stands in for "
              "the intercept", "", "bool", "False: a row with margins is refused", PUBLIC,
              "guarantee"),
    Parameter("dp_n_public", "number of rows, if public; for the intercept and `dp_local`", "rows",
              "int >= 1", "unset: the number of rows is private", PUBLIC, "guarantee"),
    Parameter("dp_target_bounds",
              "range of the regression target; labels beyond are clamped (those beyond a million "
              "widths lose precision, and count as any label)",
              "label", "(low, high), finite, low < high", "none, must be given for regression",
              PUBLIC, "parameters"),
    Parameter("dp_candidates",
              "where private candidates come from: a tree of noisy counts over all floats, or, on "
              "dp_feature_bounds, noisy histograms cut at equal mass or refined round by round", "",
              "'quantile_tree', 'histogram' or 'adaptive'", "'quantile_tree'", SPENDS,
              "candidates"),
    Parameter("dp_candidate_rounds", "rounds that release candidates, from the first one on",
              "rounds", "int >= 1", "1; 'adaptive' 5; tree_method='dp_approx' all", SPENDS,
              "candidates"),
    Parameter("dp_candidate_weight", "what a row adds to them", "", "'count' or 'hessian'",
              "'count'; 'adaptive' and tree_method='dp_approx' 'hessian'", PUBLIC, "candidates"),
    Parameter("dp_candidate_noise", "their noise", "", "'gaussian' or 'laplace'", "'gaussian'",
              SPENDS, "candidates"),
    Parameter("dp_candidate_cells", "cells of the public grid under noisy histograms", "cells",
              "2 to 65536", "'histogram' 256; 'adaptive' max_bin", PUBLIC, "candidates"),
    Parameter("dp_feature_bounds",
              "public range of features: an even or geometric grid of max_bin bins replaces "
              "private candidates, or underlies noisy histograms", "feature",
              "{name or index: (low, high) or (low, high, 'log')}",
              "unset: candidates are released privately", PUBLIC, "candidates"),
    Parameter("dp_feature_cuts", "public split points of features", "feature",
              "{name or index: list of finite numbers}", "unset", PUBLIC, "candidates"),
    Parameter("dp_categories", "domain of categorical features", "categories",
              "{name or index: int K, or the list of names in the order of the data frame's "
              "dictionary}", "none, must be given for each categorical feature", PUBLIC,
              "parameters"),
    Parameter("dp_classes", "declared classes", "labels", "int K >= 2, or the list 0..K-1",
              "binary: 2; XGBClassifier: must be given", PUBLIC, "parameters"),
    Parameter("dp_split",
              "choice of splits: the exponential mechanism; a random feature and cut, which "
              "reads no data and costs nothing; the best of one random cut for each feature, or "
              "of all, on noisy sums, which give the leaves too", "",
              "'exponential', 'random', 'partial' or 'histogram'", "'exponential'", SPENDS,
              "splits"),
    Parameter("dp_leaf", "leaf values: Newton steps, or mean gradients, where every row counts one "
              "instead of its Hessian", "", "'newton' or 'gradient'", "'newton'", PUBLIC, "leaves"),
    Parameter("dp_leaf_noise",
              "what of a leaf gets noise: its sums (Gaussian or Laplace), or its value (Laplace), "
              "of which min_child_weight is a floor in the denominator", "",
              "'gaussian', 'laplace' or 'output'", "'gaussian'", SPENDS, "leaves"),
    Parameter("dp_geometric_clip", "clip the values of round t to (1 - eta)^t gradient bounds", "",
              "bool; with dp_leaf_noise='output'", "False", PUBLIC, "leaves"),
    Parameter("dp_ensemble",
              "rounds of one ensemble, which read disjoint random parts of the rows and so cost "
              "one round", "rounds", "int >= 1", "1: every round reads all rows", SPENDS,
              "sampling"),
    Parameter("dp_ensemble_halving", "each of them takes half of the rows that are left", "",
              "bool", "False: equal parts", PUBLIC, "sampling"),
    Parameter("dp_local", "noise on every row's report instead of on sums; dp_epsilon is then that "
              "of one report", "", "bool; with random splits and dp_n_public", "False", SPENDS,
              "accounting"),
    Parameter("dp_features_per_tree", "number of features that a tree may use", "features",
              "int >= 1", "all (or colsample_bytree)", PUBLIC, "splits"),
    Parameter("dp_feature_order", "how trees take their features: at random or in turn", "",
              "'random' or 'cyclic'", "'random'", PUBLIC, "splits"),
    Parameter("dp_score", "utility of a split", "", "'l1', 'newton' or 'gain'", "'l1'", PUBLIC,
              "splits"),
    Parameter("dp_score_clip", "largest leaf weight tau in the score 'newton'", "leaf weight",
              "> 0", "0.5", PUBLIC, "splits"),
    Parameter("dp_tree_shape", "one choice for each node, for each level, or both in turn", "",
              "'alternate', 'per_node' or 'oblivious'",
              "'alternate'; classification with dp_epsilon >= 1: 'oblivious'", PUBLIC, "splits"),
    Parameter("dp_split_levels",
              "levels of a tree that one selection fills: it picks a feature and a partition of "
              "its values into 2^levels parts", "levels", "1 to 4",
              "2; 1 with dp_no_split or another dp_split", SPENDS, "splits"),
    Parameter("dp_split_candidates",
              "random partitions of each feature that such a selection compares", "candidates",
              "1 to 4096", "16", PUBLIC, "splits"),
    Parameter("dp_split_prior",
              "weight of earlier trees' released gains in the choice of features", "1",
              "0 to 0.999", "0.5; 0 with another dp_split", FREE, "splits"),
    Parameter("dp_no_split",
              "let the mechanism choose not to split; gamma is the bonus of that choice", "",
              "bool", "False: trees are complete to max_depth", PUBLIC, "splits"),
    Parameter("dp_shrinkage", "shrink leaves whose noisy signal is below the noise", "", "bool",
              "True", FREE, "leaves"),
    Parameter("dp_shrinkage_strata",
              "shrink the effects of a tree's selections and their interactions each by their own "
              "estimate (complete trees of depth 8 or less), instead of all leaves by one", "",
              "bool", "True", FREE, "leaves"),
    Parameter("dp_candidate_levels", "levels of the tree of counts from which candidates are read",
              "levels", "2 to 17", "17", PUBLIC, "candidates"),
    Parameter("dp_secure_sum",
              "workers add shares of the noise to their own sums and mask them, so that none of "
              "them sees the sums of another or of all; no exponential mechanism, Laplace noise or "
              "subsample", "", "bool; with at least two workers",
              "False: workers trust each other", PUBLIC, "masked-sums"),
    Parameter("dp_secure_colluders",
              "workers that may put together what they know; the noise of the others alone makes "
              "dp_epsilon", "workers", "0 (nobody who trains is curious) to workers - 1",
              "1: each on its own", SPENDS, "masked-sums"),
    Parameter("dp_public_evals",
              "assert that every set in evals is public, so exact metrics and early stopping "
              "on it are allowed", "", "bool", "False", PUBLIC, "guarantee"),
)

_ORDINARY = (
    Parameter("tree_method", "selects private training; 'dp_approx' releases candidates for every "
              "tree", "", "'dp_hist' or 'dp_approx'", "none", PUBLIC, "XGBoost"),
    Parameter("objective", "loss", "", "binary:logistic, binary:logitraw, reg:squarederror, "
              "multi:softprob or multi:softmax", "none, must be given", PUBLIC, "XGBoost"),
    Parameter("eta", "learning rate; sets the clip of `dp_geometric_clip`", "1", "0 < eta <= 1",
              "0.5", PUBLIC, "XGBoost", ("learning_rate",)),
    Parameter("max_depth", "depth of the trees", "levels", "1 to 10",
              "4; classification with dp_epsilon >= 1: 6", PUBLIC, "XGBoost"),
    Parameter("lambda", "L2 penalty on leaf weights; part of the scores newton and gain and of the "
              "sensitivity of dp_leaf_noise='output'", "hessian", ">= 0", "1", PUBLIC, "XGBoost",
              ("reg_lambda",)),
    Parameter("alpha", "L1 penalty on leaf weights", "gradient", ">= 0", "0", FREE, "XGBoost",
              ("reg_alpha",)),
    Parameter("subsample",
              "probability with which a round reads a row; secret coins, so that privacy is "
              "amplified", "probability", "0 < subsample <= 1", "1", SPENDS, "sampling"),
    Parameter("num_parallel_tree",
              "trees of each class in one round, grown on the same gradients and averaged", "trees",
              "int >= 1", "1", SPENDS, "accounting", ()),
    Parameter("colsample_bytree", "fraction of the features that a tree may use", "features",
              "0 < colsample_bytree <= 1", "1", PUBLIC, "splits"),
    Parameter("monotone_constraints", "order of the prediction in a feature", "",
              "list of -1, 0, 1 for each column, its text, or {name: direction}", "none", PUBLIC,
              "constraints"),
    Parameter("interaction_constraints", "sets of features that may share a path of a tree", "",
              "list of lists of columns, or its text", "none", PUBLIC, "constraints"),
    Parameter("max_delta_step", "largest leaf weight before eta; 0 for none",
              "leaf weight; regression: half widths of dp_target_bounds", ">= 0", "2", FREE,
              "XGBoost"),
    Parameter("gamma", "bonus of not splitting; only with dp_no_split", "score", ">= 0", "0",
              PUBLIC, "XGBoost", ("min_split_loss",)),
    Parameter("min_child_weight", "floor of the noisy hessian sum in a leaf; part of the "
              "sensitivity of dp_leaf_noise='output'", "hessian", ">= 0", "0", PUBLIC, "XGBoost"),
    Parameter("max_bin", "bins of a feature", "bins", "2 to 4096",
              "64; classification with dp_epsilon >= 1: 256", PUBLIC, "XGBoost"),
    Parameter("base_score", "public intercept",
              "prediction; binary:logitraw and several classes: margins",
              "number, or list of K for several classes", "released privately", PUBLIC, "XGBoost"),
    Parameter("num_class", "number of classes", "classes", "int >= 2", "dp_classes", PUBLIC,
              "XGBoost"),
    Parameter("scale_pos_weight", "weight of positive rows; a public number", "row weight", "> 0",
              "1", PUBLIC, "XGBoost"),
    Parameter("eval_metric", "metrics on public sets", "", "names", "XGBoost's", PUBLIC, "XGBoost"),
    Parameter("disable_default_eval_metric", "no default metric", "", "bool", "XGBoost's", PUBLIC,
              "XGBoost"),
    Parameter("nthread", "threads", "threads", "int", "XGBoost's", PUBLIC, "XGBoost", ("n_jobs",)),
    Parameter("verbosity", "messages", "", "0 to 3", "XGBoost's", PUBLIC, "XGBoost"),
    Parameter("seed", "never used for noise; accepted for compatibility", "", "int", "XGBoost's",
              PUBLIC, "XGBoost", ("random_state",)),
    Parameter("seed_per_iteration", "never used for noise; accepted for compatibility", "", "bool",
              "XGBoost's", PUBLIC, "XGBoost"),
    Parameter("validate_parameters", "warn about unused parameters", "", "bool", "XGBoost's",
              PUBLIC, "XGBoost"),
)
# fmt: on

ARGUMENTS: dict[str, Parameter] = {p.name: p for p in _ARGUMENTS}
"""Arguments that stand beside the parameters."""

DP_PARAMETERS: dict[str, Parameter] = {p.name: p for p in _DP}
"""All ``dp_*`` parameters by name."""

ALLOWED: dict[str, Parameter] = {p.name: p for p in _ORDINARY}
"""XGBoost's own parameters that private training accepts, by canonical name."""

ALIASES: dict[str, str] = {a: p.name for p in _ORDINARY for a in p.aliases}

PASSED_ON = (
    "eval_metric",
    "disable_default_eval_metric",
    "nthread",
    "verbosity",
    "seed",
    "seed_per_iteration",
    "validate_parameters",
)
"""Parameters that XGBoost reads itself."""

OBJECTIVES: dict[str, str] = {
    "binary:logistic": "binary",
    "binary:logitraw": "binary",
    "reg:squarederror": "regression",
    "multi:softprob": "multiclass",
    "multi:softmax": "multiclass",
}
"""Supported objectives and the kind of their labels.

Objectives of one kind of classification have the same gradients: they differ in what is predicted
(binary:logitraw: margins; multi:softmax: the most probable class).
"""


def kind_of(user: Mapping[str, Any]) -> str | None:
    """Kind of the labels: "binary", "regression" or "multiclass"; None without a supported one."""
    objective = user.get("objective")
    return OBJECTIVES.get(objective) if isinstance(objective, str) else None


NEUTRAL: dict[str, tuple[Any, ...]] = {
    "booster": ("gbtree",),
    "device": ("cpu",),
    "sampling_method": ("uniform",),
    "colsample_bylevel": (1,),
    "colsample_bynode": (1,),
    "max_leaves": (0,),
    "grow_policy": ("depthwise",),
    "process_type": ("default",),
    "multi_strategy": ("one_output_per_tree",),
}
"""Refused parameters that are accepted with the value that switches them off."""

REFUSED: dict[str, str] = {
    "booster": "only gbtree has private leaves and splits",
    "device": "private training runs on the CPU",
    "sampling_method": "gradient-based sampling depends on exact gradients of all rows",
    "colsample_bylevel": "columns are sampled for whole trees only; use colsample_bytree",
    "colsample_bynode": "columns are sampled for whole trees only; use colsample_bytree. "
    "XGBRFClassifier and XGBRFRegressor set 0.8 unless you give colsample_bynode=1",
    "max_leaves": "the order in which leaves grow would follow exact gains",
    "grow_policy": "lossguide grows the leaf with the largest exact gain first",
    "updater": "it would replace the private tree updater by one that is not private",
    "process_type": "updating trees recomputes their exact statistics",
    "refresh_leaf": "refreshing leaves stores their exact statistics",
    "multi_strategy": "trees with several outputs have no private updater",
    "rate_drop": "dart is not part of private training",
    "one_drop": "dart is not part of private training",
    "skip_drop": "dart is not part of private training",
    "sample_type": "dart is not part of private training",
    "normalize_type": "dart is not part of private training",
    "max_cat_to_onehot": "categories are divided without being sorted by their sums",
    "max_cat_threshold": "categories are divided without being sorted by their sums",
    "max_cached_hist_node": "the private updater keeps its own histograms",
    "extmem_single_page": "the private updater keeps its own pages",
    "dp_plan": "it is the calibrated result, written by xgb_dp; give dp_epsilon and dp_delta",
}
"""Why a parameter is refused, by name. What is in neither table is refused as unknown."""


def as_markdown() -> str:
    """The parameter table for the documentation."""
    head = ["parameter", "meaning", "unit", "values", "default", "privacy effect"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for p in (*_DP, *_ORDINARY):
        name = ", ".join(f"`{n}`" for n in (p.name, *p.aliases))
        cells = [name, p.meaning, p.unit, p.values, p.default, p.effect]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines)


def check_names(params: Mapping[str, Any]) -> None:
    """Refuse every parameter that private training does not know to be safe.

    Args:
        params: Result of :func:`flatten`.

    Raises:
        PrivacyParameterError: Unknown name, with the nearest known one.
        PrivacyRefusal: A known parameter that would break privacy, with the reason.
    """
    known = [*DP_PARAMETERS, *ALLOWED, *ALIASES]
    for name, value in params.items():
        if name in DP_PARAMETERS or name in ALLOWED:
            continue
        if name in NEUTRAL and any(_neutral(value, v) for v in NEUTRAL[name]):
            continue
        if name in REFUSED:
            allowed = (
                f" Leave it out or set it to {NEUTRAL[name][0]!r}."
                if name in NEUTRAL
                else " Leave it out."
            )
            raise PrivacyRefusal(
                f"`{name}` is refused in private training: {REFUSED[name]}.{allowed}"
            )
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        kind = PrivacyParameterError if name.startswith("dp_") or near else PrivacyRefusal
        raise kind(
            f"`{name}` is not a parameter of private training, which accepts only what is known to "
            f"be safe.{hint} See the parameter table in the documentation."
        )


def _neutral(value: Any, neutral: Any) -> bool:
    if isinstance(neutral, int) and not isinstance(value, bool):
        try:
            return float(value) == neutral
        except (TypeError, ValueError):
            return False
    return type(value) is type(neutral) and same(value, neutral)


def same(a: Any, b: Any) -> bool:
    """Whether two parameter values are equal; arrays never are."""
    try:
        return bool(a == b)
    except ValueError:
        return False
