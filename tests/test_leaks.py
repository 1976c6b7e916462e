"""Nothing un-noised leaves training: scans of everything that does, and one test per leak.

The table of all leaks, how each is closed, and by which test, is in `docs/leaks.md`.

The scans look for exact statistics of the training data in the saved model (JSON and UBJ), the
configuration, pickles, attributes, ledger, report, checkpoints, printed text and error messages.
Chance collisions are excluded in three ways: the noise is that of a fixed key, so the scans give
the same answer on every run; statistics are distinctive numbers (all but the last bits of a float
must be in use, whole numbers must be large); and no training value lies on a boundary of the key
tree or of a piece of its cells, so that a threshold cannot equal one, whatever the noise.
Each scan is also run on models that do leak, and finds it.
"""

from __future__ import annotations

import json
import math
import pickle
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import xgboost as xgb
from xgboost.core import XGBoostError

import xgb_dp
from tests.reference import objective as objectives
from tests.reference.candidates import key_of, value_of
from tests.reference.trainer import RowBound
from tests.test_guard import from_plan, plan_of
from xgb_dp.errors import LedgerError, PrivacyRefusal
from xgb_dp.testing import fixed_noise

N = 70_003  # a prime of more than two bytes, so that it does not turn up by chance
ROUNDS = 3
KINDS = ["binary", "regression", "multiclass"]
OBJECTIVE: dict[str, dict[str, Any]] = {
    "binary": {"objective": "binary:logistic"},
    "regression": {"objective": "reg:squarederror", "dp_target_bounds": (-40.0, 40.0)},
    "multiclass": {"objective": "multi:softprob", "num_class": 3},
}
COMMON = {
    "tree_method": "dp_hist",
    "dp_epsilon": 2.0,
    "dp_delta": 1e-6,
    "max_depth": 2,
    "nthread": 1,
    "verbosity": 0,
}


# ------------------------------------------------------------------------------- data
def boundaries() -> dict[int, npt.NDArray[np.int64]]:
    """Per width of a cell, where a cut may be inside it: ends and equal pieces, in key space."""
    return {
        1 << bits: np.unique([i * (1 << bits) // m for m in range(1, 17) for i in range(m)])
        for bits in range(15, 24)
    }


def off_boundaries(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The values, moved by a few last places where a cut could possibly equal one of them."""
    keys = key_of(values)
    for _ in range(20):
        hit = np.zeros(len(keys), bool)
        for size, offsets in boundaries().items():
            hit |= np.isin(keys % size, offsets)
        if not hit.any():
            break
        keys = np.where(hit, keys + 3, keys)
    assert not hit.any()
    bits = np.where(keys >= 0x80000000, keys ^ 0x80000000, keys ^ 0xFFFFFFFF).astype(np.uint32)
    moved = bits.view(np.float32)
    assert value_of(int(keys[0])) == moved[0]
    return moved


def make_data(kind: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Three columns of values far from anything else in a model, and labels that follow them."""
    rng = np.random.default_rng(11)
    X = np.empty((N, 3), np.float32)
    # Beyond the public grid around zero (1.5 * 2^17), each column in a range of its own.
    for j, (low, high) in enumerate(((-9e5, -5e5), (-4e5, -2.1e5), (1.1e6, 7.9e6))):
        X[:, j] = off_boundaries(rng.uniform(low, high, N).astype(np.float32))
    X[rng.random(N) < 0.1, 2] = np.nan
    signal = (X[:, 0] + 7e5) / 1e5 - (X[:, 1] + 3e5) / 9e4 + rng.normal(size=N)
    if kind == "binary":
        return X, (signal > 0.37).astype(np.float32)
    if kind == "multiclass":
        return X, np.digitize(signal, [-0.41, 1.13]).astype(np.float32)
    return X, (7.3 * signal + 1.7).astype(np.float32)


DATA = {kind: make_data(kind) for kind in KINDS}


def matrix(kind: str) -> xgb.DMatrix:
    return xgb.DMatrix(*DATA[kind])


# ------------------------------------------------------------------------------- artefacts
class Watch(xgb.callback.TrainingCallback):
    """Keeps what a callback can see: the model before, during and after, and the metrics."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, str | bytes] = {}

    def _keep(self, name: str, model: xgb.Booster) -> None:
        self.seen[f"{name} config"] = model.save_config()
        if model.num_boosted_rounds():
            self.seen[f"{name} json"] = bytes(model.save_raw("json")).decode()

    def before_training(self, model: xgb.Booster) -> xgb.Booster:
        self._keep("before", model)
        return model

    def after_iteration(self, model: xgb.Booster, epoch: int, evals_log: dict) -> bool:
        assert not evals_log
        self._keep(f"round {epoch}", model)
        return False


def artefacts(model: xgb.Booster) -> dict[str, str | bytes]:
    """Everything that a model holds, in all forms in which it may be published."""
    out: dict[str, str | bytes] = {
        "json": bytes(model.save_raw("json")).decode(),
        "ubj": bytes(model.save_raw("ubj")),
        "config": model.save_config(),
        "pickle": pickle.dumps(model),
        "attributes": json.dumps(model.attributes()),
        "dump": "\n".join(model.get_dump(with_stats=True, dump_format="json")),
    }
    if "dp_ledger" in model.attributes():
        report = xgb_dp.privacy_report(model)
        out |= {"report": report.to_json(), "statement": report.statement(), "str": str(report)}
        out["ledger"] = json.dumps(report.ledger)
    return out


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def numbers(text: str) -> set[float]:
    """All numbers of a text, also those in JSON texts inside of JSON texts."""
    return {float(token) for token in NUMBER.findall(text)}


def distinctive(value: float) -> bool:
    """Whether a number is unlikely to turn up by itself: long, or whole and large."""
    if not math.isfinite(value) or value == 0:
        return False
    if value == round(value) and abs(value) < 2**40:
        return abs(value) >= 1000
    return bool(np.float32(value).view(np.uint32) & 0x3FF)  # the last bits are in use


def patterns(value: float) -> Iterator[bytes]:
    """The value as it may stand in a binary file: floats of both sizes, and integers."""
    for order in "<>":
        if abs(value) < 3e38:
            yield struct.pack(f"{order}f", value)
        yield struct.pack(f"{order}d", value)
        if value == round(value) and 2**16 < abs(value) < 2**31:
            yield struct.pack(f"{order}i", int(value))
            yield struct.pack(f"{order}q", int(value))


def found(artefact: str | bytes, secrets: dict[str, float]) -> set[str]:
    """Names of the exact statistics that an artefact holds."""
    secrets = {name: value for name, value in secrets.items() if distinctive(value)}
    if isinstance(artefact, bytes):
        return {name for name, v in secrets.items() if any(p in artefact for p in patterns(v))}
    seen = np.array(sorted(numbers(artefact)))
    # also numbers that were printed with six digits only
    return {
        name for name, value in secrets.items() if np.any(np.abs(seen - value) <= 5e-7 * abs(value))
    }


# ------------------------------------------------------------------------------- secrets
def descend(tree: dict[str, Any], X: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """(nodes, rows): which rows pass through which node of a saved tree."""
    inside = np.zeros((len(tree["left_children"]), len(X)), bool)
    inside[0] = True
    for node, left in enumerate(tree["left_children"]):
        if left == -1:
            continue
        x = X[:, tree["split_indices"][node]]
        goes_left = x < np.float32(tree["split_conditions"][node])
        goes_left = np.where(np.isnan(x), bool(tree["default_left"][node]), goes_left)
        inside[left] = inside[node] & goes_left
        inside[tree["right_children"][node]] = inside[node] & ~goes_left
    return inside


def columns(X: npt.NDArray[np.float32]) -> dict[str, float]:
    """Minima, maxima and other exact statistics of the features."""
    out = {}
    for j, x in enumerate(X.T):
        for name in ("min", "max", "mean", "median", "std", "sum"):
            out[f"{name} of column {j}"] = float(getattr(np, f"nan{name}")(x.astype(np.float64)))
        out[f"present in column {j}"] = float(np.count_nonzero(~np.isnan(x)))
    return out


def labels(y: npt.NDArray[np.float32]) -> dict[str, float]:
    """Exact statistics of the labels."""
    out = {"rows": float(len(y)), "label std": float(y.std())}
    for name in ("sum", "mean", "min", "max"):
        out[f"label {name}"] = float(getattr(np, name)(y.astype(np.float64)))
    for k in range(3):
        out[f"rows of class {k}"] = float(np.count_nonzero(y == k))
        out[f"share of class {k}"] = float(np.mean(y == k))
    mean = out["label mean"]
    if 0 < mean < 1:
        out["log odds"] = math.log(mean / (1 - mean))
    return out


def tree_sums(
    model: xgb.Booster, kind: str, eta: float = 0.5, lam: float = 1.0
) -> dict[str, float]:
    """Exact counts, sums, weights and gains of every node, from rows routed through the trees."""
    X, y = DATA[kind]
    saved = json.loads(model.save_raw("json"))["learner"]
    trees = saved["gradient_booster"]["model"]["trees"]
    K = 3 if kind == "multiclass" else 1
    base = np.atleast_1d(json.loads(saved["learner_model_param"]["base_score"]))
    base = [float(v) for v in base] if K > 1 else float(base[0])
    name = OBJECTIVE[kind]["objective"]
    margin = objectives.initial_margin(name, base, N, K)
    bound = RowBound.of(json.loads(json.dumps(plan_of(model)))) if "dp_ledger" in (
        model.attributes()
    ) else None  # fmt: skip
    out = {}
    for i, tree in enumerate(trees):
        if i % K == 0:
            g, h = objectives.gradients(name, margin, y, np.ones_like(y))
        inside = descend(tree, X)
        pairs = {"": np.c_[g[:, i % K], h[:, i % K]].astype(np.float64)}
        if bound is not None:
            q = bound.quantise(
                pairs[""][:, 0], pairs[""][:, 1], y.astype(float), kind == "regression"
            )
            pairs["clipped "] = q[:, :2] * [bound.g_unit, bound.h_unit]
            pairs["grid "] = q[:, :2].astype(np.float64)
        scale = 1.0 if bound is None else bound.scale
        for what, pair in pairs.items():
            sums = inside @ pair
            for node, (G, H) in enumerate(sums):
                at = f"{what}{{}} of node {node} of tree {i}"
                w = -G / (H + lam)
                out |= {at.format("G"): G, at.format("H"): H, at.format("weight"): w * scale}
                out |= {at.format("leaf"): eta * w * scale, at.format("score"): G * G / (H + lam)}
                left, right = tree["left_children"][node], tree["right_children"][node]
                if left != -1:
                    gain = [s[0] ** 2 / (s[1] + lam) for s in sums[[left, right, node]]]
                    out[at.format("gain")] = gain[0] + gain[1] - gain[2]
        for node, count in enumerate(inside.sum(axis=1)):
            out[f"rows of node {node} of tree {i}"] = float(count)
        value = np.array(tree["split_conditions"], np.float32)
        for node, left in enumerate(tree["left_children"]):
            if left == -1:
                margin[inside[node], i % K] += value[node]
    return {k: v for k, v in out.items() if abs(v) > 1e-6}


def secrets_of(model: xgb.Booster, kind: str) -> dict[str, float]:
    X, y = DATA[kind]
    return columns(X) | labels(y) | tree_sums(model, kind)


def inner_thresholds(model: xgb.Booster) -> list[tuple[int, float]]:
    """(feature, threshold) of every split."""
    saved = json.loads(model.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    return [
        (f, float(np.float32(c)))
        for tree in saved
        for f, c, left in zip(
            tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True
        )
        if left != -1
    ]


# ------------------------------------------------------------------------------- the scans
@pytest.fixture(scope="module")
def private_models() -> dict[str, tuple[xgb.Booster, Watch]]:
    out = {}
    for kind in KINDS:
        watch = Watch()
        with fixed_noise(20):
            model = xgb.train(COMMON | OBJECTIVE[kind], matrix(kind), ROUNDS, callbacks=[watch])
        out[kind] = model, watch
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_no_exact_statistic_in_what_leaves_training(kind: str, private_models: Any) -> None:
    model, watch = private_models[kind]
    secrets = secrets_of(model, kind)
    assert sum(map(distinctive, secrets.values())) > 100
    for name, artefact in (artefacts(model) | watch.seen).items():
        assert not found(artefact, secrets), name
    for part in (model[:1], model.copy(), pickle.loads(pickle.dumps(model))):
        for name, artefact in artefacts(part).items():
            assert not found(artefact, secrets), name


@pytest.mark.parametrize("kind", KINDS)
def test_the_scan_finds_what_a_training_without_noise_leaves(kind: str) -> None:
    """Teeth: the same algorithm without noise has all of it in its model."""
    params = COMMON | OBJECTIVE[kind] | {"dp_epsilon": math.inf}
    with pytest.warns(UserWarning, match="NOT private"):
        model = xgb.train(params, matrix(kind), ROUNDS)
    secrets = secrets_of(model, kind)
    kept = artefacts(model)
    for name in ("json", "ubj", "pickle", "dump"):
        hits = found(kept[name], secrets)
        assert any("clipped H" in hit for hit in hits), name
        assert any("clipped weight of node 0" in hit for hit in hits) or name == "dump", name
        assert any("clipped gain" in hit for hit in hits), name
    if kind == "binary":
        assert "label mean" in found(kept["json"], secrets)


@pytest.mark.parametrize("name", ["rows", "label sum", "min of column 0", "mean of column 1"])
def test_the_scan_finds_a_planted_statistic(name: str, private_models: Any) -> None:
    model = private_models["binary"][0].copy()
    secret = (columns(DATA["binary"][0]) | labels(DATA["binary"][1]))[name]
    model.set_attr(note=repr(secret))
    assert name in found(artefacts(model)["json"], {name: secret})
    assert name in found(b"junk" + struct.pack(">d", secret), {name: secret})
    assert name in found(b"junk" + struct.pack(">f", secret), {name: secret})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [None, 1, 2])
def test_no_value_of_the_data_is_a_threshold(kind: str, key: int | None) -> None:
    """By construction of the data a threshold cannot equal a value by chance: see the head."""
    X, _ = DATA[kind]
    params = COMMON | OBJECTIVE[kind] | {"dp_epsilon": 20.0, "max_depth": 4}
    if key is None:
        model = xgb.train(params, matrix(kind), ROUNDS)
    else:
        with fixed_noise(key):
            model = xgb.train(params, matrix(kind), ROUNDS)
    splits = inner_thresholds(model)
    assert len({split for split in splits if abs(split[1]) < 1e30}) > 5
    assert not any(np.isin(np.float32(threshold), X[:, f]) for f, threshold in splits)


def test_thresholds_of_a_stock_model_are_values_of_the_data() -> None:
    """Teeth: stock histograms cut at values of the data."""
    params = {"tree_method": "hist", "objective": "binary:logistic", "nthread": 1, "max_depth": 2}
    X, _ = DATA["binary"]
    splits = inner_thresholds(xgb.train(params, matrix("binary"), 1))
    assert any(np.isin(np.float32(threshold), X[:, f]) for f, threshold in splits)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_exact_is_printed(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    """`verbosity=3` tells times and numbers of calls, which the guarantee excludes, and no more."""
    with fixed_noise(20):
        model = xgb.train(COMMON | OBJECTIVE[kind] | {"verbosity": 3}, matrix(kind), ROUNDS)
    secrets = secrets_of(model, kind)
    del model  # monitors print when they end
    captured = capfd.readouterr()
    text = captured.out + captured.err
    assert "Monitor" in text  # teeth: the text was captured
    known = re.compile(
        r"^\s*$|\] =+ Monitor \(\d+\): .*=+$|\] [\w:]+: [-+.e\d]+s, \d+ calls @ \d+us$"
        r"|DEBUG: .*: Using tree method: 64$"
    )
    strange = [line for line in text.splitlines() if not known.search(line)]
    assert strange == []
    # Times are digits by chance; what is left without them holds no statistic.
    timeless = re.sub(r"\[[\d:]+\]|[-+.e\d]+s, |@ \d+us", "", text)
    assert not found(timeless, secrets)


def test_the_number_of_rows_is_told_only_if_declared(private_models: Any) -> None:
    with fixed_noise(20):
        model = xgb.train(COMMON | OBJECTIVE["binary"] | {"dp_n_public": N}, matrix("binary"), 1)
    rows = {"rows": float(N)}
    assert found(artefacts(model)["ledger"], rows)
    assert not found(artefacts(private_models["binary"][0])["ledger"], rows)


# ------------------------------------------------------------------------------- errors
def bad_rows() -> dict[str, tuple[Callable[[], Any], dict[str, Any]]]:
    """Trainings with one bad row whose value is 8128.1875, in row 41; and their parameters."""
    X, y = (v[:300].copy() for v in DATA["binary"])
    odd = 8128.1875

    def labelled(value: float, **kwargs: Any) -> xgb.DMatrix:
        bad = y.copy()
        bad[41] = value
        return xgb.DMatrix(X, bad, **kwargs)

    def weighted(value: float) -> xgb.DMatrix:
        w = np.ones(300)
        w[41] = value
        return xgb.DMatrix(X, y, weight=w)

    def category(value: float) -> xgb.DMatrix:
        bad = X.copy()
        bad[:, 0] = 0
        bad[41, 0] = value
        return xgb.DMatrix(bad, y, feature_types=["c", "q", "q"], enable_categorical=True)

    def names() -> xgb.DMatrix:
        frame = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(["mallory", "trent"] * 150)})
        return xgb.DMatrix(frame, y, enable_categorical=True)

    infinite = X.copy()
    infinite[41, 1] = np.inf
    regression = OBJECTIVE["regression"]
    return {
        "label": (lambda: labelled(odd), {}),
        "class": (lambda: labelled(odd), OBJECTIVE["multiclass"]),
        "missing label": (lambda: labelled(np.nan), regression),
        "infinite label": (lambda: labelled(np.inf), regression),
        "weight": (lambda: weighted(-odd), {}),
        "weights without a bound": (lambda: weighted(odd), regression),
        "category": (lambda: category(odd), {"dp_categories": {0: 2}}),
        "large category": (lambda: category(8128.0), {"dp_categories": {0: 2}}),
        "undeclared category": (lambda: category(odd), {}),
        "names": (names, {"dp_categories": {"c": ["alice", "bob"]}}),
        "undeclared names": (names, {}),
        "infinite feature": (lambda: xgb.DMatrix(infinite, y), {}),
        "infinite feature, allowed": (lambda: xgb.DMatrix(-infinite, y, missing=np.inf), {}),
        "base margin": (
            lambda: labelled(0.0, base_margin=np.r_[np.inf, np.full(299, odd)]),
            {"dp_base_margin": True},
        ),
        "undeclared base margin": (lambda: labelled(0.0, base_margin=np.full(300, odd)), {}),
        "number of labels": (lambda: xgb.DMatrix(X, y[:299]), {}),
        "query groups": (lambda: labelled(0.0, qid=np.arange(300) // 2), {}),
        "query groups with weights": (
            lambda: xgb.DMatrix(X, y, qid=np.arange(300) // 2, weight=np.full(150, odd)),
            {},
        ),
    }


# XGBoost itself counts rows and labels when a DMatrix is made, before any training.
BEFORE_TRAINING = "number of labels"


@pytest.mark.parametrize("case", sorted(bad_rows().keys() - {BEFORE_TRAINING}))
def test_errors_say_nothing_exact(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither the value nor the row of the defect, nor how many rows there are."""
    make, params = bad_rows()[case]
    shown = ""
    try:
        with fixed_noise(1):
            xgb.train(COMMON | OBJECTIVE["binary"] | params, make(), 2)
    except ValueError as error:  # XGBoostError is one
        # The stack trace holds addresses; the head holds the time, a path and the line in it.
        shown = re.sub(r"^\[[\d:]+\]|\S+\.(cc|h|cu):\d+", "", str(error).split("Stack trace")[0])
    captured = capfd.readouterr()
    shown += captured.out + captured.err
    for told in ("8128", "mallory", "trent"):
        assert told not in shown
    assert not numbers(shown) & {41.0, 42.0, 150.0, 299.0, 300.0}
    for value in columns(DATA["binary"][0][:300]).values():
        assert not distinctive(value) or not found(shown, {"": value})


# ------------------------------------------------------------------------------- statistics
def small(kind: str = "binary", n: int = 400) -> xgb.DMatrix:
    X, y = DATA[kind]
    return xgb.DMatrix(X[:n], y[:n])


def saved_trees(model: xgb.Booster) -> list[dict[str, Any]]:
    return json.loads(model.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]


@pytest.mark.parametrize("kind", KINDS)
def test_inner_statistics_follow_from_the_leaves(kind: str) -> None:
    """Cover, gain and base weight of inner nodes hold nothing that the noisy leaves do not.

    Real noise; without clip and shrinkage a leaf's statistics are its noisy sums, and those of the
    nodes above are functions of them.
    """
    params = COMMON | OBJECTIVE[kind] | {"dp_shrinkage": False, "max_delta_step": 0, "max_depth": 3}
    for tree in saved_trees(xgb.train(params, matrix(kind), 2)):
        scale = 40.0 if kind == "regression" else 1.0
        w = np.array(tree["base_weights"], np.float64) / scale
        h = np.array(tree["sum_hessian"], np.float64)
        g = -w * (h + 1.0)
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        for node in reversed(range(len(w))):
            if left[node] == -1:
                assert tree["loss_changes"][node] == 0
                continue
            at = [left[node], right[node], node]
            g[node], h[node] = g[at[:2]].sum(), h[at[:2]].sum()
            gain = g[at] ** 2 / (h[at] + 1.0)
            close = {"rtol": 1e-4, "atol": 1e-4}
            np.testing.assert_allclose(w[node], -g[node] / (h[node] + 1.0), **close)
            np.testing.assert_allclose(tree["sum_hessian"][node], h[node], **close)
            expected = max(0.0, gain[0] + gain[1] - gain[2])
            np.testing.assert_allclose(
                tree["loss_changes"][node], expected, rtol=1e-3, atol=1e-4 * gain.max()
            )


def test_importance_and_dumps_read_only_the_statistics(private_models: Any) -> None:
    model = private_models["binary"][0]
    trees = saved_trees(model)
    for kind, field in (("total_gain", "loss_changes"), ("total_cover", "sum_hessian")):
        expected: dict[str, float] = {}
        for tree in trees:
            for node, left in enumerate(tree["left_children"]):
                if left != -1:
                    f = f"f{tree['split_indices'][node]}"
                    expected[f] = expected.get(f, 0.0) + tree[field][node]
        assert model.get_score(importance_type=kind) == pytest.approx(expected, rel=1e-5)
    frame = model.trees_to_dataframe()
    assert frame["Cover"].tolist() == pytest.approx(
        [v for tree in trees for v in tree["sum_hessian"]], rel=1e-5
    )


def test_a_model_has_no_attribute_but_the_ledger(private_models: Any) -> None:
    """No best iteration, no best score, no metric."""
    for model, _ in private_models.values():
        assert set(model.attributes()) == {"dp_ledger"}


def test_categorical_splits_are_one_category_and_names_are_the_declared_ones() -> None:
    """No split sorts categories by exact sums, and absent categories are kept by name too.

    One category against the others where a selection fills one level; random sets, which the rows
    do not touch, where it fills several.
    """
    X, _ = DATA["binary"]
    names = ["alice", "bob", "carol", "never seen", "dave"]
    codes = np.arange(N) % 3
    frame = pd.DataFrame({"c": pd.Categorical.from_codes(codes, categories=names), "x": X[:, 0]})
    d = xgb.DMatrix(frame, codes == 1, enable_categorical=True)
    params = COMMON | OBJECTIVE["binary"] | {"dp_categories": {"c": names}, "dp_epsilon": 20.0}
    for levels in (1, 2):
        with fixed_noise(3):
            model = xgb.train(params | {"dp_split_levels": levels, "max_depth": 3}, d, 20)
        sizes = [size for tree in saved_trees(model) for size in tree["categories_sizes"]]
        assert sizes and (set(sizes) == {1}) == (levels == 1)
        assert model.get_categories(export_to_arrow=True).to_arrow()[0][1].to_pylist() == names


# ------------------------------------------------------------------------------- parameters
OTHER_OBJECTIVES = re.findall(r"\S+", """
reg:squaredlogerror reg:logistic reg:pseudohubererror reg:absoluteerror reg:quantileerror
reg:expectileerror reg:gamma reg:tweedie binary:logitraw binary:hinge count:poisson survival:cox
survival:aft multi:softmax rank:ndcg rank:map rank:pairwise
""")  # fmt: skip


@pytest.mark.parametrize("objective", OTHER_OBJECTIVES)
def test_other_objectives(objective: str) -> None:
    """Row-coupling losses, adaptive leaves, position bias: Python and C++ both refuse."""
    d = small()
    with pytest.raises(PrivacyRefusal, match="objective"):
        xgb.train(COMMON | {"objective": objective}, d, 1)
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))
    with pytest.raises(XGBoostError, match="objective"):
        from_plan(plan | {"objective": objective}, d).update(d, 0)
    classes = {"num_class": 3} if objective.startswith("multi") else {}
    with pytest.raises(XGBoostError, match="objective"):
        from_plan(plan, d, objective=objective, **classes).update(d, 0)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"subsample": 0.5}, "subsample"),
        ({"colsample_bytree": 0.5}, "colsample_bytree"),
        ({"colsample_bylevel": 0.5}, "colsample_bylevel"),
        ({"colsample_bynode": 0.5}, "colsample_bynode"),
        ({"grow_policy": "lossguide"}, "lossguide"),
        ({"max_leaves": 3}, "max_leaves"),
        ({"alpha": 1.0}, "alpha"),
        ({"monotone_constraints": "(1,0,0)"}, "(?i)monotone"),
        ({"interaction_constraints": "[[0,1]]"}, "(?i)interaction"),
        ({"num_parallel_tree": 2}, "num_parallel_tree"),
        ({"multi_strategy": "multi_output_tree"}, "hist tree method"),
        ({"updater": "prune"}, "updater"),
        ({"updater": "refresh", "process_type": "update"}, r"updater|process_type"),
        ({"booster": "dart"}, "gbtree"),
        ({"booster": "gblinear"}, "gbtree"),
    ],
    ids=str,
)
def test_the_cpp_refuses_by_itself(change: dict[str, Any], named: str) -> None:
    """What Python refuses, the trainer refuses too: parameters can reach it past Python."""
    d = small()
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))
    with pytest.raises(XGBoostError, match=named):
        from_plan(plan, d, **change).update(d, 0)


def test_the_cpp_refuses_other_labels_by_itself() -> None:
    """The number of classes and weights of positives that the plan does not know."""
    d = small()
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))
    softmax = plan | {"objective": "multi:softprob", "num_class": 3}
    with pytest.raises(XGBoostError, match="number of classes"):
        from_plan(softmax, d, objective="multi:softprob", num_class=4).update(d, 0)
    with pytest.raises(XGBoostError, match="scale_pos_weight"):
        from_plan(softmax, d, objective="multi:softprob", num_class=3, scale_pos_weight=2).update(
            d, 0
        )


def test_the_cpp_refuses_matrices_by_itself() -> None:
    X, y = (v[:400] for v in DATA["binary"])
    plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], small(), 1))
    for d, named in (
        (xgb.QuantileDMatrix(X, y), "QuantileDMatrix"),
        (xgb.DMatrix(X, y, base_margin=np.ones(400)), "base_margin"),
        (xgb.DMatrix(X[:, :2], y), "features"),
        (xgb.DMatrix(X, y, qid=np.arange(400) // 2), "Query groups"),
        (xgb.DMatrix(np.abs(X // 1), y, feature_types=["c", "q", "q"]), "categorical"),
        (xgb.DMatrix(X, y, feature_types=["q", "q", "int"]), None),
    ):
        booster = from_plan(plan, d)
        if named is None:
            booster.update(d, 0)
            continue
        with pytest.raises(XGBoostError, match=named):
            booster.update(d, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"gamma": 1e9},
        {"min_child_weight": 1e9},
        {"sampling_method": "gradient_based"},
        {"max_depth": 1},
        {"refresh_leaf": True},
        {"max_cat_to_onehot": 1},
        {"max_bin": 2},
    ],
    ids=str,
)
def test_stock_thresholds_do_nothing(change: dict[str, Any]) -> None:
    """Only the plan counts: no exact sum is compared with a threshold of stock training."""
    d = small()
    with fixed_noise(4):
        plan = plan_of(xgb.train(COMMON | OBJECTIVE["binary"], d, 1))

    def dump(**extra: Any) -> list[str]:
        booster = from_plan(plan, d, nthread=1, verbosity=0, **extra)
        booster.update(d, 0)
        return booster.get_dump(with_stats=True)

    assert dump(**change) == dump()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change",
    [{"min_child_weight": 5e4}, {"max_delta_step": 0.01}, {"lambda": 900.0}, {"eta": 0.01}],
    ids=str,
)
def test_leaf_parameters_act_on_released_values_only(kind: str, change: dict[str, Any]) -> None:
    """They change no split of the first tree, whose gradients they cannot have touched."""

    def first_trees(**extra: Any) -> list[dict[str, Any]]:
        with fixed_noise(6):
            return saved_trees(xgb.train(COMMON | OBJECTIVE[kind] | extra, matrix(kind), 1))

    for one, other in zip(first_trees(**change), first_trees(), strict=True):
        inner = [i for i, left in enumerate(one["left_children"]) if left != -1]
        assert one["left_children"] == other["left_children"]
        for field in ("split_indices", "split_conditions", "default_left"):
            assert [one[field][i] for i in inner] == [other[field][i] for i in inner]
        assert one["split_conditions"] != other["split_conditions"]
        if "min_child_weight" in change:
            assert min(one["sum_hessian"]) >= 5e4


def test_gamma_without_no_split_is_refused_and_with_it_is_a_candidate() -> None:
    """The tree may only stop where the mechanism chose so: with noise, not by a threshold."""
    params = COMMON | OBJECTIVE["binary"] | {"dp_tree_shape": "per_node"}
    with pytest.raises(PrivacyRefusal, match="dp_no_split"):
        xgb.train(params | {"gamma": 3.0}, small(), 1)
    # Utilities of a few rows, a weak mechanism: where to stop is nearly uniform, not a threshold.
    sizes = set()
    for key in range(12):
        with fixed_noise(key):
            model = xgb.train(params | {"dp_no_split": True, "gamma": 40.0}, small(n=20), 1)
        sizes.add(len(saved_trees(model)[0]["left_children"]))
    assert len(sizes) > 1


class Set(xgb.callback.TrainingCallback):
    """Sets a parameter before training, or after its first round."""

    def __init__(self, change: dict[str, Any], first: bool) -> None:
        super().__init__()
        self.change, self.first = change, first

    def before_training(self, model: xgb.Booster) -> xgb.Booster:
        if self.first:
            model.set_param(self.change)
        return model

    def after_iteration(self, model: xgb.Booster, epoch: int, evals_log: dict) -> bool:
        if not self.first:
            model.set_param(self.change)
        return False


@pytest.mark.parametrize("first", [True, False], ids=["before", "in the middle"])
@pytest.mark.parametrize(
    "change",
    [
        {"objective": "survival:cox"},
        {"objective": "rank:pairwise"},
        {"num_class": 2},
        {"num_class": 5},
        {"tree_method": "hist"},
        {"booster": "dart"},
        {"updater": "grow_histmaker"},
        {"process_type": "update"},
        {"subsample": 0.5},
        {"num_parallel_tree": 2},
        {"monotone_constraints": "(1,0,0)"},
        {"dp_epsilon": 100.0},
        {"dp_plan": "{}"},
    ],
    ids=str,
)
def test_callbacks_cannot_change_a_training(change: dict[str, Any], first: bool) -> None:
    kind = "multiclass" if "num_class" in change else "binary"
    X, y = (v[:300] for v in DATA[kind])
    d = xgb.DMatrix(X, np.minimum(y, 1))  # labels that fit any number of classes
    with pytest.raises((XGBoostError, LedgerError)):
        xgb.train(COMMON | OBJECTIVE[kind], d, 3, callbacks=[Set(change, first)])


@pytest.mark.parametrize("name", ["gblinear", "dart"])
def test_boosters_on_a_private_model(name: str) -> None:
    model = xgb.train(COMMON | OBJECTIVE["binary"], small(), 2)
    with pytest.raises(XGBoostError, match=r"gbtree|ledger"):
        xgb.train({"objective": "binary:logistic", "booster": name}, small(), 1, xgb_model=model)
    model.set_param({"booster": name})
    with pytest.raises(XGBoostError, match="gbtree"):
        model.update(small(), 2)


@pytest.mark.parametrize("updater", ["prune", "refresh", "sync", "grow_colmaker"])
@pytest.mark.parametrize("loaded", [False, True])
def test_updaters_on_a_private_model(updater: str, loaded: bool) -> None:
    """No updater that recomputes exact statistics runs on a model with a ledger."""
    model = xgb.train(COMMON | OBJECTIVE["binary"], small(), 2)
    if loaded:
        model = xgb.Booster(model_file=bytearray(model.save_raw("ubj")))
    model.set_param({"process_type": "update", "updater": updater, "gamma": 1e9})
    with pytest.raises(XGBoostError, match=r"ledger|updater|process_type"):
        model.update(small(), 0)


def test_evaluation_needs_public_sets_and_shows_no_metric_of_the_training_data() -> None:
    d, public = small(), xgb.DMatrix(*(v[500:600] for v in DATA["binary"]))
    params = COMMON | OBJECTIVE["binary"]
    for allowed in (False, True):
        with pytest.raises(PrivacyRefusal, match="evals"):
            xgb.train(params | {"dp_public_evals": allowed}, d, 1, evals=[(d, "train")])
    result: dict[str, Any] = {}
    model = xgb.train(
        params | {"dp_public_evals": True},
        d,
        6,
        evals=[(public, "public")],
        evals_result=result,
        early_stopping_rounds=2,
        verbose_eval=False,
    )
    assert set(result) == {"public"}
    assert {"best_iteration", "best_score"} <= set(model.attributes())


# ------------------------------------------------------------------------------- slices
def test_slices_keep_the_whole_ledger_and_cannot_be_extended_in_place() -> None:
    model = xgb.train(COMMON | OBJECTIVE["binary"], small(), 4)
    whole = xgb_dp.privacy_report(model)
    for part in (model[:2], model[2:], model[::2], model[3]):
        report = xgb_dp.privacy_report(part)
        assert report.ledger == whole.ledger and report.epsilon == whole.epsilon
        with pytest.raises(XGBoostError):
            part.update(small(), 9)


def test_training_on_a_slice_pays_for_both() -> None:
    """Slices put together again by `xgb_model` carry every training of which trees were used."""
    params = COMMON | OBJECTIVE["binary"]
    model = xgb.train(params, small(), 4)
    both = xgb.train(params, small(), 2, xgb_model=model[:2])
    report = xgb_dp.privacy_report(both)
    assert both.num_boosted_rounds() == 4
    assert [t["rounds"] for t in report.ledger["trainings"]] == [4, 2]
    assert report.epsilon > 1.2 * xgb_dp.privacy_report(model).epsilon


def test_trees_put_together_by_hand_exceed_the_ledger() -> None:
    """Models are files: trees of another training pasted into one are noticed."""
    params = COMMON | OBJECTIVE["binary"]
    one, other = (json.loads(xgb.train(params, small(), 2).save_raw("json")) for _ in range(2))
    parts = [m["learner"]["gradient_booster"]["model"] for m in (one, other)]
    for tree in parts[1]["trees"]:
        tree["id"] += 2
    parts[0]["trees"] += parts[1]["trees"]
    parts[0]["tree_info"] += parts[1]["tree_info"]
    parts[0]["iteration_indptr"] = [0, 1, 2, 3, 4]
    parts[0]["gbtree_model_param"]["num_trees"] = "4"
    pasted = xgb.Booster(model_file=bytearray(json.dumps(one).encode()))
    assert pasted.num_boosted_rounds() == 4
    with pytest.raises(LedgerError, match="ledger"):
        xgb_dp.privacy_report(pasted)


def test_an_interrupted_training_has_claimed_its_plan() -> None:
    """Whatever a callback keeps of a training that failed carries a ledger for all of it."""
    kept: list[xgb.Booster] = []

    class Fail(xgb.callback.TrainingCallback):
        def after_iteration(self, model: xgb.Booster, epoch: int, evals_log: dict) -> bool:
            kept.append(model)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        xgb.train(COMMON | OBJECTIVE["binary"], small(), 3, callbacks=[Fail()])
    assert 0.99 * 2.0 <= xgb_dp.privacy_report(kept[0]).epsilon <= 2.0
