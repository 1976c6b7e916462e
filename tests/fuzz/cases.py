"""One random call of a public entry point, made from a seed and a number."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import xgboost as xgb
from xgboost.callback import EarlyStopping, EvaluationMonitor, LearningRateScheduler

import xgb_dp
from xgb_dp.presets import PRESETS
from xgb_dp.request.names import REFUSED
from xgb_dp.request.params import PARAMETERS

from .inputs import Rows, rows
from .values import absurd, mutated, name

__all__ = ["Case", "make"]

OBJECTIVES = {
    "binary": ("binary:logistic", "binary:logitraw"),
    "regression": (
        "reg:squarederror",
        "reg:squarederror",
        "reg:logistic",
        "reg:absoluteerror",
        "reg:quantileerror",
        "reg:pseudohubererror",
        "reg:squaredlogerror",
        "count:poisson",
        "reg:gamma",
        "reg:tweedie",
        "survival:aft",
    ),
    "multiclass": ("multi:softprob", "multi:softmax"),
}
BOUNDS = {
    "reg:logistic": (0.0, 1.0), "reg:squaredlogerror": (-0.5, 3.0), "count:poisson": (0.0, 3.0),
    "reg:gamma": (0.0, 3.0), "reg:tweedie": (0.0, 3.0), "survival:aft": (0.01, 3.0),
}  # fmt: skip
# Right values that keep a training small.
VALID: dict[str, tuple[Any, ...]] = {
    "dp_epsilon": (0.1, 1.0, 1, 8.0, 50.0, float("inf")), "dp_delta": (1e-6, 1e-9, 0.01),
    "dp_group_size": (1, 2, 7), "dp_preset": tuple(PRESETS),
    "dp_accountant": ("exact", "rdp", "gdp", "classic", "pure"),
    "dp_budget_shares": ({"candidates": 0.1, "base_score": 0.1, "splits": 0.3, "leaves": 0.5},
                         {"leaves": 0.9}),
    "dp_gradient_bound": (0.5, 1.0, 3.0),
    "dp_gradient_clip": ("prediction", "row_weight", "clip", "filter"),
    "dp_hessian_weight": (0.25, 1.0), "dp_max_weight": (1.0, 2.5), "dp_base_margin": (True, False),
    "dp_public_num_rows": (1, 40, 10**6),
    "dp_target_bounds": ((-3.0, 3.0), [0, 1], (0.01, 9.0), (0, 1e-12), (0.5, 1e30)),
    "dp_exposure_bounds": ((0.01, 1.0), (1e-12, 1e12)),
    "quantile_alpha": (0.5, [0.1, 0.5, 0.9], 1e-12), "huber_slope": (0.1, 1e-3, 1e6),
    "tweedie_variance_power": (1.5, 1.0001), "aft_loss_distribution_scale": (0.001, 1.0, 1000.0),
    "aft_loss_distribution": ("normal", "logistic", "extreme"),
    "dp_candidates": ("quantile_tree", "histogram", "adaptive"), "dp_candidate_rounds": (1, 2, 3),
    "dp_candidate_weight": ("count", "hessian"), "dp_candidate_noise": ("gaussian", "laplace"),
    "dp_candidate_cells": (2, 64, 256), "dp_classes": (2, 3, [0, 1], [0, 1, 2]),
    "dp_feature_bounds": ({0: (-3, 3)}, {0: (-3, 3), 1: (0.1, 9, "log")}, {"c1": (-3, 3)}),
    "dp_feature_cuts": ({0: [0.0]}, {"c1": [-1, 0, 1]}, {0: []}),
    "dp_categories": ({0: 2}, {"c0": ["down", "up"]}, {"c0": 5}),
    "dp_split": ("exponential", "random", "partial", "histogram"),
    "dp_leaf": ("newton", "gradient"), "dp_leaf_noise": ("gaussian", "laplace", "output"),
    "dp_start": ("intercept", "columns"), "dp_eta_warmup": (0.001, 0.2, 1.0),
    "dp_geometric_clip": (True, False), "dp_ensemble": (1, 2, 3),
    "dp_features_per_tree": (1, 2), "dp_feature_order": ("random", "cyclic"),
    "dp_score": ("l1", "newton", "gain"), "dp_score_clip": (0.5, 2.0),
    "dp_tree_shape": ("alternate", "per_node", "oblivious"), "dp_split_levels": (1, 2, 3, 4),
    "dp_split_candidates": (1, 16, 64), "dp_split_prior": (0, 0.5, 0.999),
    "dp_no_split": (True, False), "dp_shrinkage": (True, False),
    "dp_shrinkage_strata": (True, False), "dp_shrinkage_noise": (1.0, 0.01),
    "dp_candidate_levels": (2, 9, 17),
    "dp_secure_aggregation": (False, True), "dp_secure_colluders": (0, 1),
    "dp_secure_key": ("key",), "dp_secure_parties": ("parties",),
    "dp_public_evals": (True, False), "tree_method": ("dp_hist", "dp_approx", "hist"),
    "objective": (*(o for both in OBJECTIVES.values() for o in both), "rank:ndcg"),
    "eta": (0.1, 0.5, 1.0), "max_depth": (1, 2, 4, 6), "lambda": (0, 1.0, 10), "alpha": (0.0, 1.0),
    "subsample": (0.5, 0.9, 1.0), "num_parallel_tree": (1, 2, 3), "colsample_bytree": (0.5, 1.0),
    "monotone_constraints": ((1, 0, 0), "(1,0,0)", {"c1": -1}, "[1,-1,0]", [0]),
    "interaction_constraints": ([[0, 1]], "[[0, 1], [2]]", [["c0", "c1"]], []),
    "max_delta_step": (0, 0.7, 2.0), "gamma": (0, 0.1), "min_child_weight": (0.0, 1.0),
    "max_bin": (2, 16, 64, 256), "base_score": (0.5, 0.0, 1e40, 1e-46, [0.1, 0.2, 0.3]),
    "num_class": (2, 3),
    "scale_pos_weight": (1.0, 2.0), "eval_metric": ("auc", "error", ["rmse", "mae"], "mlogloss"),
    "disable_default_eval_metric": (True, 0), "nthread": (1, 2), "verbosity": (0, 1),
    "seed": (0, 7), "seed_per_iteration": (True, False), "validate_parameters": (True, False),
}  # fmt: skip


@dataclass
class Case:
    """One call.

    Attributes:
        call: Runs it; returns a model, a selection, or None.
        text: The call in words, for people.
        is_private: Whether the parameters ask for privacy by a name that is known.
        params: The parameters, to judge the result by.
        budget: The budget file that the call draws on.
        stock: Whether the arguments name no private parameter, so that XGBoost alone answers.
    """

    call: Callable[[], Any]
    text: str
    is_private: bool
    params: dict[Any, Any]
    budget: Path | None = None
    stock: bool = False


def parameters(rng: Random, data: Rows) -> dict[Any, Any]:
    """Private parameters of which some are wrong."""
    given: dict[Any, Any] = {
        "tree_method": "dp_hist", "dp_epsilon": rng.choice((0.5, 1.0, 4.0)), "dp_delta": 1e-6,
        "objective": rng.choice(OBJECTIVES[data.kind]), "max_depth": rng.choice((1, 2, 3)),
        "nthread": 1,
    }  # fmt: skip
    if data.kind == "regression":
        given["dp_target_bounds"] = BOUNDS.get(given["objective"], (-3.0, 3.0))
    if data.kind == "multiclass":
        given["num_class"] = 3
    known = [*VALID, *rng.sample(list(REFUSED), 3)]
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 2, 3, 5))):
        key: Any = rng.choice(known)
        right = rng.choice(VALID.get(key, ("gbtree", 1, "depthwise", 0.5)))
        kind = rng.random()
        if kind < 0.45:
            given[key] = right
        elif kind < 0.7:
            given[key] = mutated(rng, right)
        elif kind < 0.92:
            given[key] = absurd(rng)
        elif kind < 0.96:
            given[name(rng, key)] = right
        else:
            given.pop(key, None)
    if _takes_hours(given.get("num_parallel_tree")):
        given["num_parallel_tree"] = 3
    return given


def _takes_hours(count: Any) -> bool:
    """Whether a number of trees is right, and so large that a training would take hours."""
    try:
        return 9 < float(count) <= 1 << 20
    except (TypeError, ValueError, OverflowError):
        return False


def show(value: Any) -> str:
    """A short text of any value."""
    try:
        text = ascii(value)
    except Exception:  # what cannot be shown is a value too
        return f"<{type(value).__name__}>"
    return text if len(text) < 300 else f"{text[:200]}...({len(text)} characters)"


def _rounds(rng: Random) -> Any:
    if rng.random() < 0.85:
        return rng.choice((1, 2, 3))
    wrong = absurd(rng)
    return -3 if _takes_hours(wrong) else wrong


def _callbacks(rng: Random) -> Any:
    return rng.choice(
        ([EvaluationMonitor()], [LearningRateScheduler(lambda _: 0.1)], [EarlyStopping(2)], [],
         (), [None], [object()], [int], 5, "x", [lambda _: None])
    )  # fmt: skip


def _evals(rng: Random, dtrain: Any, data: Rows) -> Any:
    def other(cls: Any = xgb.DMatrix, **keywords: Any) -> Any:
        X = np.zeros((4, data.columns if rng.random() < 0.8 else 2), np.float32)
        y = np.array([0, 1, 0, 1]) if rng.random() < 0.8 else None
        return cls(X, y, **keywords)

    kind = rng.randrange(8)
    if kind < 3:
        return [(other(), "public")]
    if kind == 3:
        return [(dtrain, "train")]
    if kind == 4:
        return [(other(xgb.QuantileDMatrix, ref=rng.choice((None, dtrain))), "public")]
    return rng.choice(
        ([other()], [(other(),)], [(other(), 5)], [(1, "x")], "x", 5, [(other(), "a", "b")],
         other(), {"a": other()}, [None], [(other(), "\ud800")], [(None, "x")])
    )  # fmt: skip


def _more(rng: Random, dtrain: Any, data: Rows, params: dict[Any, Any]) -> dict[str, Any]:
    """Further arguments of ``xgboost.train``."""
    more: dict[str, Any] = {}
    if rng.random() < 0.12:
        more["evals"] = _evals(rng, dtrain, data)
        more["verbose_eval"] = False
        if rng.random() < 0.7:
            params["dp_public_evals"] = True
        if rng.random() < 0.3:
            more["early_stopping_rounds"] = rng.choice((1, 0, -1, 2.5, "x", None))
    if rng.random() < 0.05:
        more["callbacks"] = _callbacks(rng)
    if rng.random() < 0.04:
        more["obj"] = rng.choice((lambda p, d: (p, p), "x", 5))
    if rng.random() < 0.03:
        more["custom_metric"] = rng.choice((lambda p, d: ("m", 0.0), "x", 5))
    if rng.random() < 0.03:
        more["maximize"] = absurd(rng)
    if rng.random() < 0.1:
        more["xgb_model"] = _start(rng, data)
    return more


def _start(rng: Random, data: Rows) -> Any:
    """A model to continue: a private one, others, or none."""
    kind = rng.randrange(8)
    X = np.zeros((4, data.columns), np.float32)
    d = xgb.DMatrix(X, np.array([0, 1, 0, 1]), feature_names=data.names)
    given = {"tree_method": "dp_hist", "objective": OBJECTIVES[data.kind][0], "dp_epsilon": 1.0,
           "dp_delta": 1e-6, "nthread": 1}  # fmt: skip
    given |= {"regression": {"dp_target_bounds": (0, 1)}, "multiclass": {"num_class": 3}}.get(
        data.kind, {}
    )
    if kind < 4:
        private = xgb.train(given, d, 1)
        raw = private.save_raw()
        if kind == 0:
            return private
        if kind == 1:
            return raw
        if kind == 2:
            return raw[: rng.randrange(len(raw))]
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        return raw
    if kind == 4:
        return xgb.train({"nthread": 1}, d, 1)
    return rng.choice(("nothing.json", "", b"", bytearray(b"{}"), bytearray(), 5, "\0", "\ud800"))


def make(seed: int, number: int, folder: Path) -> Case:
    """Case `number` of a seed. Building the rows may raise whatever XGBoost raises."""
    rng = Random(f"{seed}:{number}")
    data = rows(rng)
    params = parameters(rng, data)
    entry = rng.choices(("train", "estimator", "select", "calibrate"), (70, 18, 8, 4))[0]
    return {"train": _train, "estimator": _estimator, "select": _select, "calibrate": _plan}[entry](
        rng, data, params, folder
    )


def _asked(params: dict[Any, Any]) -> bool:
    private = any(isinstance(k, str) and k in PARAMETERS and k.startswith("dp_") for k in params)
    method = params.get("tree_method")
    return private or (isinstance(method, str) and method in ("dp_hist", "dp_approx"))


def _train(rng: Random, data: Rows, params: dict[Any, Any], folder: Path) -> Case:
    dtrain = xgb.DMatrix(data.X, data.y, **data.keywords) if rng.random() < 0.98 else absurd(rng)
    if params.get("objective") == "survival:aft" and isinstance(dtrain, xgb.DMatrix):
        dtrain.set_label(None)
        times = np.linspace(0.0, 4.0, data.n)
        dtrain.set_float_info("label_lower_bound", times)
        dtrain.set_float_info("label_upper_bound", np.where(times > 2, np.inf, times))
    rounds, more = _rounds(rng), _more(rng, dtrain, data, params)
    given: Any = params
    stock = False
    if rng.random() < 0.05:
        given = rng.choice((list(params.items()), tuple(params), None, "x", 5, [("a",)], [1]))
        stock = not (isinstance(given, list) and len(given) > 1)
        rounds = 1 if stock else rounds
    budget = path = None
    if rng.random() < 0.15:
        path = folder / "budget.json"
        path.unlink(missing_ok=True)
        budget = xgb_dp.Budget(path, epsilon=10.0, delta=1e-3)

    def call() -> Any:
        if budget is not None:
            return budget.train(given, dtrain, rounds, **more)
        return xgb.train(given, dtrain, rounds, **more)

    text = f"train({show(given)}, {type(data.X).__name__}, {show(rounds)}, {show(more)})"
    return Case(call, text, _asked(params) and given is params, params, path, stock)


def _estimator(rng: Random, data: Rows, params: dict[Any, Any], folder: Path) -> Case:
    del folder
    classifies = data.kind != "regression" if rng.random() < 0.95 else rng.random() < 0.5
    given: dict[str, Any] = {k: v for k, v in params.items() if isinstance(k, str)}
    given = {{"lambda": "reg_lambda", "nthread": "n_jobs"}.get(k, k): v for k, v in given.items()}
    for key in ("objective", "num_class"):
        if rng.random() < 0.9:
            given.pop(key, None)
    given["n_estimators"] = _rounds(rng)
    private = rng.random() < 0.7
    if private:
        renamed = ("epsilon", "delta", "target_bounds")
        given = {k.removeprefix("dp_") if k[3:] in renamed else k: v for k, v in given.items()}
        if not classifies:
            given.setdefault("target_bounds", (-3, 3))
        else:
            given.pop("target_bounds", None)
            given["classes"] = rng.choice((2, 3, ["a", "b"], [0, 1, 2], absurd(rng)))
    elif classifies:
        given.setdefault("dp_classes", 3 if data.kind == "multiclass" else 2)
    cls: Any = {
        (True, True): xgb_dp.DPXGBClassifier, (True, False): xgb_dp.DPXGBRegressor,
        (False, True): xgb.XGBClassifier, (False, False): xgb.XGBRegressor,
    }[private, classifies]  # fmt: skip
    fit: dict[str, Any] = {}
    if "weight" in data.keywords:
        fit["sample_weight"] = data.keywords["weight"]
    if rng.random() < 0.1:
        fit["eval_set"] = rng.choice(([(data.X, data.y)], 5, [(1,)], [(absurd(rng), data.y)]))
        fit["verbose"] = False

    def call() -> Any:
        model = cls(**given).fit(data.X, data.y, **fit)
        if data.n:
            model.predict(data.X)
        return model.get_booster()

    text = f"{cls.__name__}(**{show(given)}).fit({type(data.X).__name__}, {show(list(fit))})"
    is_private = private or _asked(given)
    return Case(
        call,
        text,
        is_private,
        {**params, **given, "dp_epsilon": given.get("epsilon", given.get("dp_epsilon"))},
    )


def _select(rng: Random, data: Rows, params: dict[Any, Any], folder: Path) -> Case:
    del folder
    dtrain = xgb.DMatrix(data.X, data.y, **data.keywords)
    given = {
        k: v for k, v in params.items() if rng.random() < 0.1 or k not in ("dp_epsilon", "dp_delta")
    }
    settings = rng.choice(
        ([{}], [{}, {"max_depth": 1}], {"max_depth": [1, 2]}, [{"eta": 0.5, "dp_score": "newton"}],
         {"max_depth": 2}, [], {}, absurd(rng), [absurd(rng)], [{name(rng, "eta"): 1}])
    )  # fmt: skip
    more: dict[str, Any] = {"epsilon": rng.choice((1.0, 4.0)), "delta": 1e-6, "num_boost_round": 2}
    if rng.random() < 0.4:
        key = rng.choice(
            ("epsilon", "delta", "num_boost_round", "score", "mean_runs", "repetitions",
             "validation", "budget", "note")
        )  # fmt: skip
        value = _rounds(rng) if key == "num_boost_round" else absurd(rng)
        slow = key == "mean_runs" and isinstance(value, (int, float)) and value > 5
        more[key] = 2.0 if slow else value

    def call() -> Any:
        return xgb_dp.select(given, dtrain, settings, **more).booster

    text = f"select({show(given)}, {type(data.X).__name__}, {show(settings)}, {show(more)})"
    return Case(call, text, True, {**params, "dp_epsilon": more["epsilon"]})


def _plan(rng: Random, data: Rows, params: dict[Any, Any], folder: Path) -> Case:
    """The command line's calibration, whose parameters are texts."""
    from click.testing import CliRunner

    from xgb_dp.cli.commands import cli

    del folder
    shared = ("dp_epsilon", "dp_delta", "objective", "num_class", "dp_target_bounds", "tree_method")
    arguments = ["calibrate", "--epsilon", "1", "--delta", "1e-6", "--rounds", "2"]
    arguments += ["--columns", str(data.columns)]
    arguments += {
        "binary": ["--classes", "0,1"], "multiclass": ["--classes", "a,b,c"],
        "regression": ["--target-bounds", "0", "1"],
    }[data.kind]  # fmt: skip
    for key, value in params.items():
        if key not in shared or rng.random() < 0.1:
            arguments += ["--param", f"{show(key).strip(chr(39))}={show(value).strip(chr(39))}"]

    def call() -> Any:
        result = CliRunner().invoke(cli, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if "Unexpected " in result.output:
            raise AssertionError(result.output)

    return Case(call, f"xgb-dp {show(arguments)}", False, params)
