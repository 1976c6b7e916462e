"""The C++ grows the same trees as the oracle with losses of its own."""

from typing import Any

import numpy as np
import pytest

from tests.reference.comparison import LOGISTIC, MIXED, SHAPES, SQUARED, check, make_data, make_plan
from tests.reference.plans import Plan, merge

QUANTILES = {
    "first_width": "2.0",
    "last_width": "0.5",
    "width_decay": "0.8",
    "centre_rounds": 0,
    "centre_scale": "1.0",
    "centre_width": "1.0",
}
CENTRED = QUANTILES | {"centre_rounds": 2, "centre_scale": "1.25", "centre_width": "1.5"}
BOUND = {"hessian_weight": "0.3", "scale": "1.0", "target_lower": "-4.0", "target_upper": "4.0"}
POWER = {"name": "power", "mean": "0.8", "cap": "2.5", "capped_mean": "0.7", "start": "0.0"}
POSITIVE = {"target_lower": "0.0"}
TIMES = {"target_lower": "0.05"}


def aft(distribution: str, scale: str) -> tuple[str, dict[str, Any], Plan, str]:
    """Failure times of a distribution."""
    extra = {"aft_loss_distribution": distribution, "aft_loss_distribution_scale": scale}
    loss = {"name": "survival", "distribution": distribution, "scale": scale}
    return "survival:aft", extra, loss, "1.0"


# tanh(margin - label) with a Hessian of at least 0.1, and 0.1 where labels are below -1.
TANH = [["margin"], ["label"], ["sub", 0, 1], ["number", "1.0"], ["tanh", 2], ["mul", 4, 4],
        ["sub", 3, 5], ["number", "0.1"], ["max", 6, 7], ["number", "-1.0"],
        ["lt", 1, 9], ["where", 10, 7, 8]]  # fmt: skip
# Name of the objective, parameters of XGBoost, loss, C.
LOSSES: dict[str, tuple[str, dict[str, Any], Plan, str]] = {
    "absolute": ("reg:absoluteerror", {}, {"name": "quantile", "levels": ["0.5"], **QUANTILES},
                 "0.5"),
    "quantile": ("reg:quantileerror", {"quantile_alpha": 0.8},
                 {"name": "quantile", "levels": ["0.8"], **QUANTILES}, "0.6"),
    "quantiles": ("reg:quantileerror", {"quantile_alpha": [0.1, 0.5, 0.9]},
                  {"name": "quantile", "levels": ["0.1", "0.5", "0.9"], **QUANTILES}, "0.9"),
    # The median first: its rows are bounded by less than C, or are shortened to it.
    "centred": ("reg:quantileerror", {"quantile_alpha": 0.8},
                {"name": "quantile", "levels": ["0.8"], **CENTRED}, "0.6"),
    "all_centred": ("reg:quantileerror", {"quantile_alpha": [0.1, 0.5, 0.9]},
                    {"name": "quantile", "levels": ["0.1", "0.5", "0.9"], **CENTRED}, "0.9"),
    "poisson": ("count:poisson", {}, POWER | {"power": "1.0"}, "1.0"),
    "tweedie": ("reg:tweedie", {"tweedie_variance_power": 1.3}, POWER | {"power": "1.3"}, "1.0"),
    "gamma": ("reg:gamma", {}, POWER | {"power": "2.0"}, "1.0"),
    "normal": aft("normal", "0.7"),
    "logistic": aft("logistic", "1.0"),
    "extreme": aft("extreme", "1.6"),
    "pseudo_huber": ("reg:pseudohubererror", {"huber_slope": 1.5},
                     {"name": "pseudo_huber", "slope": "1.5"}, "0.9"),
    "squared_log": ("reg:squaredlogerror", {}, {"name": "squared_log", "clip": "0.4"}, "1.2"),
    "shares": ("reg:logistic", {}, {"name": "logistic"}, "0.5"),
    "targets": (SQUARED, {}, {"name": "targets", "clip": "0.3", "lower": ["-4.0", "0.0", "-2.5"],
                              "upper": ["4.0", "0.5", "1.5"]}, "0.5"),
    "labels": (LOGISTIC, {}, {"name": "labels", "count": 3}, "0.8"),
    "program": (SQUARED, {}, {"name": "program", "unit": "2.0", "gradient": 4, "hessian": 11,
                              "program": TANH}, "1.0"),
}  # fmt: skip
RANGES = {"squared_log": (0.0, 4.0), "shares": (0.0, 1.0)}
COLUMNS = ("targets", "labels")
"""Losses with a column of labels for each output."""


def outputs_of(loss: Plan) -> int:
    """Trees of a round."""
    return int(loss.get("count", len(loss.get("levels", loss.get("lower", [0])))))


def plan_of(name: str, noise_free: bool, **changes: Any) -> tuple[Plan, dict[str, Any]]:
    """A hand-made plan for a loss, and what XGBoost is told besides."""
    objective, extra, loss, largest = LOSSES[name]
    outputs = outputs_of(loss)
    low, high = RANGES.get(name, (-4.0, 4.0))
    mode = "row_weight" if name == "program" else "prediction"
    bound = BOUND | {"mode": mode, "gradient_bound": largest}
    bound |= {"target_lower": repr(low), "target_upper": repr(high)}
    if loss["name"] == "power":
        bound |= POSITIVE
    if loss["name"] == "survival":
        bound |= TIMES | {"mode": "row_weight"}
    plan = make_plan(objective, noise_free, MIXED, num_class=outputs, loss=loss, row_bound=bound)
    if name == "all_centred":
        plan |= {"class_trees": "joint", "score": "l1"}
    return merge(plan, changes), extra


def data(name: str, weighted: bool = False) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Rows for MIXED, some with labels beyond the declared range; weights up to 2.5, or none."""
    X, y = make_data(SQUARED)
    rng, more = np.random.default_rng(2), {}
    weight = rng.uniform(0, 2.5, len(y)).astype(np.float32)
    if name in RANGES:
        y = np.abs(y) if name == "squared_log" else 1 / (1 + np.exp(-y))
        y = y.astype(np.float32)
    if name == "targets":
        y = np.stack([y, np.abs(y) / 8, rng.normal(size=len(y))], axis=1).astype(np.float32)
    if name == "labels":
        y = (np.stack([y, -y - 1, rng.normal(size=len(y))], axis=1) > 0).astype(np.float32)
    if LOSSES[name][2]["name"] in ("power", "survival"):
        y = (
            np.exp(y / 2)
            if name == "gamma"
            else np.maximum(y, 0)
            if name != "poisson"
            else np.floor(np.exp(y / 2))
        )
        y = y.astype(np.float32)
    if name in ("normal", "logistic", "extreme"):
        y = np.exp(y).astype(np.float32)
        kind = rng.integers(0, 4, len(y))  # seen, not seen, within an interval, at first
        y[kind == 3] = 0.0
        ends = [y, np.full(len(y), np.inf), 1.5 * y + 0.01, y + 2.0]
        more["upper"] = np.choose(kind, ends).astype(np.float32)
    return (X, y, weight if weighted else None), more


@pytest.mark.parametrize("noise_free", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", LOSSES)
def test_trees(name, shape, noise_free):
    plan, extra = plan_of(name, noise_free, shape=shape)
    rows, more = data(name)
    model = check(plan, *rows, **more, **extra)
    assert any(left != -1 for tree in model.trees for left in tree["left"])


# Below what the worst rows have.
OF_OUTPUT = {"output_gradient": "0.2", "output_hessian": "0.3"}
CASES: dict[str, Plan] = {
    "joint": {"class_trees": "joint"},
    "clip": {"row_bound": {"mode": "clip"}},
    "row_weight": {"row_bound": {"mode": "row_weight"}},
    "counts": {"row_bound": {"unit_hessian": True}},
    "unbounded_weights": {"row_bound": {"max_weight": "0"}},
    "sampled": {"sampling_num": 3 << 30},
    "parallel": {"parallel_trees": 2},
    "strata": {"leaf": {"strata": True}},
    "two_levels": {"split_levels": 2},
    "rising_steps": {"leaf": {"eta_warmup": "0.2", "eta": "0.8"}},
    "laplace": {"leaf": {"noise": "laplace", "sigma2": 0, "scale": 1 << 17}},
    "outputs": {"row_bound": OF_OUTPUT},
    "outputs_newton": {"row_bound": OF_OUTPUT, "score": "newton"},
}


NOISY = ("outputs", "outputs_newton")
"""Cases whose selections are drawn, because the range is of interest."""
AFTER = ("sampled", "parallel", "strata", "two_levels", "rising_steps")
"""Cases of what comes after the pairs of rows, and knows no loss: a third of the losses each."""


def is_covered(name: str, case: str) -> bool:
    """Whether a loss is compared in a case: where its outputs and its clip have it."""
    plan, _ = plan_of(name, True, **CASES[case])
    predicted, several = plan["row_bound"]["mode"] == "prediction", plan["num_class"] > 1
    if case in AFTER and (list(LOSSES).index(name) + AFTER.index(case)) % 3:
        return False
    if (case in NOISY or several) and not predicted:
        return False  # clips of outputs, and of all of them together, are those by predictions
    if case == "joint" and not several:
        return False
    return plan["class_trees"] != "joint" or plan["score"] == "l1"


@pytest.mark.parametrize(
    ("name", "case"), [(n, c) for n in LOSSES for c in CASES if is_covered(n, c)]
)
def test_choices(name, case):
    drawn = case in ("sampled", "laplace", *NOISY)  # coins and scales are noise
    plan, extra = plan_of(name, not drawn, **CASES[case])
    rows, more = data(name, weighted=True)
    check(plan, *rows, **more, **extra)


@pytest.mark.parametrize(("spread", "of_output"), [(False, {}), (True, {}), (False, OF_OUTPUT)])
@pytest.mark.parametrize("name", LOSSES)
def test_persons(name, spread, of_output):
    plan, extra = plan_of(
        name, not of_output, unit="person", row_bound={"max_rows_per_person": "1.5"} | of_output,
        leaf={"spread": spread},
    )  # fmt: skip
    if of_output and plan["row_bound"]["mode"] != "prediction":
        pytest.skip("outputs have bounds of their own in the clip by predictions alone")
    if spread and plan["num_class"] > 1:
        pytest.skip("persons spread over the leaves of one structure")
    (X, y, weight), more = data(name, weighted=True)
    who = np.random.default_rng(4).integers(0, 90, len(y))
    who = np.unique(who, return_inverse=True)[1]
    check(plan, X, y, weight, persons=who, **more, **extra)


@pytest.mark.parametrize("noise_free", [True, False])
@pytest.mark.parametrize("name", ["poisson", "tweedie", "gamma"])
def test_means_are_corrected_by_a_factor(name, noise_free):
    sigma2 = 0 if noise_free else 1 << 36
    plan, extra = plan_of(name, noise_free, correction={"on": True, "sigma2": sigma2})
    rows, _ = data(name, weighted=True)
    check(plan, *rows, **extra)


@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_the_first_tree_starts_margins_of_rows(name):
    plan, extra = plan_of(name, True, base_margin=True, loss={"start": "1.25"})
    rows, _ = data(name)
    margins = np.random.default_rng(7).normal(-1, 0.5, len(rows[1])).astype(np.float32)
    without = check(plan, *rows, base_margin=margins, **extra)
    plan["correction"]["on"] = True
    corrected = check(plan, *rows, base_margin=margins, **extra)
    assert not np.array_equal(without.margin, corrected.margin)
