"""Tree parameters that do not belong to a single mechanism, and parameters that XGBoost reads."""

from __future__ import annotations

from typing import Any

from ..errors import PrivacyRefusal
from ..mechanisms.plan import SAMPLE_BITS
from ..mechanisms.splits import SPLITS, tree_default
from ..parameters.config import Config
from ..parameters.parameter import PUBLIC, SPENDS, Parameter, Rule, Table
from ..parameters.parse import Flag, Integer, Number, OneOf, Reader, plain, show
from .schema import by_column, interaction_sets, monotone_directions


def _tree_method(name: str, value: Any, s: Config) -> str:
    """Read the method; None if it is missing."""
    if isinstance(value, str) and value in ("dp_hist", "dp_approx"):
        return value
    got = "missing" if value is None else show(value)
    raise PrivacyRefusal(
        f"`{name}` is {got}, but dp_* parameters or a private `xgb_model` were passed. Private "
        "training requires tree_method='dp_hist' or 'dp_approx'. Set one of them, or remove the "
        "dp_* parameters and the private model to train without privacy."
    )


def _subsample(name: str, value: Any, s: Config) -> float:
    """Round to a multiple of 2^-32, the precision of sampling and accounting."""
    rate = Number(0, 1, open_low=True)(name, value)
    return max(1, round(rate * 2**SAMPLE_BITS)) / 2**SAMPLE_BITS


def _stock(name: str, meaning: str, values: str, read: Reader = plain, **others: Any) -> Parameter:
    """A parameter that only XGBoost reads, with XGBoost's default."""
    others |= {"values": values, "shown": "XGBoost's", "xgboost": True, "recorded": False}
    return Parameter(name, meaning, read, None, PUBLIC, "XGBoost", Table.STOCK, **others)


# fmt: off
PARAMETERS = (
    Parameter("dp_feature_bounds", "Public ranges of features. (low, high) limits the search for "
              "private split candidates. 'even' or 'log' makes a public grid of max_bin bins of "
              "equal or geometrically growing width instead; in published systems and without "
              "Gaussian noise, (low, high) means 'even'. With noisy histograms the grid defines "
              "their cells.", by_column, {}, PUBLIC,
              "candidates", unit="feature",
              values="{name or index: (low, high), (low, high, 'even') or (low, high, 'log')}",
              shown="none; candidates are searched among all numbers", recorded=False),
    Parameter("dp_feature_cuts", "Public split points of features, used instead of private "
              "candidates.", by_column, {}, PUBLIC,
              "candidates", unit="feature", values="{name or index: list of finite numbers}",
              shown="none", recorded=False),
    Parameter("dp_categories", "All categories that may occur, by categorical feature.",
              by_column, {}, PUBLIC,
              "parameters", unit="categories", values="{name or index: number K of categories, or "
              "list of names in the order of the data frame's categories}",
              shown="none; required for each categorical feature", recorded=False),
    Parameter("dp_split", "How splits are chosen. 'exponential': by the exponential mechanism. "
              "'random': a random feature and cut, at no cost. 'partial' and "
              "'histogram': the best split on noisy sums, among one random cut per "
              "feature or all cuts; the same sums determine the leaves.",
              OneOf(SPLITS), "exponential", SPENDS,
              "exponential-mechanism", Table.PUBLISHED, plan="split"),
    Parameter("subsample", "Probability with which a round reads each row.",
              _subsample, 1.0, SPENDS, "sampling",
              Table.PUBLISHED, unit="probability", values="0 < value <= 1"),
    Parameter("dp_ensemble", "Number of rounds in an ensemble, which read disjoint random parts "
                             "of the rows and cost as much as one round.",
              Integer(1, 1 << 16), 1, SPENDS, "accounting", Table.PUBLISHED, unit="rounds",
              shown="1: every round reads all rows", plan="ensemble"),
    Parameter("dp_features_per_tree", "Number of features that a tree may use.",
              lambda name, value, s: Integer(1, s.schema.width)(name, value),
              lambda s: max(1, int(s["colsample_bytree"] * s.schema.width)), PUBLIC,
              "exponential-mechanism", Table.PUBLISHED, unit="features", values="int >= 1",
              shown="the fraction colsample_bytree of all features", plan="features_per_tree"),
    Parameter("dp_feature_order", "Features of a tree: drawn at random ('random') or taken in turn "
                                  "('cyclic').",
              OneOf(("random", "cyclic")), "random", PUBLIC, "exponential-mechanism",
              Table.PUBLISHED),
    Parameter("tree_method", "'dp_hist' releases split candidates before the first tree, "
              "'dp_approx' in every round.", _tree_method,
              lambda s: _tree_method("tree_method", None, s), PUBLIC, "XGBoost",
              values="'dp_hist' or 'dp_approx'", shown="none; required", recorded=False),
    Parameter("max_depth", "Depth of the trees.", Integer(1, 10), tree_default("max_depth"), PUBLIC,
              "XGBoost", unit="levels", shown="4; 6 for classification with dp_epsilon / "
              "dp_group_size >= 1; see [Rounds](#rounds)", plan="depth",
              xgboost=True),
    Parameter("max_bin", "Target number of bins per feature.", Integer(2, 4096),
              tree_default("max_bin"), PUBLIC, "XGBoost", unit="bins", shown="64; 256 for "
              "classification with dp_epsilon / dp_group_size >= 1; see "
              "[Rounds](#rounds)", plan="candidates.max_bin", xgboost=True),
    Parameter("num_parallel_tree", "Number of trees per class in each round, which are averaged.",
              Integer(1, 1 << 20), 1,
              SPENDS, "accounting", Table.PUBLISHED, unit="trees",
              plan="parallel_trees",
              xgboost=True),
    Parameter("colsample_bytree", "Fraction of the features that a tree may use.",
              Number(0, 1, open_low=True), 1.0, PUBLIC, "exponential-mechanism", Table.DEFAULT,
              unit="fraction of features", recorded=False),
    Parameter("monotone_constraints", "Direction of the prediction in each feature: 1 for "
              "increasing, -1 for decreasing, 0 for no constraint.", monotone_directions,
              lambda s: (0,) * s.schema.width, PUBLIC, "constraints",
              values="list with one entry per column, a string of such a list, or {name: "
              "direction}",
              shown="none", plan="monotone"),
    Parameter("interaction_constraints", "Sets of features that may occur together on a path of a "
              "tree.", interaction_sets, (), PUBLIC, "constraints",
              values="list of lists of columns, or a string of such a list", shown="none",
              plan="interactions"),
    _stock("eval_metric", "Metrics for public evaluation sets.", "names"),
    _stock("disable_default_eval_metric", "Disables the default metric.", "bool", Flag()),
    _stock("nthread", "Number of threads.", "int", Integer(-(1 << 20), 1 << 20), unit="threads",
           aliases=("n_jobs",)),
    _stock("verbosity", "Verbosity of log messages.", "0 to 3", Integer(0, 3)),
    _stock("seed", "Accepted for compatibility; never used for noise.", "int",
           Integer(-(1 << 63), (1 << 63) - 1), aliases=("random_state",)),
    _stock("seed_per_iteration", "Accepted for compatibility; never used for noise.", "bool",
           Flag()),
    _stock("validate_parameters", "Warns about unused parameters.", "bool", Flag()),
)
RULES = (
    Rule("colsample_bytree or dp_features_per_tree",
         lambda s: s["colsample_bytree"] != 1.0 and "dp_features_per_tree" in s.given,
         "`colsample_bytree` and `dp_features_per_tree` both set the number of features of a tree. "
         "Pass only one of them."),
    Rule("feature_weights need sampled columns",
         lambda s: s.schema.weights is not None and (
             s["dp_features_per_tree"] == s.schema.width or s["dp_feature_order"] == "cyclic"),
         "`feature_weights` are probabilities for drawing the columns of a tree, but no columns "
         "are drawn here. Set `colsample_bytree` below 1 (or `dp_features_per_tree`) with "
         "dp_feature_order='random', or remove the weights."),
    Rule("dp_ensemble or subsample",
         lambda s: s["dp_ensemble"] > 1 and s["subsample"] != 1.0,
         "`dp_ensemble` and `subsample` both determine which rows a round reads. Pass only one of "
         "them."),
)
# fmt: on
