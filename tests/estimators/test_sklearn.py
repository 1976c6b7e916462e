"""XGBoost's own estimators with private parameters: declared classes, defaults, refusals."""

import pickle

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.base import clone

import xgb_dp
from tests.conftest import private
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal, RowDomainError

from ..conftest import arrays

PRIVATE = private(n_estimators=3, max_depth=2, n_jobs=1)
BOUNDS = {0: (-4.0, 4.0)}


def test_binary_clone_and_pickle():
    X, y = arrays()
    model = clone(xgb.XGBClassifier(**PRIVATE, dp_classes=[0, 1], dp_feature_bounds=BOUNDS))
    assert model.get_params()["dp_feature_bounds"] == BOUNDS
    proba = model.fit(X, y).predict_proba(X)
    assert proba.shape == (len(y), 2)
    assert proba.sum(axis=1) == pytest.approx(1)
    assert set(model.predict(X)) <= {0, 1}
    assert model.classes_.tolist() == [0, 1]
    loaded = pickle.loads(pickle.dumps(model))
    model.set_params(verbosity=0)  # which does not spoil what was fitted
    for twin in (model, loaded):
        np.testing.assert_array_equal(twin.predict_proba(X), proba)
    report = xgb_dp.privacy_report(model)
    assert 0.99 <= report.epsilon <= 1.0
    assert xgb_dp.privacy_report(loaded).ledger == report.ledger


def test_multiclass():
    X, y = arrays("multiclass")
    model = xgb.XGBClassifier(**PRIVATE, dp_classes=3).fit(X, y)
    assert model.predict_proba(X).shape == (len(y), 3)
    assert xgb_dp.privacy_report(model).epsilon <= 1.0
    with pytest.raises(RowDomainError, match="dp_classes"):
        xgb.XGBClassifier(**PRIVATE, dp_classes=2).fit(X, y)


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_forests(kind):
    """One round of parallel trees; what their defaults ask for beside that is refused by name."""
    X, y = arrays(kind)
    cls = xgb.XGBRFClassifier if kind == "binary" else xgb.XGBRFRegressor
    declared = {"dp_classes": 2} if kind == "binary" else {"dp_target_bounds": (-3, 3)}
    with pytest.raises(PrivacyRefusal, match=f"colsample_bynode.*{cls.__name__}"):
        cls(**PRIVATE, **declared).fit(X, y)
    model = clone(cls(**PRIVATE, **declared, colsample_bynode=1)).fit(X, y)
    booster = pickle.loads(pickle.dumps(model)).get_booster()
    assert booster.num_boosted_rounds() == 1
    assert len(booster.get_dump()) == PRIVATE["n_estimators"]
    assert 0.99 <= xgb_dp.privacy_report(model).epsilon <= 1.0
    assert model.predict(X).shape == (len(y),)


@pytest.mark.parametrize("classes", [2, 4])
def test_absent_class_trains_normally(classes):
    """Upstream would raise, or change the objective, by what occurs in the labels."""
    X, y = arrays()
    model = xgb.XGBClassifier(**PRIVATE, dp_classes=classes).fit(X, np.zeros_like(y))
    assert model.classes_.tolist() == list(range(classes))
    assert model.predict_proba(X).shape == (len(y), classes)


def test_private_parameters_of_another_tree_method_read_no_classes():
    """The message of XGBoost would list the labels."""
    X, y = arrays()
    for labels in (y + 1, y):
        with pytest.raises((PrivacyRefusal, RowDomainError)) as error:
            xgb.XGBClassifier(**PRIVATE | {"tree_method": "hist"}, dp_classes=2).fit(X, labels)
        assert "2." not in str(error.value)


@pytest.mark.parametrize("declared", [None, ["no", "yes"], [1, 2], 1, [0], "ab"])
def test_classes_must_be_declared(declared):
    X, y = arrays()
    with pytest.raises(PrivacyParameterError, match="dp_classes"):
        xgb.XGBClassifier(**PRIVATE, dp_classes=declared).fit(X, y)


def test_data_frame_with_declared_categories():
    X, y = arrays()
    values = pd.Categorical(["u", "v"] * 150, categories=["u", "v", "w"])
    frame = pd.DataFrame({"x": X[:, 0], "c": values})
    given = PRIVATE | {"enable_categorical": True, "dp_classes": 2}
    model = xgb.XGBClassifier(**given, dp_categories={"c": ["u", "v", "w"]}).fit(frame, y)
    assert model.predict(frame).shape == (len(y),)
    with pytest.raises(PrivacyParameterError, match="dp_categories"):
        xgb.XGBClassifier(**given).fit(frame, y)


def test_default_of_rounds():
    free = {k: v for k, v in PRIVATE.items() if k != "n_estimators"}
    for given, rounds in ((free, 50), ({}, 100), (PRIVATE, 3)):
        assert xgb.XGBRegressor(**given).get_num_boosting_rounds() == rounds


def test_refusals():
    X, y = arrays()
    loss = {"objective": lambda a, b: (a, b), "dp_target_bounds": (0, 1)}
    for model, more, match in (
        (xgb.XGBRanker(**PRIVATE), {"qid": np.zeros(len(y), dtype=int)}, "Query groups"),
        (xgb.XGBRegressor(**PRIVATE, **loss), {}, "obj"),
        (xgb.XGBClassifier(**PRIVATE, dp_classes=2), {"eval_set": [(X, y)]}, "evals"),
    ):
        with pytest.raises(PrivacyRefusal, match=match):
            model.fit(X, y, **more)
