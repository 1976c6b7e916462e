"""Scans of everything that leaves training for exact statistics of its data."""

import math
import pickle
import re
import struct

import numpy as np
import pytest
import xgboost as xgb

from tests.batches import Batches
from tests.models import training
from xgb_dp.testing import fixed_noise

from .scan import (
    COMMON,
    DATA,
    KINDS,
    OBJECTIVE,
    ROUNDS,
    N,
    artefacts,
    columns,
    distinctive,
    inner_thresholds,
    labels,
    matrix,
    secrets_of,
    statistics_in,
)


@pytest.mark.parametrize("kind", KINDS)
def test_no_exact_statistic_in_what_leaves_training(kind, private_models):
    model, watch = private_models[kind]
    secrets = secrets_of(model, kind)
    assert sum(map(distinctive, secrets.values())) > 100
    for name, artefact in (artefacts(model) | watch.seen).items():
        assert not statistics_in(artefact, secrets), name
    for part in (model[:1], model.copy(), pickle.loads(pickle.dumps(model))):
        for name, artefact in artefacts(part).items():
            assert not statistics_in(artefact, secrets), name


@pytest.mark.parametrize("kind", KINDS)
def test_the_scan_finds_what_a_training_without_noise_leaves(kind):
    """Teeth: the same algorithm without noise has all of it in its model."""
    params = COMMON | OBJECTIVE[kind] | {"dp_epsilon": math.inf}
    with pytest.warns(UserWarning, match="NOT private"):
        model = xgb.train(params, matrix(kind), ROUNDS)
    secrets = secrets_of(model, kind)
    kept = artefacts(model)
    for name in ("json", "ubj", "pickle", "dump"):
        hits = statistics_in(kept[name], secrets)
        assert any("clipped H" in hit for hit in hits), name
        assert any("clipped weight of node 0" in hit for hit in hits) or name == "dump", name
    if kind == "binary":
        assert "label mean" in statistics_in(kept["json"], secrets)


@pytest.mark.parametrize("name", ["rows", "label sum", "min of column 0", "mean of column 1"])
def test_the_scan_finds_a_planted_statistic(name, private_models):
    model = private_models["binary"][0].copy()
    secret = (columns(DATA["binary"][0]) | labels(DATA["binary"][1]))[name]
    model.set_attr(note=repr(secret))
    assert name in statistics_in(artefacts(model)["json"], {name: secret})
    assert name in statistics_in(b"junk" + struct.pack(">d", secret), {name: secret})
    assert name in statistics_in(b"junk" + struct.pack(">f", secret), {name: secret})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [None, 1])
@pytest.mark.filterwarnings("ignore:Epsilon is above 10")
def test_no_value_of_the_data_is_a_threshold(kind, key):
    """By construction of the data a threshold cannot equal a value by chance: see `scan`."""
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


def test_thresholds_of_a_stock_model_are_values_of_the_data():
    """Teeth: stock histograms cut at values of the data."""
    params = {"tree_method": "hist", "objective": "binary:logistic", "nthread": 1, "max_depth": 2}
    X, _ = DATA["binary"]
    splits = inner_thresholds(xgb.train(params, matrix("binary"), 1))
    assert any(np.isin(np.float32(threshold), X[:, f]) for f, threshold in splits)


@pytest.mark.parametrize(
    ("kind", "on_disk"), [*((kind, False) for kind in KINDS), ("binary", True), ("targets", True)]
)
def test_nothing_exact_is_printed(kind, on_disk, tmp_path, capfd):
    """`verbosity=3` tells times and numbers of calls, which the guarantee excludes, and no more."""
    d = matrix(kind)
    if on_disk:
        X, y = (np.array_split(v, 3) for v in DATA[kind])
        d = xgb.DMatrix(Batches(list(zip(X, y, strict=True)), tmp_path))
        capfd.readouterr()  # what making a matrix tells is its own affair: docs/guarantee.md
    with fixed_noise(20):
        model = xgb.train(COMMON | OBJECTIVE[kind] | {"verbosity": 3}, d, ROUNDS)
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
    assert not statistics_in(timeless, secrets)


@pytest.mark.parametrize("changes", [{}, {"base_score": 0.5}])
def test_open_rounds_tell_a_noisy_number_of_rows(changes):
    """The ledger says by which number the plan was taken, and not how many rows there are."""
    given = COMMON | OBJECTIVE["binary"] | changes
    with fixed_noise(20):
        model = xgb.train(given, matrix("binary"))
    assert 0 < abs(training(model)["public"]["plan_choice"]["rows"] - N) < 1000
    strings = artefacts(model)
    for name in ("ledger", "report", "statement", "json", "config", "attributes"):
        assert not statistics_in(strings[name], {"rows": float(N)}), name


def test_the_number_of_rows_is_told_only_if_declared(private_models):
    with fixed_noise(20):
        model = xgb.train(
            COMMON | OBJECTIVE["binary"] | {"dp_public_num_rows": N}, matrix("binary"), 1
        )
    rows = {"rows": float(N)}
    assert statistics_in(artefacts(model)["ledger"], rows)
    assert not statistics_in(artefacts(private_models["binary"][0])["ledger"], rows)
