"""Ids of persons for estimators: an array, or a column that is no feature; never kept."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import xgboost as xgb
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from xgb_dp import DPXGBClassifier, DPXGBRegressor
from xgb_dp.errors import PrivacyParameterError, PrivacyRefusal, RowDomainError

from ..conftest import arrays
from ..persons.conftest import codes_used, no_noise, same_partition

__all__ = ["codes_used", "no_noise"]

SHARED: dict[str, Any] = {
    "epsilon": 1.0, "delta": 1e-6, "n_estimators": 2, "max_depth": 2, "n_jobs": 1
}  # fmt: skip
SECRET = "SECRET-91-"
WHO = [f"{SECRET}{i % 70}" for i in range(300)]


def table() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = arrays()
    return pd.DataFrame(X, columns=list("abcd")).assign(patient=WHO), y


def classifier(**more: Any) -> DPXGBClassifier:
    return DPXGBClassifier(classes=2, **SHARED | more)


def test_an_array_of_ids(codes_used):
    X, y = arrays()
    classifier().fit(X, y, privacy_id=WHO)
    DPXGBRegressor(target_bounds=(0, 1), **SHARED).fit(X, y, privacy_id=pd.Series(WHO, name="p"))
    assert len(codes_used) == 2
    assert all(same_partition(codes, WHO) for codes in codes_used)


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.Table.from_pandas],
    ids=["pandas", "polars", "polars lazy", "arrow"],
)
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_a_named_column_is_no_feature(make, kind, codes_used):
    """Neither of the model nor of the tables that it predicts for, with the column or without."""
    X, y = table()
    model = classifier() if kind == "classifier" else DPXGBRegressor(target_bounds=(0, 1), **SHARED)
    model.fit(make(X), y, privacy_id="patient")
    assert same_partition(codes_used[0], WHO)
    assert model.get_booster().feature_names == list("abcd")
    without = make(X[list("abcd")])
    np.testing.assert_array_equal(model.predict(make(X)), model.predict(without))
    np.testing.assert_array_equal(model.apply(make(X)), model.apply(without))


def test_a_column_as_a_parameter(codes_used, tmp_path):
    """Which estimators keep, also those with the names of XGBoost."""
    X, y = table()
    model = clone(classifier(dp_privacy_id="patient")).fit(X, y)
    assert same_partition(codes_used[0], WHO)
    assert model.predict(X).shape == y.shape
    stock = xgb.XGBClassifier(
        tree_method="dp_hist", dp_epsilon=1.0, dp_delta=1e-6, dp_classes=2, n_estimators=2,
        max_depth=2, dp_privacy_id="patient",
    )  # fmt: skip
    stock.fit(X, y)
    assert same_partition(codes_used[1], WHO)
    assert stock.get_booster().feature_names == list("abcd")
    with pytest.raises(PrivacyParameterError, match="Pass only one"):
        classifier(dp_privacy_id="patient").fit(X, y, privacy_id=WHO)


def test_ids_are_no_parameter_of_an_estimator(no_noise):
    X, y = arrays()
    stock = xgb.XGBRegressor(
        tree_method="dp_hist", dp_epsilon=1.0, dp_delta=1e-6, dp_target_bounds=(0, 1),
        dp_privacy_id=WHO,
    )  # fmt: skip
    for model in (stock, classifier(dp_privacy_id=WHO)):
        with pytest.raises(PrivacyParameterError, match="saved and displayed") as caught:
            model.fit(X, y)
        assert "SECRET" not in str(caught.value)


def test_pipelines_hand_ids_over(codes_used):
    """As a parameter of the last step, or by metadata routing."""
    X, y = table()
    steps = make_column_transformer((StandardScaler(), list("abcd")))
    pipe = make_pipeline(steps, classifier())
    pipe.fit(X, y, dpxgbclassifier__privacy_id=X["patient"])
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(steps, classifier().set_fit_request(privacy_id=True))
        routed.fit(X, y, privacy_id=WHO)
    assert len(codes_used) == 2
    assert all(same_partition(codes, WHO) for codes in codes_used)


def test_public_sets_may_have_the_column(codes_used):
    X, y = table()
    model = classifier(public_evals=True)
    model.fit(X, y, privacy_id="patient", eval_set=[(X.iloc[:50].copy(), y[:50])], verbose=False)
    assert len(codes_used) == 1
    with pytest.raises(PrivacyRefusal, match="training rows"):
        model.fit(X, y, privacy_id="patient", eval_set=[(X, y)])


WRONG: list[tuple[Any, type[Exception], str]] = [
    ("person", PrivacyParameterError, "not have exactly one column 'person'"),
    ([*WHO[1:], None], RowDomainError, "no id"),
    (WHO[1:], PrivacyParameterError, "one id per row"),
    (pd.Series(np.arange(300), name="a"), PrivacyParameterError, "also a feature"),
    (3, PrivacyParameterError, "one id per row"),
    ("patient", RowDomainError, "no id"),  # of which one is missing
]


@pytest.mark.parametrize(("ids", "kind", "says"), WRONG, ids=range(len(WRONG)))
def test_wrong_ids_are_refused(ids, kind, says, no_noise):
    X, y = table()
    X.loc[5, "patient"] = None
    features = X if isinstance(ids, str) else X[list("abcd")]
    model = classifier()
    with pytest.raises(kind, match=says) as caught:
        model.fit(features, y, privacy_id=ids)
    assert "SECRET" not in str(caught.value)
    assert "SECRET" not in repr(vars(model))
    with pytest.raises(PrivacyParameterError, match="not have exactly one column"):
        model.fit(arrays()[0], y, privacy_id="patient")


def test_a_cell_that_cannot_be_read_is_not_shown(no_noise, tmp_path):
    rows = "".join(f"{i},{i % 7}.5\n" for i in range(300))
    (tmp_path / "rows.csv").write_text("patient,a\n" + rows + "300,SECRET\n")
    scan = pl.scan_csv(tmp_path / "rows.csv", infer_schema_length=10)
    with pytest.raises(RowDomainError) as caught:
        classifier().fit(scan, np.arange(301) % 2, privacy_id="patient")
    assert "SECRET" not in str(caught.value)


def test_ids_are_not_kept(tmp_path):
    X, y = table()
    model = classifier().fit(X, y, privacy_id="patient")
    model.save_model(tmp_path / "m.json")
    for text in (
        pickle.dumps(model),
        repr(model).encode(),
        repr(model.get_params()).encode(),
        repr(model.get_xgb_params()).encode(),
        (tmp_path / "m.json").read_bytes(),
        model.privacy_report_.to_json().encode(),
    ):
        assert SECRET.encode() not in text
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_another_fit_forgets_the_column(codes_used):
    X, y = table()
    model = classifier().fit(X, y, privacy_id="patient")
    numbers = X[list("abcd")].assign(patient=np.arange(300.0))
    with pytest.warns(match="'patient' looks like an id"):
        model.fit(numbers, y)
    assert len(codes_used) == 1
    assert model.get_booster().feature_names == [*"abcd", "patient"]
    assert model.predict(numbers).shape == y.shape
