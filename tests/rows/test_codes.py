"""Others can code raw columns as a model reads them, with our package and without it."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb

from tests.cli.calls import invoke
from tests.conftest import private
from tests.upstream.stock import run_stock
from xgb_dp import LedgerError, PrivacyParameterError, RowDomainError, Schema

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "deploy.md"
SCHEMA = """\
target: buys
classes: [no, yes]
missing: ["", "?"]
columns:
  age: {bounds: [0, 120]}
  zip: [011, "1.10", on, "?"]
  grade: [3, 1, 2]
  pet: {categories: [cat, dog, others], other: others}
  town: {categories: [Oslo, Rome], other: missing}
  seen: {date: [days, month, weekday, hour], since: 2020-01-01}
"""
EXPECTED = {  # the second row has unknown names, the third is missing
    "age": [30, 41.5, np.nan], "zip": [0, 2, 3], "grade": [1, 0, np.nan], "pet": [1, 2, np.nan],
    "town": [1, np.nan, np.nan], "seen_days": [366, 0, np.nan], "seen_month": [1, 1, np.nan],
    "seen_weekday": [4, 2, np.nan], "seen_hour": [13, 0, np.nan],
}  # fmt: skip
RAW = {
    "town": ["Rome", "Paris", "?"],  # in another order than in the schema
    "age": ["30", "41.5", ""],
    "zip": ["011", "on", "?"],
    "grade": ["1", "3", ""],
    "pet": ["dog", "snake", ""],
    "seen": ["2021-01-01T13:45", "2020-01-01", "?"],
    "key": ["x", "y", "z"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A schema, a model that the command line trained with it, and raw rows."""
    folder = tmp_path_factory.mktemp("codes")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({n: np.array(v)[rng.integers(0, 3, 400)] for n, v in RAW.items()})
    rows["buys"] = np.where(rows["pet"] == "snake", "yes", "no")
    rows.to_csv(folder / "rows.csv", index=False)
    (folder / "schema.yaml").write_text(SCHEMA)
    files = [str(folder / name) for name in ("rows.csv", "schema.yaml", "model.json")]
    options = ["--epsilon", "8", "--delta", "1e-6", "--rounds", "20"]
    done = invoke("train", files[0], "--schema", files[1], "--model", files[2], *options)
    assert done.exit_code == 0, done.output
    return folder


TABLES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "mapping": dict,
    "typed": lambda raw: pd.DataFrame(raw).assign(
        age=[30, 41.5, np.nan],
        grade=[1, 3, None],
        pet=pd.Categorical(["dog", "snake", None]),
        seen=pd.to_datetime(["2021-01-01T13:45", "2020-01-01", None], format="mixed"),
    ),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("source", ["model", "file"])
def test_codes_follow_the_declarations(folder, source, kind):
    schema = (
        Schema.from_model(folder / "model.json")
        if source == "model"
        else Schema.from_file(folder / "schema.yaml")
    )
    coded = schema.encode(TABLES[kind](RAW))
    assert list(coded) == list(EXPECTED) == list(schema.feature_names)
    assert set(coded.dtypes) == {np.dtype(np.float32)}
    expected = pd.DataFrame(EXPECTED, dtype=np.float32)
    np.testing.assert_array_equal(coded.to_numpy(), expected.to_numpy())
    assert schema.feature_types == ("float", *["c"] * 4, *["float"] * 4)


def test_codes_predict_as_the_command_line_does(folder):
    """Also codes that the function of the page makes, with stock XGBoost and pandas alone."""
    pd.read_csv(folder / "rows.csv", dtype=str).drop(columns="buys").to_csv(
        folder / "new.csv", index=False
    )
    assert invoke("predict", folder / "model.json", folder / "new.csv", "--out",
                  folder / "out.csv").exit_code == 0  # fmt: skip
    expected = pd.read_csv(folder / "out.csv")["probability_yes"].to_numpy()
    assert np.ptp(expected) > 0.1
    schema = Schema.from_model(folder / "model.json")
    raw = pd.read_csv(folder / "new.csv", dtype=str, keep_default_na=False)
    matrix = xgb.DMatrix(schema.encode(raw), feature_types=list(schema.feature_types))
    booster = xgb.Booster(model_file=folder / "model.json")
    np.testing.assert_allclose(booster.predict(matrix), expected, rtol=1e-6)

    [code] = re.findall(r"```python\n(import json\n.*?def code\(.*?)```", PAGE.read_text(), re.S)
    score = """
import sys, xgboost as xgb
booster = xgb.Booster(model_file=sys.argv[1] + "/model.json")
raw = pd.read_csv(sys.argv[1] + "/new.csv", dtype=str, keep_default_na=False)
matrix = xgb.DMatrix(code(raw, booster), feature_types=booster.feature_types)
print(booster.predict(matrix).tolist())
raw.loc[5, "zip"] = "other"
try:
    code(raw, booster)
except ValueError as error:
    print("zip" in str(error))
"""
    function = code[: code.index("\n\n\n", code.index("def code("))]
    printed = run_stock(function + score, str(folder), light=False).splitlines()
    np.testing.assert_allclose(json.loads(printed[0]), expected, rtol=1e-6)
    assert printed[1:] == ["True"]


def test_wrong_tables_and_cells_are_refused(folder):
    schema = Schema.from_model(folder / "model.json")
    with pytest.raises(PrivacyParameterError, match="lacks 'pet'"):
        schema.encode({n: v for n, v in RAW.items() if n != "pet"})
    with pytest.raises(PrivacyParameterError, match="data frame"):
        schema.encode(np.zeros((3, 9)))
    for name in ("zip", "age", "seen"):
        with pytest.raises(RowDomainError, match=f"'{name}'") as caught:
            schema.encode(RAW | {name: ["secret"] * 3})
        assert "secret" not in str(caught.value)
    (folder / "empty.yaml").write_text("target: y\n")
    with pytest.raises(PrivacyParameterError, match="no key `columns`"):
        Schema.from_file(folder / "empty.yaml")


@pytest.mark.parametrize("names", [["low", "high", "ünïque"], [10, 30, 20]])
def test_stored_categories_are_enough(names):
    """A model that was trained on a frame of categories has no schema of its own."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 300)
    rows = pd.DataFrame({"g": pd.Categorical.from_codes(codes, names), "x": rng.normal(size=300)})
    params = private(objective="binary:logistic", dp_categories={"g": names}, nthread=1)
    booster = xgb.train(params, xgb.DMatrix(rows, codes == 1, enable_categorical=True), 5)
    for model in (booster, booster.save_raw("json"), bytes(booster.save_raw("ubj"))):
        schema = Schema.from_model(model)
        assert schema.feature_types[0] == "c"
        coded = schema.encode(rows.assign(g=rows["g"].astype(object), more="ignored"))
        np.testing.assert_array_equal(coded["g"], codes)
        np.testing.assert_array_equal(coded["x"], rows["x"].astype(np.float32))
    with pytest.raises(RowDomainError, match="'g': a row has an undeclared value"):
        schema.encode(pd.DataFrame({"g": ["other"], "x": [1.0]}))
    with pytest.raises(PrivacyParameterError, match="'x' is not a column of numbers"):
        schema.encode(rows.assign(x="1"))
    with pytest.raises(PrivacyParameterError, match="no names for the categories of 'g'"):
        Schema.from_model(booster[:2]).encode(rows)


def test_a_schema_that_does_not_fit_its_model_is_refused(folder):
    booster = xgb.Booster(model_file=folder / "model.json")
    stored = json.loads(booster.attr("dp_schema"))
    swapped = dict(reversed(stored["columns"].items()))
    other = stored["columns"] | {"pet": {"categories": ["dog", "cat", "others"]}}
    for columns in (swapped, other, stored["columns"] | {"more": {}}):
        booster.set_attr(dp_schema=json.dumps(stored | {"columns": columns}))
        with pytest.raises(LedgerError, match="differs from the features"):
            Schema.from_model(booster)
    booster.set_attr(dp_schema=json.dumps(stored))  # no schema is kept from before
    assert Schema.from_model(booster).encode(RAW).shape == (3, 9)


def test_a_model_without_names_reads_by_place():
    X = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
    params = private(objective="binary:logistic", nthread=1)
    booster = xgb.train(params, xgb.DMatrix(X, X[:, 0] > 0), 2)
    coded = Schema.from_model(booster).encode(pd.DataFrame(X, columns=["a", "b"]))
    np.testing.assert_array_equal(coded.to_numpy(), X)
