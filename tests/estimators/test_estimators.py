"""Labels, tables, reports and persistence of the private estimators."""

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import xgb_dp
from xgb_dp import DPXGBClassifier, DPXGBRegressor
from xgb_dp.data.frames import prepare_table
from xgb_dp.errors import PrivacyParameterError, RowDomainError

from ..conftest import arrays

SHARED: dict[str, Any] = {
    "epsilon": 1.0, "delta": 1e-6, "n_estimators": 3, "max_depth": 2, "n_jobs": 1
}  # fmt: skip
TEXT = np.array(["no", "yes"])


def text_labels() -> tuple[np.ndarray, np.ndarray]:
    X, y = arrays()
    return X, TEXT[y.astype(int)]


def test_text_labels_and_probabilities():
    X, y = text_labels()
    model = DPXGBClassifier(classes=["no", "yes"], **SHARED).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    proba = model.predict_proba(X)
    assert proba.shape == (len(y), 2)
    assert proba.sum(axis=1) == pytest.approx(1)
    np.testing.assert_array_equal(model.predict(X), TEXT[np.argmax(proba, axis=1)])
    margin = model.predict(X, output_margin=True)
    np.testing.assert_array_equal(model.predict(X) == "yes", margin > 0)
    assert 0 < model.score(X, y) <= 1


def test_several_classes_that_need_not_occur():
    X, y = arrays("multiclass")
    model = DPXGBClassifier(classes=[10, 20, 30, 40], **SHARED).fit(X, 10 * (y + 1))
    assert model.predict_proba(X).shape == (len(y), 4)
    assert set(model.predict(X)) <= {10, 20, 30, 40}
    assert model.objective == "binary:logistic"  # the parameter is as it was
    column = np.full((len(y), 1), "b")
    alone = DPXGBClassifier(classes=["a", "b", "c"], **SHARED).fit(X, column)
    assert alone.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "classes",
    [None, 1, True, "ab", ["a"], ["a", "a"], ["a", 1], [[1], [2]], np.array(1), np.ma.masked],
)
def test_classes_must_be_declared(classes):
    X, y = arrays()
    with pytest.raises(PrivacyParameterError, match="classes"):
        DPXGBClassifier(classes=classes, **SHARED).fit(X, y)


def test_a_verbosity_that_is_no_number_is_refused():
    """XGBoost would write it as JSON before the other parameters are read."""
    cyclic: dict[str, Any] = {}
    cyclic["again"] = cyclic
    with pytest.raises(PrivacyParameterError, match="verbosity"):
        DPXGBClassifier(classes=2, **SHARED | {"verbosity": cyclic}).fit(*arrays())


def test_undeclared_labels_are_refused_without_being_shown():
    X, y = text_labels()
    y = y.astype(object)
    for bad in ("secret", None, np.nan, 7):
        y[5] = bad
        with pytest.raises(RowDomainError, match="classes") as caught:
            DPXGBClassifier(classes=["no", "yes"], **SHARED).fit(X, y)
        assert "secret" not in str(caught.value)


def test_report_and_what_is_not_fitted():
    X, y = arrays()
    model = DPXGBClassifier(classes=2, **SHARED)
    assert not hasattr(model, "privacy_report_")
    assert not hasattr(model, "classes_")
    with pytest.raises(NotFittedError):
        model.predict(X)
    report = model.fit(X, y).privacy_report_
    assert 0.99 <= report.epsilon <= 1.0
    assert report.ledger == xgb_dp.privacy_report(model).ledger


@pytest.mark.parametrize("missing", ["epsilon", "delta"])
def test_budget_must_be_given(missing):
    model = DPXGBClassifier(classes=2, **{**SHARED, missing: None})
    for train, more in ((model.fit, ()), (model.fit_select, ([{}, {}],))):
        with pytest.raises(PrivacyParameterError, match=missing):
            train(*arrays(), *more)


def test_regression_needs_bounds():
    X, y = arrays("regression")
    with pytest.raises(PrivacyParameterError, match=r"^`target_bounds` is missing"):
        DPXGBRegressor(**SHARED).fit(X, y)
    model = DPXGBRegressor(target_bounds=(-3, 3), **SHARED).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.privacy_report_.epsilon <= 1.0


def test_declarations_reach_the_plan():
    X, y = arrays()
    bounds = dict.fromkeys(range(4), (-4.0, 4.0))
    preset = DPXGBClassifier(classes=2, preset="dp_tr", feature_bounds=bounds, **SHARED).fit(X, y)
    assert preset.privacy_report_.get_epsilon(1e-6, accountant="rdp") <= 1.0 + 1e-9
    bounds = dict.fromkeys(range(4), (-4.0, 4.0, "even"))
    model = DPXGBClassifier(
        classes=2, feature_bounds=bounds, public_num_rows=len(y), dp_split="random", **SHARED
    ).fit(X, y)
    (training,) = model.privacy_report_.ledger["trainings"]
    assert training["public"]["public_num_rows"] == len(y)
    # Neither candidates nor splits are released.
    assert {e["release"] for e in training["events"]} == {"intercept", "leaves"}
    for wrong, match in (({"dp_epsilon": 2.0}, "only one"), ({"dp_splt": "random"}, "dp_splt")):
        with pytest.raises(PrivacyParameterError, match=match):
            DPXGBClassifier(classes=2, **wrong, **SHARED).fit(X, y)


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize(
    "classes", [[1, 2], ["no", "yes"], [False, True], [-1.5, 0.25], ["a", "b", "c"], [7, 8, 9, 10]]
)
@pytest.mark.filterwarnings("ignore:Epsilon")
def test_a_loaded_model_predicts_its_classes(classes, form, tmp_path):
    """Whatever the estimator that loads it has declared or was fitted on before."""
    X, y = arrays("multiclass")
    labels = np.array(classes)[y.astype(int) % len(classes)]
    model = DPXGBClassifier(classes=classes, **SHARED).fit(X, labels)
    place = tmp_path / f"model.{form}"
    model.save_model(place)
    other = DPXGBClassifier(classes=["u", "v"], **SHARED).fit(X, np.where(y > 0, "u", "v"))
    for loaded in (DPXGBClassifier(), DPXGBClassifier(classes=len(classes)), other):
        loaded.load_model(place)
        assert loaded.classes_.tolist() == classes
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        again = pickle.loads(pickle.dumps(loaded))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert xgb_dp.verify(place).verdict == "passed"
    judged = xgb_dp.evaluate(place, (X, labels), epsilon=1e3, delta=1e-6).figures()["accuracy"]
    assert float(judged) == pytest.approx(np.mean(model.predict(X) == labels), abs=0.02)
    booster = model.get_booster()
    for damaged in ("[0]", "{}", "null", "[0, 0]", json.dumps([*classes, "more"]), "no JSON"):
        booster.set_attr(dp_classes=damaged)
        booster.save_model(place)
        with pytest.raises(PrivacyParameterError, match="dp_classes"):
            DPXGBClassifier().load_model(place)
        assert xgb_dp.verify(place).verdict == "failed"


def test_models_of_the_command_line_have_their_classes(tmp_path):
    """In the order of their codes, which is that of `--classes`; numbers are numbers."""
    X, y = text_labels()
    model = DPXGBClassifier(classes=["no", "yes"], **SHARED).fit(X, y)
    booster = model.get_booster()
    declared = {"classes": ["yes", "no"], "columns": {str(i): None for i in range(4)}}
    for names in (["yes", "no"], ["2", "1"]):
        schema = json.dumps({**declared, "classes": names})
        booster.set_attr(dp_classes=None, dp_schema=schema)
        booster.save_model(tmp_path / "model.json")
        loaded = DPXGBClassifier()
        loaded.load_model(tmp_path / "model.json")
        expected = [int(n) if n.isdigit() else n for n in names]
        assert loaded.classes_.tolist() == expected


def test_classes_in_another_order_are_refused():
    """The column of `predict_proba` would not be that of the list."""
    X, y = text_labels()
    for classes in (["yes", "no"], [2, 1]):
        with pytest.raises(PrivacyParameterError, match="increasing order"):
            DPXGBClassifier(classes=classes, **SHARED).fit(X, y)


def test_a_loaded_estimator_drops_the_column_of_ids(tmp_path):
    X, y = text_labels()
    frame = pd.DataFrame(X, columns=list("abcd"))
    people = frame.assign(who=np.arange(len(y)) // 3)
    model = DPXGBClassifier(classes=["no", "yes"], **SHARED).fit(people, y, privacy_id="who")
    model.save_model(tmp_path / "model.json")
    for loaded in (DPXGBClassifier(), DPXGBClassifier(classes=2, **SHARED).fit(X, y == "yes")):
        loaded.load_model(tmp_path / "model.json")
        for table in (people, frame):
            np.testing.assert_array_equal(loaded.predict(table), model.predict(frame))


@pytest.mark.parametrize(
    "flat", [lambda X: X[0], lambda X: X[0].tolist(), lambda X: pd.Series(X[0])]
)
def test_one_row_as_a_flat_array_is_refused(flat):
    """By every method, with the message of scikit-learn."""
    X, y = text_labels()
    X = np.nan_to_num(X)
    model = DPXGBClassifier(classes=["no", "yes"], **SHARED).fit(X, y)
    for call in (model.predict, model.predict_proba, model.apply):
        with pytest.raises(PrivacyParameterError, match=r"Expected 2D array, got 1D.*Reshape your"):
            call(flat(X))
    assert model.predict(X[:1]).shape == (1,)


# -------------------------------------------------------------------------------------- tables
NAMES = ["low", "middle", "high", "ünïque"]


def frame() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = text_labels()
    grades = np.random.default_rng(1).choice(["high", "low"], len(y))
    return pd.DataFrame({"x": X[:, 0], "grade": grades, "z": X[:, 2]}), y


def as_table(data: pd.DataFrame, kind: str) -> Any:
    library, _, coded = kind.partition(" ")
    if library == "pandas":
        return data.astype({"grade": "category"}) if coded else data
    if library == "arrow":
        table = pa.Table.from_pandas(data, preserve_index=False)
        return table.set_column(1, "grade", table["grade"].dictionary_encode()) if coded else table
    table = pl.from_dicts(data.astype(object).where(data.notna(), None).to_dict("records"))
    return table.cast({"grade": pl.Categorical}) if coded else table


KINDS = ["pandas", "pandas category", "arrow", "arrow dictionary", "polars", "polars category"]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_names_are_coded_by_the_declaration(kind):
    data, y = frame()
    table = as_table(data, kind)
    model = DPXGBClassifier(classes=["no", "yes"], categories={"grade": NAMES}, **SHARED)
    model.fit(table, y)
    assert model.feature_names_in_.tolist() == ["x", "grade", "z"]
    assert model.get_booster().feature_types[1] == "c"
    # Another table lists other categories in another order, and is coded alike.
    swapped = as_table(data.iloc[::-1].reset_index(drop=True), kind)
    np.testing.assert_array_equal(model.predict_proba(swapped), model.predict_proba(table)[::-1])
    assert model.apply(table).shape == (len(y), 3)


@pytest.mark.parametrize("kind", KINDS)
def test_undeclared_categories_are_refused_without_being_shown(kind):
    data, y = frame()
    data.loc[7, "grade"] = "secret"
    model = DPXGBClassifier(classes=["no", "yes"], categories={"grade": NAMES}, **SHARED)
    with pytest.raises(RowDomainError, match="'grade'") as caught:
        model.fit(as_table(data, kind), y)
    assert "secret" not in str(caught.value)


def test_undeclared_categorical_columns_are_refused():
    data, y = frame()
    with pytest.raises(PrivacyParameterError, match="categories="):
        DPXGBClassifier(classes=["no", "yes"], **SHARED).fit(data.astype({"grade": "category"}), y)


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars"])
def test_undeclared_columns_of_texts_are_refused(kind):
    data, y = frame()
    data["key"] = [f"person {i}" for i in range(len(y))]
    data = data.astype({"grade": "string", "key": "string"})  # pandas before 3 has objects
    model = DPXGBClassifier(classes=["no", "yes"], **SHARED)
    with pytest.raises(PrivacyParameterError, match=r"'grade', 'key'.*Drop") as caught:
        model.fit(as_table(data, kind), y)
    assert "person 1" not in str(caught.value)
    model.set_params(categories={"grade": NAMES}).fit(as_table(data.drop(columns="key"), kind), y)
    with pytest.raises(PrivacyParameterError, match="'key'"):
        model.predict(as_table(data, kind))


def test_other_tables_are_left_alone():
    X, _ = arrays()
    assert prepare_table(X, {0: NAMES}) is X
    data, _ = frame()
    data = data.drop(columns="grade")
    assert prepare_table(data, None) is data
    assert prepare_table(data, {"x": 3}) is data
