"""What parameters demand of each other, one named rule for each demand.

A rule is broken or it is not; its message says which parameters do not go together and what to do.
``{name}`` in a message stands for the value of a parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting.sensitivity import BALLS
from ..errors import PrivacyError, PrivacyParameterError, PrivacyRefusal
from .objectives import OBJECTIVES, OWN_PARAMETERS
from .targets import CLIPS, TARGETS

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["RULES", "Rule", "check_rules"]

_COARSEST_GRID = 16  # steps of a gradient C
_LARGEST_HESSIAN = 60  # times C, in the norm of a row
_LEAST_BOUND = 1e-6  # of C; at most its inverse
_LARGEST_ALPHA = 1e12  # half widths
_LEAST_LOGARITHMS = 0.01
_SLOPES = 1e5
_LEAST_TIME = 1e-30


@dataclass(frozen=True)
class Rule:
    """A demand on several parameters.

    Attributes:
        name: Short name.
        broken: Whether settings break it.
        message: What does not go together, why, and how to mend it.
        error: :class:`PrivacyRefusal` where the combination would not be private, or is not proved
            to be.
    """

    name: str
    broken: Callable[[Settings], bool]
    message: str
    error: type[PrivacyError] = PrivacyParameterError


def check_rules(s: Settings) -> None:
    """Raise the error of the first rule that is broken."""
    for rule in RULES:
        if rule.broken(s):
            raise rule.error(rule.message.format_map(s))


def _selections_only(name: str) -> Rule:
    return Rule(
        f"{name} needs selections",
        lambda s: s["dp_split"] != "exponential" and name in s.given,
        f"`{name}` has an effect with dp_split='exponential' only; got {{dp_split!r}}. "
        "Leave it out.",
    )


def _of_objective(name: str) -> Rule:
    own = [objective for objective, known in OBJECTIVES.items() if name in known.parameters]
    return Rule(
        f"{name} has its objectives",
        lambda s: name in s.given and name not in s.objective.parameters,
        f"`{name}` is for {', '.join(own)}; the objective is "
        "{objective}. Leave it out, or change the objective.",
    )


def _knows(s: Settings, low: float, high: float) -> bool:
    """Whether an objective knows the labels of a range; means above 0 may have one from 0 on."""
    known = s.objective
    above = known.intervals or (known.above and known.link == "identity")
    least = max(known.lowest, _LEAST_TIME) if known.intervals else known.lowest
    return (low > least if above else low >= least) and high <= known.highest


def _unit_weights(name: str, value: str) -> Rule:
    return Rule(
        f"{name} {value} needs unit weights",
        lambda s: s[name] == value and "dp_max_weight" in s.given,
        f"`{name}`='{value}' is refused with row weights: it is proved for unit weights. "
        "Leave `dp_max_weight` out, or take another value.",
        PrivacyRefusal,
    )


def _rows_count_alike(s: Settings) -> bool:
    counts = s.squared or s["dp_leaf"] == "gradient"
    return counts and s.trees_per_round == 1 and s["dp_gradient_clip"] not in BALLS


def _hessians_are_counted(s: Settings) -> bool:
    return bool(s["dp_score"] == "gain" or s["dp_leaf_noise"] == "output")


def _masked(name: str, broken: Callable[[Settings], bool], message: str) -> Rule:
    return Rule(
        f"masked sums {name}",
        lambda s: s["dp_secure_sum"] and broken(s),
        f"`dp_secure_sum` is refused with {message}",
        PrivacyRefusal,
    )


_GAUSSIAN_SHARES = "shares of noise add up to what is claimed for 'gaussian' only. Use that."

# fmt: off
RULES = (
    # labels
    Rule("no classes of a target",
         lambda s: (s.kind == "regression" and (s["dp_classes"] is not None
                    or s["num_class"] not in (None, 0, 1))),
         "`dp_classes` and `num_class` are for classification only. Leave them out."),
    Rule("two classes",
         lambda s: s.kind == "binary" and s["dp_classes"] not in (None, 2),
         "`dp_classes` declares more than two classes, but the objective is for two. Use "
         "objective='multi:softprob'."),
    Rule("num_class of two",
         lambda s: s.kind == "binary" and s["num_class"] not in (None, 0, 1),
         "`num_class` does not go with objectives for two classes. Leave it out, or use "
         "objective='multi:softprob'."),
    Rule("classes are declared",
         lambda s: s.kind == "multiclass" and not s.classes,
         "`num_class` (or `dp_classes`) is missing: classes are declared, never read off the "
         "labels. Give num_class=K; labels are 0..K-1."),
    Rule("one number of classes",
         lambda s: (s.kind == "multiclass" and s["dp_classes"] is not None
                    and s["dp_classes"] != s.classes),
         "`dp_classes` and `num_class` declare different numbers of classes. Give one of them."),
    Rule("several classes",
         lambda s: s.kind == "multiclass" and s.classes < 2,
         "`num_class` must be at least 2 for several classes; got {num_class}."),
    Rule("no range of classes",
         lambda s: s.kind != "regression" and "dp_target_bounds" in s.given,
         "`dp_target_bounds` is for regression only. Leave it out."),
    Rule("scale_pos_weight of two classes",
         lambda s: s["scale_pos_weight"] != 1.0 and s.kind != "binary",
         "`scale_pos_weight` is for two classes only. Leave it out."),
    Rule("a continued model brings base_score",
         lambda s: s.continues and "base_score" in s.given,
         "`base_score` cannot be given with xgb_model, which brings its own. Leave it out."),
    Rule("a public model is given",
         lambda s: s["dp_public_model"] and not s.continues,
         "`dp_public_model` says that `xgb_model` is public, but there is no `xgb_model`. Give the "
         "model to start from, or leave `dp_public_model` out."),
    Rule("several targets of squared error",
         lambda s: s.labels > 1 and s.objective.intercept != "means",
         "Several targets are refused for this objective: a bound of all labels of a row together "
         "is proved for reg:squarederror, without dp_objective, and for binary:logistic. Train a "
         "model for each target, and book them in one xgb_dp.Budget.", PrivacyRefusal),
    Rule("several labels weigh alike",
         lambda s: s.kind == "binary" and s.labels > 1 and s["scale_pos_weight"] != 1.0,
         "`scale_pos_weight` is for one label of a row; the matrix has several columns of labels. "
         "Leave it out."),
    *map(_of_objective, OWN_PARAMETERS),
    Rule("labels of the objective are in the range",
         lambda s: s.target is not None and not _knows(s, *s.target),
         "`dp_target_bounds` must lie within the labels that {objective} knows: counts and amounts "
         "from 0 on, times above 1e-30, shares from 0 to 1, and above -1 for reg:squaredlogerror."),
    Rule("exposures have a range",
         lambda s: (s.measured and s["dp_base_margin"] and not s.continues
                    and s["dp_exposure_bounds"] is None),
         "`dp_exposure_bounds` is missing: with dp_base_margin, {objective} needs a public range "
         "of exp(base_margin), e.g. dp_exposure_bounds=(0.003, 1) for a day up to a year."),
    Rule("exposures are of rows with margins",
         lambda s: s["dp_exposure_bounds"] is not None and not (
             s.objective.intercept == "capped mean" and s["dp_base_margin"]),
         "`dp_exposure_bounds` is for count:poisson, reg:gamma and reg:tweedie with "
         "dp_base_margin. Leave it out, or declare dp_base_margin=True."),
    Rule("no first tree for all margins",
         lambda s: (s.additive and s.objective.intercept == "capped mean" and s["dp_base_margin"]
                    and not s.continues and s["base_score"] != 1.0),
         "`dp_split`='additive' is refused with dp_base_margin for {objective}: the first tree "
         "starts all predictions, and an additive round has no first tree. Use another dp_split, "
         "or give base_score=1 where the margins alone are the start.", PrivacyRefusal),
    Rule("logarithms differ in the range",
         lambda s: (s["objective"] == "reg:squaredlogerror" and s.target is not None
                    and math.log1p(s.target[1]) - math.log1p(s.target[0]) < _LEAST_LOGARITHMS),
         "`dp_target_bounds` is too narrow for reg:squaredlogerror: the logarithms of 1 + label "
         "differ by less than 0.01 in it, and are a straight line. Use reg:squarederror, which "
         "fits the same model there."),
    Rule("slope of the range",
         lambda s: (s["huber_slope"] is not None and not
                    s.half_width / _SLOPES <= s["huber_slope"] <= s.half_width * _SLOPES),
         "`huber_slope` must be at least a hundred-thousandth of half the width of "
         "dp_target_bounds, and at most 100,000 times as large; got {huber_slope}. Far below, the "
         "loss is that of reg:absoluteerror; far above, that of reg:squarederror."),
    Rule("an own objective predicts margins",
         lambda s: s["dp_objective"] is not None and s["objective"] != "reg:squarederror",
         "`objective` is {objective}, and a model of `dp_objective` predicts margins. Leave "
         "`objective` out, or set it to 'reg:squarederror'."),
    Rule("an own objective has no norm of predictions",
         lambda s: s["dp_objective"] is not None and s["dp_gradient_clip"] == "prediction",
         "`dp_gradient_clip`='prediction' is refused with `dp_objective`: the largest norm over "
         "the labels is not known. Use 'row_weight' or 'clip'."),
    # splits
    *map(_selections_only, ("dp_score", "dp_score_clip", "dp_no_split")),
    Rule("score gain needs rows that count alike",
         lambda s: s["dp_score"] == "gain" and not _rows_count_alike(s),
         "`dp_score`='gain' is refused for this objective: one row changes the "
         "gain without bound when second derivatives vary. Use 'l1' or 'newton', "
         "or dp_leaf='gradient'.", PrivacyRefusal),
    Rule("score clip needs score newton",
         lambda s: "dp_score_clip" in s.given and s["dp_score"] != "newton",
         "`dp_score_clip` has an effect with dp_score='newton' only. Leave it out."),
    Rule("several levels need complete selections",
         lambda s: s["dp_split_levels"] > 1 and not s.complete_selections,
         "`dp_split_levels` above 1 needs dp_split='exponential' without dp_no_split: one "
         "selection then fills several levels. Leave it at 1, or change these."),
    Rule("trees of one class",
         lambda s: s["dp_class_trees"] == "joint" and s.trees_per_round == 1,
         "`dp_class_trees`='joint' is for several classes, quantiles or targets. Leave it out."),
    Rule("joint trees need rows bounded jointly",
         lambda s: s["dp_class_trees"] == "joint" and s["dp_gradient_clip"] != "prediction",
         "`dp_class_trees`='joint' needs dp_gradient_clip='prediction', which bounds the norm of a "
         "row over all classes; got {dp_gradient_clip!r}."),
    Rule("joint trees need selections by norms",
         lambda s: (s["dp_class_trees"] == "joint"
                    and (s["dp_split"] != "exponential" or s["dp_score"] != "l1")),
         "`dp_class_trees`='joint' needs dp_split='exponential' and dp_score='l1': the splits are "
         "chosen by the norm of the gradients of all classes."),
    Rule("public trees need public rows",
         lambda s: s["dp_split"] == "public" and not s["dp_public_data"],
         "dp_split='public' grows its trees on public rows. Give them as `dp_public_data`."),
    Rule("public trees as they are",
         lambda s: s["dp_split"] == "public" and (
             s["num_parallel_tree"] != 1 or s["dp_features_per_tree"] != s.schema.width
             or s["dp_tree_shape"] != "per_node"),
         "`num_parallel_tree`, `colsample_bytree`, `dp_features_per_tree` and `dp_tree_shape` are "
         "refused with dp_split='public', which takes public trees as they are. Leave them out."),
    Rule("gamma needs no_split",
         lambda s: s["gamma"] != 0.0 and not s["dp_no_split"],
         "`gamma` is refused without dp_no_split=True: a threshold on the exact "
         "gain is not private. With dp_no_split it is the bonus of not splitting.", PrivacyRefusal),
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
    Rule("one tree of each column",
         lambda s: s.additive and (s["num_parallel_tree"] != s.schema.width
                                   or s["dp_features_per_tree"] != s.schema.width),
         "`num_parallel_tree`, `colsample_bytree` and `dp_features_per_tree` are refused with "
         "dp_split='additive': a round has one tree of each column. Leave them out."),
    Rule("depth of one column",
         lambda s: s.additive and s["max_depth"] > 4,
         "`max_depth` is at most 4 with dp_split='additive'; got {max_depth}."),
    Rule("additive leaves are Gaussian",
         lambda s: s.additive and s["dp_leaf_noise"] != "gaussian",
         "`dp_leaf_noise`={dp_leaf_noise!r} is refused with dp_split='additive': the bound of a "
         "row over all leaves of a round is that of Gaussian noise.", PrivacyRefusal),
    # a start from columns
    Rule("columns of two classes",
         lambda s: s.starts_from_columns and (s.kind != "binary" or s.labels > 1),
         "`dp_start`='columns' is for one label of two classes, whose cells it sums. Leave it "
         "out."),
    Rule("columns of rows",
         lambda s: s.starts_from_columns and s.unit != "row",
         "`dp_start`='columns' is refused with `dp_privacy_id`: what a person adds to sums by "
         "class and column is not proved. Leave one of them out.", PrivacyRefusal),
    Rule("columns and labels are read together",
         lambda s: s.starts_from_columns and s.intercept != "released",
         "`dp_start`='columns' needs a released intercept, to which the first trees are centred. "
         "Leave `base_score`, `dp_base_margin` or xgb_model out."),
    Rule("columns are numbers",
         lambda s: s.starts_from_columns and any(f.kind == "categorical" for f in s.features),
         "`dp_start`='columns' is for numeric columns, whose cells are above 0 or not. Store the "
         "categories as columns of 0 and 1, or leave it out."),
    Rule("trees after columns",
         lambda s: s.starts_from_columns and (
             s["dp_split"] in ("additive", "public") or s["num_parallel_tree"] != 1
             or s.schema.weights is not None or s["dp_feature_order"] == "cyclic"
             or any(s["monotone_constraints"]) or bool(s["interaction_constraints"])),
         "`dp_start`='columns' grows a tree a round on the columns that say most: it is refused "
         "with dp_split='additive' or 'public', `num_parallel_tree`, `feature_weights`, "
         "dp_feature_order='cyclic', `monotone_constraints` and `interaction_constraints`. Leave "
         "them out."),
    # leaves
    Rule("gradient leaves weigh no class",
         lambda s: s["dp_leaf"] == "gradient" and s["scale_pos_weight"] != 1.0,
         "`scale_pos_weight` has no meaning with dp_leaf='gradient', where every row counts one. "
         "Leave it out."),
    Rule("noisy sums bring Gaussian leaves",
         lambda s: s["dp_leaf_noise"] != "gaussian" and s["dp_split"] in ("histogram", "partial"),
         "`dp_leaf_noise` has no effect with dp_split={dp_split!r}: leaves are read from the "
         "noisy sums of the splits. Leave it out."),
    Rule("leaf noise output needs rows that count alike",
         lambda s: s["dp_leaf_noise"] == "output" and not _rows_count_alike(s),
         "`dp_leaf_noise`='output' is refused for this objective: the "
         "sensitivity of a leaf value is proved where every row counts the same. "
         "Add dp_leaf='gradient', or use 'laplace'.", PrivacyRefusal),
    _unit_weights("dp_score", "gain"),
    _unit_weights("dp_leaf_noise", "output"),
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
    Rule("the mean of a regression is corrected",
         lambda s: s["dp_mean_correction"] and (
             not s.corrects_mean or s["dp_accountant"] == "pure" or s["dp_ensemble"] > 1
             or s["dp_leaf_noise"] == "output" or s["subsample"] < 1.0
             or s["num_parallel_tree"] > 1 or s["dp_local"] or s["dp_secure_sum"]
             or s.additive),
         "`dp_mean_correction` is for squared error, counts and amounts of one target, whose "
         "rounds read all rows, with one tree a round and Gaussian noise. Leave it out with "
         "dp_accountant='pure', dp_leaf_noise='output', dp_ensemble, subsample, "
         "num_parallel_tree, dp_local, dp_secure_sum or additive rounds."),
    # which rows a round reads
    Rule("one choice of rows",
         lambda s: s["dp_ensemble"] > 1 and s["subsample"] != 1.0,
         "Give `dp_ensemble` or `subsample`, not both: either decides which rows a round reads."),
    Rule("halving needs an ensemble",
         lambda s: s["dp_ensemble_halving"] and s["dp_ensemble"] == 1,
         "`dp_ensemble_halving` has an effect with `dp_ensemble` only. Leave it out."),
    Rule("what local reports are",
         lambda s: (s["dp_local"] and not (s["dp_split"] == "random"
                    and s["dp_leaf_noise"] == "gaussian" and "dp_n_public" in s.given)),
         "`dp_local` needs dp_split='random', Gaussian leaves and `dp_n_public`, the number of "
         "people who report: their noise adds up."),
    Rule("local reports need base_score",
         lambda s: s["dp_local"] and "base_score" not in s.given,
         "`dp_local` needs a public `base_score`, because nobody sees the labels. Give one."),
    Rule("all rows report",
         lambda s: s["dp_local"] and (s["dp_ensemble"] > 1 or "subsample" in s.given),
         "`dp_local` lets every row report in every round. Leave `dp_ensemble` and `subsample` "
         "out."),
    # candidates
    Rule("one Hessian of a row",
         lambda s: s["dp_candidate_weight"] == "hessian" and s.trees_per_round > 1,
         "`dp_candidate_weight`='hessian' is refused for several classes or quantiles, each "
         "of which has its own. Use 'count'.", PrivacyRefusal),
    Rule("quantile trees are Gaussian",
         lambda s: s["dp_candidate_noise"] == "laplace" and s["dp_candidates"] == "quantile_tree",
         "`dp_candidate_noise`='laplace' needs dp_candidates='histogram' or 'adaptive': the "
         "quantile tree releases a number of counts for which Gaussian noise is better."),
    Rule("dp_approx releases always",
         lambda s: s["tree_method"] == "dp_approx" and s["dp_candidate_rounds"] != s.rounds,
         "tree_method='dp_approx' releases candidates for every tree. With `dp_candidate_rounds` "
         "use tree_method='dp_hist'."),
    Rule("Hessians of the rows of a round",
         lambda s: (s["dp_candidate_weight"] == "hessian" and (s["subsample"] < 1.0
                    or s["dp_ensemble"] > 1) and s["dp_candidate_rounds"] != s.rounds),
         "`dp_candidate_weight`='hessian' with `subsample` or `dp_ensemble` "
         "needs candidates in every round (tree_method='dp_approx'): all rounds "
         "must release the same from their rows. Use 'count', which reads all "
         "rows.", PrivacyRefusal),
    Rule("adaptive edges are those of bins",
         lambda s: s["dp_candidates"] == "adaptive" and s["dp_candidate_cells"] > s["max_bin"],
         "`dp_candidate_cells` is at most max_bin with dp_candidates='adaptive', which moves the "
         "edges of its bins. Lower it, or raise max_bin."),
    Rule("cells need histograms",
         lambda s: s["dp_candidates"] == "quantile_tree" and "dp_candidate_cells" in s.given,
         "`dp_candidate_cells` has an effect with noisy histograms only; the quantile tree has "
         "`dp_candidate_levels`."),
    # unit of privacy
    Rule("rows of persons",
         lambda s: "dp_rows_per_person" in s.given and s.unit == "row",
         "`dp_rows_per_person` has an effect with `dp_privacy_id` only: without it every row is a "
         "unit of privacy of its own. Leave it out, or give the ids."),
    Rule("score gain of rows",
         lambda s: s.unit == "person" and s["dp_score"] == "gain",
         "`dp_score`='gain' is refused with `dp_privacy_id`: its range is proved where every row "
         "counts one, and the rows of a person share what a person may count. Use 'l1' or "
         "'newton'.", PrivacyRefusal),
    Rule("output leaves of rows",
         lambda s: s.unit == "person" and s["dp_leaf_noise"] == "output",
         "`dp_leaf_noise`='output' is refused with `dp_privacy_id`: the sensitivity of a leaf "
         "value is proved where every row counts one, and the rows of a person share what a "
         "person may count. Use 'gaussian' or 'laplace'.", PrivacyRefusal),
    Rule("rows left out of rows",
         lambda s: s.unit == "person" and s["dp_gradient_clip"] == "filter",
         "`dp_gradient_clip`='filter' is refused with `dp_privacy_id`: it leaves rows out one by "
         "one. Use 'clip', or 'prediction' for classification.", PrivacyRefusal),
    Rule("reports of rows",
         lambda s: s.unit == "person" and s["dp_local"],
         "`dp_local` is refused with `dp_privacy_id`: every row has a report of its own. Give each "
         "person one row, and leave the ids out.", PrivacyRefusal),
    # bound of a row
    Rule("joint bound of classes",
         lambda s: s.kind == "multiclass" and s["dp_gradient_clip"] not in BALLS,
         "`dp_gradient_clip`={dp_gradient_clip!r} is refused for several classes: their joint "
         "bound is proved for 'prediction' and 'row_weight' only.", PrivacyRefusal),
    Rule("joint bound of outputs",
         lambda s: (s.loss is not None and s.trees_per_round > 1
                    and s["dp_gradient_clip"] != "prediction"),
         "`dp_gradient_clip`={dp_gradient_clip!r} is refused for several quantiles or targets: "
         "their joint bound is proved for 'prediction' only.", PrivacyRefusal),
    Rule("row weights of classes",
         lambda s: s.squared and s["dp_gradient_clip"] in BALLS,
         "`dp_gradient_clip`={dp_gradient_clip!r} is not for squared error. Use 'clip' "
         "or 'filter'."),
    Rule("a default bound that fits",
         lambda s: not _LEAST_BOUND <= s["dp_gradient_bound"] <= 1 / _LEAST_BOUND,
         "`dp_gradient_bound` would be {dp_gradient_bound} by default, from dp_max_weight and the "
         "parameters of {objective}. It must lie within 1e-6 and 1e6: choose a dp_max_weight "
         "nearer to 1, and scale the weights with it."),
    Rule("a clip of several targets that fits",
         lambda s: (s.kind == "regression" and s.labels > 1
                    and not CLIPS[0] <= TARGETS.clip(s) <= CLIPS[1]),
         "`dp_gradient_bound`={dp_gradient_bound} is the bound of all targets of a row: it "
         "clips the residual of each below 1e-9 or above 1000 half widths of its range. Leave it "
         "out for the default."),
    Rule("alpha in the unit of leaves",
         lambda s: s["alpha"] > _LARGEST_ALPHA * s.scale,
         "`alpha` must be at most 1e12 times half the width of dp_target_bounds; got {alpha}."),
    Rule("Hessians that count",
         lambda s: (_hessians_are_counted(s) and _COARSEST_GRID
                    * math.sqrt(s["dp_hessian_weight"]) < s["dp_gradient_bound"]),
         "`dp_hessian_weight` is too small for dp_score='gain' and dp_leaf_noise='output', which "
         "count rows by their Hessians: sqrt(r) must be at least C / 16. Leave it out for the "
         "default."),
    Rule("Hessians that fit the grid",
         lambda s: (s["dp_gradient_clip"] not in BALLS
                    and math.sqrt(s["dp_hessian_weight"]) * s.largest_hessian
                    > _LARGEST_HESSIAN * s["dp_gradient_bound"]),
         "`dp_hessian_weight` is too large for `dp_max_weight` and `dp_gradient_bound`: sqrt(r) "
         "* dp_max_weight must not exceed 60 C. Leave it out for the default."),
    # masked sums
    Rule("colluders of masked sums",
         lambda s: "dp_secure_colluders" in s.given and not s["dp_secure_sum"],
         "`dp_secure_colluders` has an effect with dp_secure_sum=True only. Leave it out."),
    Rule("keys of masked sums",
         lambda s: (not s["dp_secure_sum"]
                    and ("dp_secure_key" in s.given or "dp_secure_parties" in s.given)),
         "`dp_secure_key` and `dp_secure_parties` have an effect with dp_secure_sum=True only. "
         "Leave them out."),
    Rule("masked sums of several workers",
         lambda s: s["dp_secure_sum"] and s.workers < 2,
         "`dp_secure_sum` needs at least two workers that train together: join them with "
         "xgboost.collective.CommunicatorContext or Dask, or leave it out."),
    _masked("are no sums over persons", lambda s: s.unit == "person",
            "`dp_privacy_id`: workers that do not trust each other cannot compare their ids, and a "
            "person with rows on two of them would count twice. Bound the rows of a person before, "
            "and give `dp_group`."),
    _masked("need no selections",
            lambda s: s["dp_split"] == "exponential",
            "dp_split='exponential': the exponential mechanism needs the exact sums at one "
            "worker. Use dp_split='random', 'partial' or 'histogram'."),
    _masked("have Gaussian leaves",
            lambda s: s["dp_leaf_noise"] != "gaussian",
            "dp_leaf_noise={dp_leaf_noise!r}: " + _GAUSSIAN_SHARES),
    _masked("have Gaussian candidates",
            lambda s: s["dp_candidate_noise"] != "gaussian",
            "dp_candidate_noise='laplace': " + _GAUSSIAN_SHARES),
    _masked("are no reports",
            lambda s: s["dp_local"],
            "dp_local, whose rows report by themselves. Leave one of them out."),
    _masked("read all rows",
            lambda s: s["subsample"] != 1.0,
            "`subsample` below 1: amplification by sampling is not proved for masked sums. Leave "
            "it out."),
    _masked("are no sums by column",
            lambda s: s.starts_from_columns,
            "dp_start='columns', whose sums have no masks. Leave it out."),
    Rule("masked sums of known parties",
         lambda s: s["dp_secure_sum"] and None in (s["dp_secure_key"], s["dp_secure_parties"]),
         "`dp_secure_sum` needs `dp_secure_key` and `dp_secure_parties`, so that nobody else can "
         "take the place of a worker: each party makes a key with `ssh-keygen -t ed25519 -N '' -C "
         "NAME -f FILE`, keeps FILE, and sends FILE.pub to the others."),
)
# fmt: on
"""All rules, in the order in which they are checked."""
