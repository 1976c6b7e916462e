"""Parameters of the trees that belong to no single release, and XGBoost's own parameters."""

from __future__ import annotations

from typing import Any

from ..errors import PrivacyRefusal
from ..mechanisms import sampling
from ..mechanisms.splits import SPLITS, of_trees
from ..parameters.parameter import PUBLIC, SPENDS, Config, Parameter, Rule, Table
from ..parameters.parse import Flag, Integer, Number, OneOf, Reader, plain, shown
from .schema import by_column, interaction_sets, monotone_directions


def _tree_method(name: str, value: Any, s: Config) -> str:
    if isinstance(value, str) and value in ("dp_hist", "dp_approx"):
        return value
    raise _refusal(f"is {shown(value)}")


def _no_tree_method(s: Config) -> str:
    raise _refusal("is missing")


def _refusal(got: str) -> PrivacyRefusal:
    return PrivacyRefusal(
        f"`tree_method` {got}, but dp_* parameters were given, or `xgb_model` is a private model: "
        "only tree_method='dp_hist' (or 'dp_approx') trains privately. Set it, or leave them out "
        "to train without privacy."
    )


def _stock(name: str, meaning: str, values: str, read: Reader = plain, **others: Any) -> Parameter:
    """A parameter that only XGBoost reads, with XGBoost's default."""
    others |= {"values": values, "shown": "XGBoost's", "xgboost": True, "recorded": False}
    return Parameter(name, meaning, read, None, PUBLIC, "XGBoost", Table.STOCK, **others)


# fmt: off
PARAMETERS = (
    Parameter("dp_feature_bounds", "public ranges of features. (low, high) spends the search for "
              "private candidates between these ends, which a narrow range far from 0 needs, and "
              "is an even grid of max_bin bins in published systems and "
              "without Gaussian noise; 'even' or 'log' asks for such a grid or a geometric one in "
              "place of private candidates. The edges of noisy histograms", by_column, {}, PUBLIC,
              "candidates", unit="feature",
              values="{name or index: (low, high), (low, high, 'even') or (low, high, 'log')}",
              shown="unset: candidates are anywhere", recorded=False),
    Parameter("dp_feature_cuts", "public split points of features", by_column, {}, PUBLIC,
              "candidates", unit="feature", values="{name or index: list of finite numbers}",
              shown="unset", recorded=False),
    Parameter("dp_categories", "the categories of each categorical feature", by_column, {}, PUBLIC,
              "parameters", unit="categories", values="{name or index: int K, or the list of names "
              "in the order of the data frame's dictionary}", shown="none, must be given for each "
              "categorical feature", recorded=False),
    Parameter("dp_split", "choice of splits: the exponential mechanism; a random feature and cut, "
              "which reads no data and costs nothing; the best of one random cut for each feature, "
              "or of all, on noisy sums, which give the leaves too",
              OneOf(SPLITS), "exponential", SPENDS,
              "exponential-mechanism", Table.PUBLISHED, plan="split"),
    *sampling.PARAMETERS,
    Parameter("dp_features_per_tree", "the number of features that a tree may use",
              lambda name, value, s: Integer(1, s.schema.width)(name, value),
              lambda s: max(1, int(s["colsample_bytree"] * s.schema.width)), PUBLIC,
              "exponential-mechanism", Table.PUBLISHED, unit="features", values="int >= 1",
              shown="all (or colsample_bytree)", plan="features_per_tree"),
    Parameter("dp_feature_order", "whether trees take their features at random or in turn",
              OneOf(("random", "cyclic")), "random", PUBLIC, "exponential-mechanism",
              Table.PUBLISHED),
    Parameter("tree_method", "selects private training. 'dp_approx' releases candidates for every "
              "tree", _tree_method, _no_tree_method, PUBLIC, "XGBoost",
              values="'dp_hist' or 'dp_approx'", shown="none, must be given", recorded=False),
    Parameter("max_depth", "the depth of the trees", Integer(1, 10), of_trees("max_depth"), PUBLIC,
              "XGBoost", unit="levels", shown="open rounds: follows the rows; else 4, "
              "classification with dp_epsilon / dp_group_size >= 1 6", plan="depth", xgboost=True),
    Parameter("max_bin", "bins of a feature", Integer(2, 4096), of_trees("max_bin"), PUBLIC,
              "XGBoost", unit="bins", shown="open rounds: follows the rows; else 64, "
              "classification with dp_epsilon / dp_group_size >= 1 256", plan="candidates.max_bin",
              xgboost=True),
    Parameter("num_parallel_tree", "trees of each class in one round, grown on the same gradients "
              "and averaged", Integer(1, 1 << 20), 1,
              SPENDS, "accounting", Table.PUBLISHED, unit="trees",
              plan="parallel_trees",
              xgboost=True),
    Parameter("colsample_bytree", "fraction of the features that a tree may use",
              Number(0, 1, open_low=True), 1.0, PUBLIC, "exponential-mechanism", Table.DEFAULT,
              unit="features", recorded=False),
    Parameter("monotone_constraints", "order of the prediction in a feature", monotone_directions,
              lambda s: (0,) * s.schema.width, PUBLIC, "constraints",
              values="list of -1, 0, 1 for each column, its text, or {name: direction}",
              shown="none", plan="monotone"),
    Parameter("interaction_constraints", "sets of features that may share a path of a tree",
              interaction_sets, (), PUBLIC, "constraints",
              values="list of lists of columns, or its text", shown="none", plan="interactions"),
    _stock("eval_metric", "metrics on public sets", "names"),
    _stock("disable_default_eval_metric", "no default metric", "bool", Flag()),
    _stock("nthread", "threads", "int", Integer(-(1 << 20), 1 << 20), unit="threads",
           aliases=("n_jobs",)),
    _stock("verbosity", "messages", "0 to 3", Integer(0, 3)),
    _stock("seed", "never used for noise; accepted for compatibility", "int",
           Integer(-(1 << 63), (1 << 63) - 1), aliases=("random_state",)),
    _stock("seed_per_iteration", "never used for noise; accepted for compatibility", "bool",
           Flag()),
    _stock("validate_parameters", "warn about unused parameters", "bool", Flag()),
)
RULES = (
    Rule("one number of features",
         lambda s: s["colsample_bytree"] != 1.0 and "dp_features_per_tree" in s.given,
         "Give `colsample_bytree` or `dp_features_per_tree`, not both: either is the number of "
         "features of a tree."),
    Rule("weights of columns that are drawn",
         lambda s: s.schema.weights is not None and (
             s["dp_features_per_tree"] == s.schema.width or s["dp_feature_order"] == "cyclic"),
         "`feature_weights` are the chances with which a tree draws its columns, and no column is "
         "drawn here. Set `colsample_bytree` below 1 (or `dp_features_per_tree`), with "
         "dp_feature_order='random', or leave the weights out."),
    *sampling.RULES,
)
# fmt: on
