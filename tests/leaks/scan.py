"""Data, artefacts and exact statistics, and the scan for the ones in the others.

The scans look for exact statistics of the training data in the saved model (JSON and UBJ), the
configuration, pickles, attributes, ledger, report, checkpoints, printed text and error messages.
Chance collisions are excluded in three ways: the noise is that of a fixed key, so the scans give
the same answer on every run; statistics are distinctive numbers (all but the last bits of a float
must be in use, whole numbers must be large); and no training value lies on a boundary of the key
tree or of a piece of its cells, so that a threshold cannot equal one, whatever the noise.
Each scan is also run on models that do leak, and finds it.
"""

import json
import math
import pickle
import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from tests.reference import objective as objectives
from tests.reference.candidates import key_of, value_of
from tests.reference.losses import bounded_pairs, loss_of, unit_of
from tests.reference.trainer import RowBound
from tests.training.plans import plan_of

from ..models import starts, trees

N = 70_003  # a prime of more than two bytes, so that it does not turn up by chance
ROUNDS = 3
KINDS = ["binary", "regression", "multiclass", "targets", "labels"]
OBJECTIVE: dict[str, dict[str, Any]] = {
    "binary": {"objective": "binary:logistic"},
    "regression": {"objective": "reg:squarederror", "dp_target_bounds": (-40.0, 40.0)},
    "multiclass": {"objective": "multi:softprob", "num_class": 3},
    "targets": {
        "objective": "reg:squarederror",
        "dp_target_bounds": [(-40.0, 40.0), (-4.0, 4.0), (900.0, 1100.0)],
    },
    "labels": {"objective": "binary:logistic"},
}
COMMON = private(dp_epsilon=2.0, max_depth=2, nthread=1, verbosity=0)


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
    if kind == "labels":
        more = [X[:, 0] > -7.3e5, signal + rng.normal(size=N) < -1.31]
        return X, np.stack([signal > 0.37, *more], axis=1).astype(np.float32)
    if kind == "targets":
        more = [rng.normal(size=N) - 0.3 * signal, 1000 + 9.1 * signal + 12.7 * rng.normal(size=N)]
        return X, np.stack([7.3 * signal + 1.7, *more], axis=1).astype(np.float32)
    return X, (7.3 * signal + 1.7).astype(np.float32)


class _Made(dict[str, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]):
    """The data of each kind, made when it is first asked for."""

    def __missing__(self, kind: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        self[kind] = make_data(kind)
        return self[kind]


DATA = _Made()


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
# Digests and random ids have any four digits by chance. No number has a letter among 32 digits.
DIGEST = re.compile(r"\b(?=\d*[a-f])[0-9a-f]{32}(?:[0-9a-f]{32})?\b")


def numbers(text: str) -> set[float]:
    """All numbers of a text, also those in JSON texts inside of JSON texts."""
    return {float(token) for token in NUMBER.findall(DIGEST.sub("", text))}


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


def statistics_in(artefact: str | bytes, secrets: dict[str, float]) -> set[str]:
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
    """Exact statistics of the labels, of several targets of each."""
    if y.ndim == 2:
        by_target = (labels(column) for column in y.T)
        return {
            f"{name}, target {k}": v for k, of in enumerate(by_target) for name, v in of.items()
        }
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
    K = 3 if kind in ("multiclass", "targets", "labels") else 1
    base = starts(model) if K > 1 else starts(model)[0]
    name = OBJECTIVE[kind]["objective"]
    margin = objectives.initial_margin(name, base, N, K)
    plan = plan_of(model) if "dp_ledger" in model.attributes() else None
    bound = None if plan is None else RowBound.of(plan)
    loss = None if plan is None else loss_of(plan)
    out = {}
    for i, tree in enumerate(trees(model)):
        if i % K == 0 and loss is None:
            g, h = objectives.gradients(name, margin, y, np.ones_like(y))
        elif i % K == 0:
            assert bound is not None
            wide, given = margin.astype(np.float64), y.astype(np.float64)
            g, h = loss.pairs(wide, np.clip(given, *loss.ranges), 0)
            by_class, _ = bounded_pairs(loss, bound, margin, given, np.ones(N), 0)
        inside = descend(tree, X)
        pairs = {"": np.c_[g[:, i % K], h[:, i % K]].astype(np.float64)}
        if bound is not None:
            q = by_class[i % K] if loss is not None else bound.quantise(
                pairs[""][:, 0], pairs[""][:, 1], y.astype(float), kind == "regression"
            )  # fmt: skip
            pairs["clipped "] = q[:, :2] * [bound.g_unit, bound.h_unit]
            pairs["grid "] = q[:, :2].astype(np.float64)
        scale = 1.0 if bound is None else bound.scale
        scale = scale if loss is None else unit_of(loss, 0, i % K)
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
    return [
        (f, float(np.float32(c)))
        for tree in trees(model)
        for f, c, left in zip(
            tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True
        )
        if left != -1
    ]


def small(kind: str = "binary", n: int = 400) -> xgb.DMatrix:
    X, y = DATA[kind]
    return xgb.DMatrix(X[:n], y[:n])
