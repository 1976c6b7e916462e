"""The privacy report: recomputed from what was drawn, and carried by the model wherever it goes."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp import testing
from xgb_dp.errors import LedgerError, PrivacyParameterError, PrivacyRefusal
from xgb_dp.record import ledger as ledger_module
from xgb_dp.record.ledger_model import Ledger

KINDS = ["binary", "regression", "multiclass"]


@pytest.fixture
def model(params, matrix):
    return xgb.train(params(), matrix(), 4)


@pytest.mark.parametrize("kind", KINDS)
def test_epsilon_lands_just_below_the_target(params, matrix, kind):
    report = xgb_dp.privacy_report(xgb.train(params(kind), matrix(kind), 4))
    assert report.private
    assert report.delta == 1e-6
    assert 0.99 <= report.epsilon <= 1.0
    releases = {e["release"] for e in report.ledger["trainings"][0]["events"]}
    of_labels = {"range", "correction"} if kind == "regression" else set()
    assert releases == {"intercept", "candidates", "splits", "leaves"} | of_labels


def test_report_follows_the_model(model, tmp_path):
    expected = xgb_dp.privacy_report(model).ledger
    for suffix in ("json", "ubj"):
        path = tmp_path / f"model.{suffix}"
        model.save_model(path)
        assert xgb_dp.privacy_report(path).ledger == expected
        assert xgb_dp.privacy_report(str(path)).ledger == expected
    for twin in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert xgb_dp.privacy_report(twin).ledger == expected
    assert xgb_dp.privacy_report(model[:2]).ledger == expected


def test_epsilon_is_computed_and_not_echoed(model):
    ledger = xgb_dp.privacy_report(model).ledger
    ledger["trainings"][0]["target"]["epsilon"] = 0.001
    ledger_module.store(model, Ledger.from_json(ledger))
    assert xgb_dp.privacy_report(model).epsilon > 0.9
    for event in ledger["trainings"][0]["events"]:
        if "sigma2" in event:
            event["sigma2"] //= 2
    ledger_module.store(model, Ledger.from_json(ledger))
    assert xgb_dp.privacy_report(model).epsilon > 1.2


def test_get_epsilon(model):
    report = xgb_dp.privacy_report(model)
    assert report.get_epsilon(1e-9) > report.epsilon > report.get_epsilon(1e-3)
    assert report.get_epsilon(1e-6, group_size=1) == report.epsilon
    assert 2 * report.epsilon < report.get_epsilon(1e-6, group_size=2) < 4 * report.epsilon
    assert report.get_epsilon(0.0) == math.inf  # Gaussian noise
    for bad in ((-1e-9, 1), (1.0, 1), (1.5, 1), (1e-6, 0), (1e-6, 1.5)):
        with pytest.raises(PrivacyParameterError):
            report.get_epsilon(*bad)


def test_statement(model):
    text = xgb_dp.privacy_report(model).statement()
    for phrase in (
        "one row", "adding or removing", "1e-06", "intercept", "candidates", "splits",
        "A person with several rows has weaker protection; use dp_privacy_id or dp_group_size",
        "leaf values", "Assumed public", "hyperparameters", "Not covered", "running time",
    ):  # fmt: skip
        assert phrase in text, phrase
    assert "declared number of rows" not in text
    assert str(xgb_dp.privacy_report(model)) == text
    assert "Privacy report" in xgb_dp.privacy_report(model)._repr_html_()


def test_statement_names_what_was_declared(params, matrix):
    p = params("regression", dp_public_num_rows=300, dp_feature_bounds={0: (-4, 4, "even")})
    text = xgb_dp.privacy_report(xgb.train(p, matrix("regression"), 2)).statement()
    for phrase in ("declared number of rows", "target bounds", "feature bounds or cuts"):
        assert phrase in text


def test_stock_model_has_no_report(matrix):
    stock = xgb.train({"tree_method": "hist", "objective": "binary:logistic"}, matrix(), 2)
    with pytest.raises(LedgerError, match="no privacy ledger"):
        xgb_dp.privacy_report(stock)
    with pytest.raises(PrivacyParameterError, match="model"):
        xgb_dp.privacy_report(3)


def test_fixed_noise_is_not_private(params, matrix):
    with testing.fixed_noise(3):
        fixed = xgb.train(params(), matrix(), 3)
    report = xgb_dp.privacy_report(fixed)
    assert not report.private
    assert report.epsilon == math.inf
    assert "fixed key" in report.statement()
    for start in (fixed, xgb.train({"objective": "binary:logistic"}, matrix(), 1)):
        with pytest.raises(PrivacyRefusal, match="xgb_model"):
            xgb.train(params(), matrix(), 1, xgb_model=start)


def stopped(params, matrix, **more):
    """A training that may stop early by a public set."""
    public = {"evals": [(matrix(), "public")], "verbose_eval": False}
    return xgb.train(params(dp_public_evals=True), matrix(), 6, **public, **more)


def test_public_early_stopping(params, matrix):
    report = xgb_dp.privacy_report(stopped(params, matrix, early_stopping_rounds=2))
    assert report.epsilon <= 1.0
    assert "evaluation set" in report.statement()


def test_continuing_a_best_model(params, matrix):
    stop = xgb.callback.EarlyStopping(rounds=2, save_best=True)
    best = stopped(params, matrix, callbacks=[stop])
    again = xgb.train(params(), matrix(), 1, xgb_model=best)
    assert xgb_dp.privacy_report(again).epsilon > 1.0


def test_types_and_names_do_not_hang_on_a_row(params):
    """An integer column with one missing value is a float column for pandas, not for the model."""
    y = np.arange(20) % 2
    whole = pd.DataFrame({"a": np.arange(20), "b": np.linspace(0, 1, 20)})
    holed = whole.astype({"a": float})
    holed.loc[3, "a"] = np.nan
    frames = (whole, holed, whole[:0])
    models = [xgb.train(params(), xgb.DMatrix(f, y[: len(f)]), 2) for f in frames]
    assert {tuple(m.feature_types) for m in models} == {("float", "float")}
    assert {tuple(m.feature_names) for m in models} == {("a", "b")}


def test_continuing_on_other_columns(params):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    y = np.arange(60) % 2
    model = xgb.train(params(), xgb.DMatrix(frame, y), 2)
    typed = {"feature_types": ["q", "q", "c"], "enable_categorical": True}
    codes = xgb.DMatrix(frame.assign(c=np.arange(60) % 3), y, **typed)
    for matrix, more in (
        (xgb.DMatrix(frame[list("cba")], y), {}),
        (xgb.DMatrix(frame.to_numpy(), y), {}),
        (codes, {"dp_categories": {"c": 3}}),
    ):
        with pytest.raises(PrivacyParameterError, match="columns"):
            xgb.train(params(**more), matrix, 1, xgb_model=model)
