"""A ledger or model file that was damaged is refused; it never claims less than the true cost."""

import contextlib
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.accounting import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    Repetitions,
    SelectionEvent,
)
from xgb_dp.accounting.sampled_rounds import ParallelEvent, SampledEvent
from xgb_dp.engine import model_json, ubjson
from xgb_dp.errors import LedgerError
from xgb_dp.mechanisms.plan import Mechanisms
from xgb_dp.record import ledger
from xgb_dp.record.ledger_model import Ledger

from ..hand_made import UNIT2, mechanisms
from ..mutations import at, mutations

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def model() -> xgb.Booster:
    """Two trainings, so that one may be lost, each with two trees."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1}
    params |= {"dp_epsilon": 1.0, "dp_delta": 1e-6, "max_depth": 2, "verbosity": 0}
    first = xgb.train(params, xgb.DMatrix(X, X[:, 0] > 0), 2)
    return xgb.train(params, xgb.DMatrix(X, X[:, 0] > 0), 2, xgb_model=first)


def content(model: xgb.Booster) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(model.attr("dp_ledger"))
    return record


def with_text(model: xgb.Booster, text: str) -> xgb.Booster:
    twin = model.copy()
    twin.set_attr(dp_ledger=text)
    return twin


LEAVES = GaussianEvent("leaves", 2**40, 2**46, 2, 4)
KINDS = [
    [LEAVES, ExponentialEvent("splits", 2**35, 40, 8)],
    [SampledEvent(2**30, 32, (LaplaceEvent("leaves", math.isqrt(2 * UNIT2), 500, 1),), 4)],
    [ParallelEvent(2, (GaussianEvent("histograms", 2**40, 2**46, 2, 1),), 2)],
    [SelectionEvent(Repetitions.of("geometric", 3.0), ((LEAVES,), (LEAVES,)), (LEAVES,), 1)],
]


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


PLANS: list[dict[str, Any]] = [
    {"selections": 2},
    {"split": "random", "leaf_noise": "laplace", "sampling_num": 2**30},
    {"split": "histogram", "levels": 1, "ensemble": 2},
    {"split": "random"},
]


def by_hand(kind: int) -> dict[str, Any]:
    """A ledger with events of one kind."""
    public = {
        "rounds": 4,
        "budget_shares": {"leaves": 1.0},
        "group_size": 1,
        "num_parallel_tree": 1,
    }
    training = {
        "id": "0" * 32, "plans": ["0" * 64], "complete": True,
        "mechanisms": mechanisms(**PLANS[kind], rounds=4),
        "events": [e.to_json() for e in KINDS[kind]], "rounds": 4,
        "target": {"epsilon": 1.0, "delta": 1e-6}, "public": {"hyperparameters": public},
        "trees": ["0123456789abcdef" * 2] * 8,
    }  # fmt: skip
    return {"version": 1, "private": True, "noise": "os", "trainings": [training]}


@pytest.mark.parametrize("kind", [*range(len(KINDS)), "trained"])
def test_a_changed_ledger_is_refused_or_means_what_it_says(model: xgb.Booster, kind: Any) -> None:
    """Also with a right digest: no field is added, left out or read as another one."""
    trained = kind == "trained"
    record = ledger.load_checksummed(model.attr("dp_ledger")) if trained else by_hand(kind)
    assert Ledger.from_json(record).to_json() == record
    refused = tried = 0
    computed: dict[str, dict[Any, float]] = {}  # epsilons by events, most of which are not changed
    for what, changed in mutations(record, 3 if trained else 1):
        tried += 1
        try:
            read = Ledger.from_json(changed)
        except LedgerError:
            refused += 1
            continue
        assert text(read.to_json()) == text(changed), what
        report = xgb_dp.PrivacyReport(changed)
        report._cache.update(computed.get(events := text(changed["trainings"][0]["events"]), {}))
        computed[events] = report._cache
        assert report.statement(), what
    assert refused > tried / 4


LOSSES = "gradient_bound hessian_bound hessian_weight max_weight score_clip"
READ = {  # by change, the fields that are read all the same
    "0": "coordinates count delta depth eps_num epsilon leaves max_weight rounds scale score_clip "
         "sensitivity2 shape_num sigma2",
    "0.5": f"delta epsilon leaves output_gradient output_hessian {LOSSES}",
    "1e+300": f"epsilon leaves {LOSSES}", "-1": "leaves shape_num",
    "True": "joint spread unit_hessian",
    "'inf'": "epsilon release", "'0'": "release", "'\\ud800'": "release",
    "{}": "budget_shares", "[]": "runs score", "removed": "leaves runs score",
    "doubled": "budget_shares events group_size hyperparameters leaves num_parallel_tree rounds "
               "runs score",
}  # fmt: skip


def test_no_other_change_of_a_ledger_is_read() -> None:
    read: dict[str, set[str]] = {}
    for kind in range(len(KINDS)):
        for what, changed in mutations(by_hand(kind)):
            with contextlib.suppress(LedgerError):
                Ledger.from_json(changed)
                place, change = what.rsplit(" ", 1)
                read.setdefault(change, set()).add(re.findall("'([a-z0-9_]+)'", place)[-1])
    assert read == {change: set(fields.split()) for change, fields in READ.items()}


RANGES = {
    ("grid_bits",): (0, 20), ("rounds",): (0, 2**40), ("ensemble",): (1, 2**40),
    ("sampling_num",): (1, 2**32), ("mechanisms", "leaves", "depth"): (0, 10),
    ("mechanisms", "intercept", "labels", "shift"): (0, 26),
    ("mechanisms", "candidates", "shift"): (0, 26),
}  # fmt: skip


@pytest.mark.parametrize("path", RANGES, ids=".".join)
def test_numbers_of_a_plan_have_these_ends(model: xgb.Booster, path: tuple[str, ...]) -> None:
    """The smallest and the largest number are read, and none beyond them."""
    record = ledger.read_ledger(model).trainings[0].mechanisms[0].to_json()
    record["mechanisms"]["splits"]["range"] = 2**21  # which is enough for any grid
    least, most = RANGES[path]
    for value in (least, most):
        at(record, path[:-1])[path[-1]] = value
        assert Mechanisms.from_json(record).to_json() == record
    for value in (least - 1, most + 1):
        at(record, path[:-1])[path[-1]] = value
        with pytest.raises(LedgerError, match="does not describe the mechanisms"):
            Mechanisms.from_json(record)


STRINGS = [
    "", "{", "[]", "null", "[" * 100_000, '{"version":' + "[" * 100_000, "\ufeff{}",
    '{"version": 1, "version": 1}', '{"version": ' + "9" * 5000 + "}", '{"version": 1e999}',
    '{"version": NaN}', '{"version": "\\ud800"}',
]  # fmt: skip


@pytest.mark.parametrize("text", STRINGS, ids=range(len(STRINGS)))
def test_no_ledger_at_all(model: xgb.Booster, text: str) -> None:
    with pytest.raises(LedgerError, match="damaged"):
        xgb_dp.privacy_report(with_text(model, text))


def training(change: Change) -> Change:
    return lambda record: change(record["trainings"][0])


INCOMPLETE: dict[str, Change] = {
    "no events": lambda t: t.update(events=[]),
    "no leaves": lambda t: t.update(events=[e for e in t["events"] if e["release"] != "leaves"]),
    "no splits": lambda t: t.update(events=[e for e in t["events"] if e["release"] != "splits"]),
    "no candidates": lambda t: t["events"].remove(t["events"][1]),
    "no intercept": lambda t: t["events"].remove(t["events"][0]),
    "one leaf": lambda t: [e.update(count=1) for e in t["events"] if e["release"] == "leaves"],
    "three leaves": lambda t: [e.update(count=3) for e in t["events"] if e["release"] == "leaves"],
    "no count": lambda t: [e.update(count=0) for e in t["events"]],
    "trees lost": lambda t: t["trees"].pop(),
    "rounds lost": lambda t: t.update(rounds=0),
    "more drawn than charged": lambda t: t.update(drawn=[{**t["events"][0], "count": 2}]),
    "drawn with another sensitivity": lambda t: t.update(
        drawn=[{**t["events"][0], "sensitivity2": 1}]
    ),
    "masked sums without workers": lambda t: t["public"].update(masked_sums={"colluders": 1}),
}
WHOLE: dict[str, Change] = {
    "version": lambda r: r.update(version=9),
    "the last training is lost": lambda r: r["trainings"].pop(),
    "the first training is lost": lambda r: r["trainings"].pop(0),
    **{name: training(change) for name, change in INCOMPLETE.items()},
}


@pytest.mark.parametrize("name", [*WHOLE, "no digest"])
def test_what_does_not_fit_is_refused_even_with_a_right_digest(
    model: xgb.Booster, name: str
) -> None:
    record = content(model)
    if name == "no digest":
        del record["digest"]
    else:
        WHOLE[name](record)
    text = json.dumps(record) if name == "no digest" else ledger.dump_checksummed(record)
    with pytest.raises(LedgerError, match="no digest" if name == "no digest" else "ledger"):
        xgb_dp.privacy_report(with_text(model, text))


def test_the_digest_is_right_wherever_the_model_goes(model: xgb.Booster, tmp_path: Path) -> None:
    for twin in (model, model[:2], model.copy(), xgb.Booster(model_file=model.save_raw("json"))):
        text = twin.attr("dp_ledger")
        assert ledger.load_checksummed(text) == ledger.read_ledger(twin).to_json()
        assert "digest" not in xgb_dp.privacy_report(twin).ledger
    saver = xgb.callback.TrainingCheckPoint(directory=tmp_path, interval=1)
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1}
    d = xgb.DMatrix(np.zeros((20, 2)), np.zeros(20))
    chosen = xgb_dp.select(params, d, [{}], epsilon=1.0, delta=1e-6, num_boost_round=2).booster
    params |= {"dp_epsilon": 1.0, "dp_delta": 1e-6, "max_depth": 2}
    longer = xgb.train(params, d, 2, xgb_model=chosen, callbacks=[saver])
    checkpoint = xgb.Booster(model_file=sorted(tmp_path.iterdir())[0])
    for twin in (chosen, longer, checkpoint):
        assert ledger.load_checksummed(twin.attr("dp_ledger"))
        finished = twin is not checkpoint
        assert math.isfinite(xgb_dp.privacy_report(twin).epsilon) == finished


def test_the_form_of_saved_models_is_known(model: xgb.Booster) -> None:
    raw = bytes(model.save_raw("ubj"))
    ubjson.check(raw)
    for size in range(0, len(raw), 7):
        with pytest.raises(ValueError, match=r"file|length|type"):
            ubjson.check(raw[:size])


def test_depth_is_that_of_brackets_outside_of_strings():
    model_json.check_depth(json.dumps({"a": "[" * 1000, 'b"\\': ["{" * 1000]}))
    model_json.check_depth("[" * 100 + "]" * 100)
    assert model_json.loads('{"a": [1]}') == {"a": [1]}
    for text in ("[" * 101, b'{"a":' * 101, '["\\"", ' + "[" * 100):
        with pytest.raises(ValueError, match="too deeply"):
            model_json.check_depth(text)
