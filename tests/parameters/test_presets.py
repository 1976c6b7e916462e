"""Published systems by name: they train, spend what they say, and explicit keys override them."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xgboost as xgb
from sklearn.metrics import roc_auc_score

import xgb_dp
from xgb_dp import presets
from xgb_dp.errors import PrivacyParameterError, RowDomainError
from xgb_dp.parameters.parameter import Table
from xgb_dp.presets import SYSTEMS
from xgb_dp.published import sarus
from xgb_dp.request.params import PARAMETERS

BOUNDS = dict.fromkeys(range(4), (-4.0, 4.0))


def data(kind: str = "binary", n: int = 3000) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    signal = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 0] + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, (signal > 0).astype(np.float32) if kind == "binary" else signal.astype(np.float32)


def params(name: str, kind: str = "binary", **changes: Any) -> dict[str, Any]:
    out: dict[str, Any] = {
        "dp_preset": name,
        "tree_method": "dp_hist",
        "dp_epsilon": 8.0,
        "dp_feature_bounds": BOUNDS,
        "objective": "binary:logistic" if kind == "binary" else "reg:squarederror",
        "nthread": 1,
    }
    if kind == "regression":
        out["dp_target_bounds"] = (-5.0, 5.0)
    if presets.PRESETS[name].params.get("dp_accountant") != "pure":
        out["dp_delta"] = 1e-6
    return out | changes


def rounds(name: str) -> int:
    return 1 if name == "dp_rf" else 12


@pytest.mark.parametrize("kind", ["binary", "regression"])
@pytest.mark.parametrize("name", list(presets.PRESETS))
def test_presets_train_and_spend_the_budget(name, kind):
    X, y = data(kind)
    booster = xgb.train(params(name, kind), xgb.DMatrix(X, y), rounds(name))
    report = xgb_dp.privacy_report(booster)
    assert report.private
    (training,) = report.ledger["trainings"]
    assert "drawn" not in training  # all that was planned was drawn, and nothing else
    assert training["public"]["hyperparameters"]["preset"] == name
    accountant = presets.PRESETS[name].params.get("dp_accountant", "exact")
    spent = report.get_epsilon(report.delta, accountant=accountant)
    assert report.epsilon <= spent + 1e-9 <= 8.0 + 1e-8
    assert spent >= 0.99 * 8.0
    assert report.get_epsilon(report.delta, 2) > report.epsilon
    predicted = booster.predict(xgb.DMatrix(X))
    assert np.isfinite(predicted).all()
    assert np.unique(predicted).size > 1


@pytest.mark.parametrize(
    ("name", "least"),
    [("default", 0.97), ("dp_xgb", 0.93), ("dp_xgb_ada", 0.93), ("dp_tr_ada", 0.85),
     ("feverless", 0.85), ("dp_pr", 0.85), ("dp_rf", 0.78), ("dp_ebm_newton", 0.8), ("sarus", 0.7)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_presets_learn(name, least):
    """At least 7 standard deviations below the mean of each; that of `dp_rf` is 0.0105."""
    X, y = data(n=6000)
    n = 1 if name == "dp_rf" else 36
    booster = xgb.train(params(name, dp_epsilon=30.0), xgb.DMatrix(X, y), n)
    assert roc_auc_score(y, booster.predict(xgb.DMatrix(X))) > least


def mechanisms(name: str, **changes: Any) -> dict[str, str]:
    X, y = data(n=400)
    booster = xgb.train(params(name, **changes), xgb.DMatrix(X, y), rounds(name))
    (training,) = xgb_dp.privacy_report(booster).ledger["trainings"]
    flat = [e for event in training["events"] for e in event.get("events", [event])]
    outer = {e["mechanism"]: "" for e in training["events"] if "events" in e}
    return {e["release"]: e["mechanism"] for e in flat} | outer


def test_systems_are_made_of_their_parts():
    laplace = {"candidates": "laplace", "splits": "exponential", "leaves": "laplace"}
    splits, leaves = {"splits": "exponential"}, {"leaves": "gaussian"}
    gaussian = {"candidates": "gaussian"} | leaves
    histograms = {"histograms": "gaussian"}
    for name, expected in {
        "sarus": laplace | {"poisson": ""}, "seq": splits | {"leaves": "laplace"},
        "dpboost": splits | {"leaves": "laplace", "parallel": ""}, "dp_xgb": splits | leaves,
        "dp_tr": leaves, "dp_tr_ada": gaussian, "dp_ebm": gaussian, "feverless": histograms,
        "dp_pr": histograms,
    }.items():  # fmt: skip
        assert mechanisms(name) == expected
    # Explicit keys override.
    assert mechanisms("sarus", subsample=1.0) == laplace
    exact = {"dp_split": "exponential", "dp_accountant": "exact"}
    assert mechanisms("dp_tr", **exact) == splits | leaves
    X, y = data(n=400)
    deep = xgb.train(params("dp_tr", max_depth=2), xgb.DMatrix(X, y), 2)
    assert json.loads(deep.get_dump(dump_format="json")[0])["depth"] == 0
    assert max(d.count("depth") for d in deep.get_dump(dump_format="json")) <= 3


@pytest.mark.parametrize(
    ("name", "changes"), [("dpboost", {}), ("dp_tr", {"dp_accountant": "exact"})]
)
def test_cost_of_an_ensemble_is_that_of_one_tree(name, changes):
    """The trees read disjoint rows: five times the trees, the same noise on each."""
    X, y = data(n=500)
    noise = []
    for n in (4, 20):
        booster = xgb.train(params(name, dp_ensemble=n, **changes), xgb.DMatrix(X, y), n)
        (event,) = xgb_dp.privacy_report(booster).ledger["trainings"][0]["events"]
        assert (event["mechanism"], event["parts"], event["count"]) == ("parallel", n, 1)
        noise.append(event["events"])
    assert noise[0] == noise[1]


def test_dp_approx_releases_candidates_for_every_tree():
    X, y = data()
    p = {"tree_method": "dp_approx", "objective": "binary:logistic", "dp_epsilon": 8.0}
    booster = xgb.train(p | {"dp_delta": 1e-6}, xgb.DMatrix(X, y), 10)
    (training,) = xgb_dp.privacy_report(booster).ledger["trainings"]
    (event,) = [e for e in training["events"] if e["release"] == "candidates"]
    assert event["count"] == 10
    assert roc_auc_score(y, booster.predict(xgb.DMatrix(X))) > 0.85
    model = xgb.XGBClassifier(**(p | {"dp_delta": 1e-6, "dp_classes": 2}), n_estimators=5)
    assert model.fit(X, y).predict_proba(X).shape == (3000, 2)


def test_pure_needs_no_delta():
    X, y = data(n=300)
    booster = xgb.train(params("sarus"), xgb.DMatrix(X, y), 3)
    report = xgb_dp.privacy_report(booster)
    assert report.delta == 0.0
    assert 0.99 * 8.0 <= report.epsilon <= 8.0
    assert "differentially private" in report.statement()
    assert "dp_accountant" not in report.statement()
    d = xgb.DMatrix(X, y)
    loose, exact = (
        xgb_dp.privacy_report(xgb.train(params("sarus", dp_delta=1e-6, **more), d, 20))
        for more in ({}, {"dp_accountant": "exact"})
    )
    assert loose.epsilon < 0.5 * 8.0 < 0.99 * 8.0 <= exact.epsilon <= 8.0
    assert "calibrated with dp_accountant='pure'" in loose.statement()
    assert "dp_accountant" not in exact.statement()
    tree = params("sarus", dp_candidates="quantile_tree", dp_candidate_noise="gaussian")
    del tree["dp_feature_bounds"]
    with pytest.raises(xgb_dp.BudgetError, match="pure"):
        xgb.train(tree, xgb.DMatrix(X, y), 3)


@pytest.mark.parametrize("name", ["dp_rf", "dp_ebm"])
def test_presets_that_count_rounds_otherwise_have_no_default(name):
    """50 rounds are 50 forests of 100 trees, or 50 trees instead of 50 for each column."""
    X, y = data(n=100)
    with pytest.raises(PrivacyParameterError, match=f"`num_boost_round` is missing: .*'{name}'"):
        xgb.train(params(name), xgb.DMatrix(X, y))
    given = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": BOUNDS, "preset": name}
    model = xgb_dp.DPXGBClassifier(**given, classes=[0, 1])
    with pytest.raises(PrivacyParameterError, match="`n_estimators` is missing"):
        model.fit(X, y)
    assert xgb.train(params(name), xgb.DMatrix(X, y), 1).num_boosted_rounds() == 1


def test_weights_where_rows_count_one():
    X, y = data(n=100)
    d = xgb.DMatrix(X, y, weight=np.linspace(0.5, 1.0, 100))
    with pytest.raises(RowDomainError, match="unit weights"):
        xgb.train(params("sarus"), d, 3)
    with pytest.raises(RowDomainError, match="output"):
        xgb.train(params("sarus", dp_score="l1"), d, 3)


def test_describe():
    for name, preset in presets.PRESETS.items():
        text = presets.describe(name)
        assert preset.system in text
        assert preset.source in text
        assert all(t in text for t in (*preset.follows, *preset.differs))
    with pytest.raises(PrivacyParameterError, match="sarus"):
        presets.describe("unknown")


def hyperparameters(**changes: Any) -> dict[str, Any]:
    X, y = data(n=300)
    p = params("default", dp_feature_bounds={}, **changes)
    booster = xgb.train(p, xgb.DMatrix(X, y), 2)
    shown = xgb_dp.privacy_report(booster).ledger["trainings"][0]["public"]["hyperparameters"]
    return {key: shown[key] for key in ("max_depth", "tree_shape", "max_bin")}


DEEP = {"max_depth": 6, "tree_shape": "oblivious", "max_bin": 256}
SHALLOW = {"max_depth": 4, "tree_shape": "alternate", "max_bin": 64}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"dp_epsilon": 0.99}, SHALLOW),
        ({"dp_epsilon": 1.0}, DEEP),
        ({"dp_epsilon": "1"}, DEEP),
        ({"dp_epsilon": np.float32(3.0)}, DEEP),
        ({"dp_epsilon": 2.0, "max_bin": 32}, DEEP | {"max_bin": 32}),
        ({"dp_epsilon": 2.0, "max_depth": 3}, SHALLOW | {"max_depth": 3}),
        ({"dp_epsilon": 2.0, "dp_split": "random"}, SHALLOW),
        (
            {"dp_epsilon": 2.0, "objective": "reg:squarederror", "dp_target_bounds": (0.0, 1.0)},
            SHALLOW,
        ),
    ],
)
def test_the_default_grows_deeper_trees_from_a_public_epsilon_on(changes, expected):
    assert hyperparameters(**changes) == expected


def test_parallel_trees_have_the_noise_of_as_many_rounds():
    adaptive = presets.PRESETS["dp_tr_ada"].computed
    one, batches, few = adaptive(100, 4, 1), adaptive(10, 4, 10), adaptive(2, 4, 50)
    assert one["dp_budget_shares"] == batches["dp_budget_shares"]
    assert few["dp_budget_shares"]["candidates"] == pytest.approx(2 * 4 / (2 * 4 + 100))


def test_every_parameter_of_published_systems_is_of_one():
    published = [name for system in SYSTEMS for name in system.parameters]
    assert len(set(published)) == len(published)
    of_table = {p.name for p in PARAMETERS.values() if p.table is Table.PUBLISHED}
    assert of_table == set(published)


@pytest.mark.parametrize("floor", [0.0, 50.0, 500.0])
def test_the_formulas_of_sarus_are_what_is_drawn(floor):
    X, y = data(n=300)
    p = params("sarus", dp_epsilon=3.0, min_child_weight=floor)
    booster = xgb.train(p, xgb.DMatrix(X, y), 7)
    (rounds,) = xgb_dp.privacy_report(booster).ledger["trainings"][0]["events"]
    candidates, splits, leaves = rounds["events"]
    budget = sarus.tree_budget(3.0, trees=7, columns=4)
    close = pytest.approx
    assert candidates["sensitivity"] / candidates["scale"] == close(4 * budget.histogram, rel=1e-5)
    assert splits["eps_num"] / 2 ** splits["eps_bits"] == close(budget.split, rel=1e-5)
    assert splits["count"] == 6
    assert leaves["sensitivity"] / leaves["scale"] == close(budget.leaves, rel=1e-5)


@pytest.mark.parametrize("floor", [0, 1, 1.5, 2, 50, 500])
@pytest.mark.parametrize("penalty", [0.0, 0.1, 1.0])
def test_the_sensitivity_of_sarus_is_attained_by_whole_floors(floor, penalty):
    """By one more row with the gradient of all others, beside as many rows as the floor."""
    least, bound = max(floor, 1), sarus.leaf_sensitivity(floor, penalty)

    def value(rows, gradient):
        return gradient / (max(rows, least) + penalty)

    moves = [
        abs(value(n + 1, g * n + h) - value(n, g * n))
        for n in range(1, 3 * math.ceil(least) + 3)
        for g in (-1.0, 0.0, 1.0)
        for h in (-1.0, 1.0)
    ]
    assert max(moves) <= bound * (1 + 1e-12)
    if least == int(least):
        assert max(moves) == pytest.approx(bound)


def test_nobody_else_names_a_published_system():
    """What only they need enters by a registry: of releases, of presets, or of events."""
    package = Path(xgb_dp.__file__).parent
    registries = {"accounting/__init__.py", "accounting/events.py", "mechanisms/plan.py"}
    names = "|".join(set(presets.PRESETS) - {"default", "seq"})  # YAML has a "seq", too
    for path in sorted(package.rglob("*.py")):
        place, text = path.relative_to(package).as_posix(), path.read_text(encoding="utf-8")
        if place.startswith(("published/", "presets.py")):
            continue
        assert not re.search(rf"""["']({names})["']""", text), place
        modules = set(re.findall(r"from [.\w]*published\.(\w+)", text))
        assert modules <= {"system"} or place in registries, place
