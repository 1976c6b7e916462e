"""A private model predicts no rows whose columns or types differ from those of its training."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from xgb_dp import PrivacyParameterError

N = 200
TOWNS = ["Bern", "Oslo", "Rome"]
LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda f: f,
    "polars": lambda f: pl.from_pandas(f),
    "arrow": lambda f: pa.Table.from_pandas(f, preserve_index=False),
}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    town = pd.Categorical.from_codes(rng.integers(0, 3, N), TOWNS)
    return pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N), "town": town})


WRONG: dict[str, tuple[str, Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "reordered": ("in another order", lambda f: f[["b", "a", "town"]]),
    "renamed": ("lacks 'b' and also has 'c'", lambda f: f.rename(columns={"b": "c"})),
    "fewer": ("lacks 'b'", lambda f: f[["a", "town"]]),
    "more": ("also has 'c'", lambda f: f.assign(c=1.0)),
    "codes": ("'town' have named categories", lambda f: f.assign(town=f["town"].cat.codes)),
    "categories": (
        "'a' differ",
        lambda f: f.assign(a=pd.Categorical.from_codes((f["a"] > 0).astype(int), ["u", "v"])),
    ),
}
RIGHT = frame()
LABELS = (RIGHT["a"].to_numpy() > 0).astype(int)


@pytest.fixture(scope="module")
def booster() -> xgb.Booster:
    params = private(objective="binary:logistic", dp_categories={"town": TOWNS}, nthread=1)
    return xgb.train(params, xgb.DMatrix(RIGHT, LABELS, enable_categorical=True), 5)


@pytest.fixture(scope="module")
def model() -> xgb_dp.DPXGBClassifier:
    settings = {"epsilon": 1.0, "delta": 1e-6, "classes": 2, "n_estimators": 5}
    return xgb_dp.DPXGBClassifier(**settings, categories={"town": TOWNS}).fit(RIGHT, LABELS)


def matrix(rows: Any, **more: Any) -> xgb.DMatrix:
    return xgb.DMatrix(rows, enable_categorical=True, **more)


def judge(model: Any, rows: Any) -> Any:
    return xgb_dp.evaluate(model, rows, epsilon=1.0, delta=1e-6)


PATHS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "predict": lambda b, m, f: b.predict(matrix(f)),
    "leaves": lambda b, m, f: b.predict(matrix(f), pred_leaf=True),
    "in place": lambda b, m, f: b.inplace_predict(f),
    "estimator": lambda b, m, f: m.predict(f),
    "estimator, probabilities": lambda b, m, f: m.predict_proba(f),
    "estimator, leaves": lambda b, m, f: m.apply(f),
    "evaluate": lambda b, m, f: judge(b, matrix(f, label=LABELS)),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("wrong", WRONG)
def test_other_columns_are_refused(booster, model, wrong, path, library):
    match, change = WRONG[wrong]
    PATHS[path](booster, model, LIBRARIES[library](RIGHT))
    rows = LIBRARIES[library](change(RIGHT))
    if path.startswith("estimator") and wrong in ("codes", "categories"):
        with pytest.raises(xgb_dp.PrivacyError, match=r"'(a|town)'"):  # it reads names itself
            PATHS[path](booster, model, rows)
        return
    with pytest.raises(PrivacyParameterError, match=match):
        PATHS[path](booster, model, rows)


CODES = RIGHT.assign(town=RIGHT["town"].cat.codes).to_numpy()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("as_rows", [np.asarray, np.ndarray.tolist], ids=["array", "list"])
def test_an_array_after_named_categories_is_refused(booster, model, path, as_rows):
    """Its codes could be those of a frame, in another order."""
    if path == "in place" or path.startswith("estimator"):
        with pytest.raises(PrivacyParameterError, match="named categories"):
            PATHS[path](booster, model, as_rows(CODES))
    else:
        for more in ({}, {"feature_names": list(RIGHT)}):
            with pytest.raises(PrivacyParameterError, match=r"lacks|named categories"):
                booster.predict(matrix(CODES, **more))


def test_declared_codes_are_read(booster, model):
    expected = booster.predict(matrix(RIGHT))
    coded = xgb_dp.Schema.from_model(booster).encode(RIGHT)
    types = booster.feature_types
    np.testing.assert_array_equal(
        booster.predict(xgb.DMatrix(coded, feature_types=types)), expected
    )
    np.testing.assert_array_equal(booster.inplace_predict(CODES, validate_features=False), expected)
    np.testing.assert_array_equal(
        model.predict_proba(RIGHT, validate_features=True)[:, 1],
        model.get_booster().predict(matrix(RIGHT)),
    )


def test_arrays_of_numbers_are_read_by_place():
    """Without categories, as scikit-learn does; the number of columns must be right."""
    X = RIGHT[["a", "b"]]
    model = xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=2, n_estimators=2)
    model.fit(X, LABELS)
    np.testing.assert_array_equal(model.predict_proba(X.to_numpy()), model.predict_proba(X))
    for rows in (X.to_numpy()[:, :1], X.to_numpy()[:, [0, 1, 1]]):
        with pytest.raises(PrivacyParameterError, match="2 features"):
            model.predict(rows)
    with pytest.raises(PrivacyParameterError, match="'b' is not a column of numbers"):
        model.predict(X.assign(b="1"))


def test_rows_without_the_margins_of_the_training_are_refused():
    margin = np.linspace(-1.0, 1.0, len(RIGHT))
    rows, params = RIGHT[["a"]], private(objective="binary:logistic", dp_base_margin=True)
    model = xgb.train(params, xgb.DMatrix(rows, LABELS, base_margin=margin), 5)
    bare, whole = xgb.DMatrix(rows), xgb.DMatrix(rows, base_margin=margin)
    for predict in (
        lambda: model.predict(bare),
        lambda: model.predict(bare, output_margin=True),
        lambda: model.predict(bare, pred_contribs=True),
        lambda: model.inplace_predict(rows),
    ):
        with pytest.raises(PrivacyParameterError, match="Pass `base_margin`"):
            predict()
    expected = model.predict(whole)
    np.testing.assert_array_equal(model.inplace_predict(rows, base_margin=margin), expected)
    leaves = [model.predict(data, pred_leaf=True) for data in (bare, whole)]
    np.testing.assert_array_equal(*leaves)
    assert model.predict(xgb.DMatrix(rows[:0])).size == 0
    zeros = model.inplace_predict(rows, base_margin=np.zeros(len(rows)))
    stock = model.predict(bare, validate_features=False)
    np.testing.assert_allclose(zeros, stock, rtol=1e-6)
    assert not np.allclose(stock, expected, rtol=0.01)


def test_a_model_without_a_ledger_takes_the_old_path():
    """Upstream's behaviour is upstream's, also where it scores reordered columns."""
    rows = pa.Table.from_pandas(RIGHT[["a", "b"]], preserve_index=False)
    stock = xgb.train({"nthread": 1}, xgb.DMatrix(rows, LABELS), 3)
    swapped = rows.select(["b", "a"])
    assert not np.array_equal(stock.inplace_predict(rows), stock.inplace_predict(swapped))


@pytest.mark.parametrize("kind", ["gblinear", "dart"])
def test_models_of_other_boosters_store_no_names(kind):
    X = RIGHT[["a", "b"]].to_numpy()
    params = {"booster": kind, "objective": "binary:logistic", "nthread": 1}
    stock = xgb.train(params, xgb.DMatrix(X, LABELS), 3)
    assert float(judge(stock, (X, LABELS)).auc) > 0.5
