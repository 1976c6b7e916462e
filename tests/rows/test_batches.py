"""Batches of a `DataIter` are read alone: what one brings does not say what another one means."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from xgb_dp.data.matrices import private_matrix
from xgb_dp.engine import native
from xgb_dp.errors import PrivacyError, PrivacyParameterError, PrivacyRefusal
from xgb_dp.request.schema import check_source
from xgb_dp.testing import fixed_noise

from ..batches import Batches

Batch = dict[str, Any]
NAMES = ["x", "y"]
PARAMS = private(objective="binary:logistic", max_depth=2, nthread=1, verbosity=0)
NAMED = PARAMS | {"dp_categories": {"c": NAMES}}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Batches without a place for their pages have them where the process is."""
    monkeypatch.chdir(tmp_path)


def matrix(*batches: Batch) -> xgb.DMatrix:
    return xgb.DMatrix(Batches(batches), enable_categorical=True, nthread=1)


def pandas_of(values: list[str | None], names: list[str] = NAMES) -> pd.DataFrame:
    cells = pd.Categorical(values, categories=names)
    return pd.DataFrame({"a": np.zeros(len(values)), "c": cells})


def enum_of(values: list[str | None], names: list[str] = NAMES) -> pl.DataFrame:
    return pl.DataFrame({"a": np.zeros(len(values)), "c": pl.Series(values, dtype=pl.Enum(names))})


def arrow_of(values: list[str | None], names: list[str] = NAMES) -> pa.Table:
    codes = pa.array([None if v is None else names.index(v) for v in values], pa.int32())
    cells = pa.DictionaryArray.from_arrays(codes, pa.array(names))
    return pa.table({"a": np.zeros(len(values)), "c": cells})


FRAMES: dict[str, Callable[..., Any]] = {"pandas": pandas_of, "polars": enum_of, "arrow": arrow_of}
VALUES = ["x", "y", "x"]


def batch(data: Any, **given: Any) -> Batch:
    return {"data": data, "label": np.arange(len(data)) % 2, **given}


def numpy_of(columns: int = 2) -> np.ndarray:
    return np.zeros((3, columns))


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


# Pairs of batches that XGBoost joins without a word, and that no one row may turn into others.
DIFFERENT: dict[str, tuple[Batch, Batch]] = {
    **{f"order of names, {k}": (batch(f(VALUES)), batch(f(VALUES, ["y", "x"])))
       for k, f in FRAMES.items()},
    **{f"another name, {k}": (batch(f(VALUES)), batch(f(["SECRET"] * 3, ["SECRET", "y"])))
       for k, f in FRAMES.items()},
    "order of columns": (
        batch(frame(a=[0.0, 1, 2], b=[1.0, 1, 1])), batch(frame(b=[0.0, 1, 2], a=[1.0, 1, 1]))
    ),
    "other columns": (batch(frame(a=[0.0, 1], b=[1.0, 1])), batch(frame(a=[0.0, 1], z=[1.0, 1]))),
    "more columns": (batch(numpy_of(2)), batch(numpy_of(3))),
    "fewer columns": (batch(numpy_of(3)), batch(numpy_of(2))),
    "wider sparse rows": (
        {"data": sp.csr_matrix(np.eye(2)), "label": [0, 1]},
        {"data": sp.csr_matrix(np.eye(2, 3)), "label": [0, 1]},
    ),
    "names after none": (batch(numpy_of()), batch(frame(b=[0.0, 1, 2], a=[1.0, 1, 1]))),
    "codes after none": (
        batch(numpy_of()), batch(numpy_of(), feature_types=["q", "c"], feature_names=None)
    ),
    "weights that stay": (batch(numpy_of(), weight=np.ones(3)), batch(numpy_of())),
    "weights that come": (batch(numpy_of()), batch(numpy_of(), weight=np.ones(6))),
    "labels that stay": (batch(numpy_of()), {"data": numpy_of()}),
    "margins that stay": (batch(numpy_of(), base_margin=np.ones(3)), batch(numpy_of())),
    "bounds that stay": (batch(numpy_of(), label_lower_bound=np.ones(3)), batch(numpy_of())),
}  # fmt: skip


@pytest.mark.parametrize("name", list(DIFFERENT))
def test_batches_that_do_not_agree_are_refused(name):
    first, second = DIFFERENT[name]
    d = matrix(first, second)
    config = NAMED if "name" in name and "after" not in name else PARAMS
    plain = matrix(first, first)
    public = xgb.train({"nthread": 1, "objective": "binary:logistic"}, plain, 1)
    calls: list[Callable[[], Any]] = [
        lambda: xgb.train(config, d, 1),
        lambda: xgb.train(config | {"dp_public_data": d}, plain, 1),
        lambda: xgb.train(config | {"dp_public_evals": True}, plain, 1, evals=[(d, "public")]),
        lambda: xgb_dp.evaluate(public, d, epsilon=1.0, delta=1e-6),
        lambda: xgb_dp.select({**config}, d, [{}], epsilon=1.0, delta=1e-6),
    ]
    for call in calls:
        with pytest.raises(PrivacyRefusal, match="inconsistent batches") as error:
            call()
        assert "SECRET" not in str(error.value)
        assert not any(c.isdigit() for c in str(error.value))


@pytest.mark.parametrize("kind", list(FRAMES))
def test_batches_that_agree_train_as_the_whole(kind):
    rng = np.random.default_rng(0)
    values = rng.choice([*NAMES, None], 200).tolist()
    y = np.array([v == "y" for v in values], dtype=float)
    parts = [slice(0, 7), slice(7, 7), slice(7, 200)]

    def fit(d: xgb.DMatrix) -> bytes:
        with fixed_noise(3):
            return bytes(xgb.train(NAMED, d, 3).save_raw("ubj"))

    make = FRAMES[kind]
    whole = fit(xgb.DMatrix(make(values), y, enable_categorical=True))
    batches = [{"data": make(values[part]), "label": y[part]} for part in parts]
    assert fit(matrix(*batches)) == whole


def test_types_of_numbers_may_differ():
    """Which type a batch has may follow from one cell of it, and changes no other cell."""
    one = batch(frame(a=[1, 2, 3], b=[True, False, True]))
    other = batch(frame(a=[1.5, np.nan, 3.0], b=[0, 1, 0]))
    d = matrix(one, other)
    check_source(d, "`d`")
    whole = frame(a=[1, 2, 3, 1.5, np.nan, 3.0], b=[1, 0, 1, 0, 1, 0])
    for model in readers(whole):
        np.testing.assert_array_equal(model.predict(d), model.predict(xgb.DMatrix(whole)))


def test_a_matrix_of_a_bare_handle_is_refused():
    """It has lost what is known of the batches, or of the file."""
    d = matrix(*DIFFERENT["order of names, arrow"])
    bare = xgb.DMatrix(d.handle)
    model = xgb.train(NAMED, matrix(batch(pandas_of(VALUES))), 1)
    try:
        with pytest.raises(PrivacyRefusal, match="raw handle"):
            xgb.train(NAMED, bare, 1)
        with pytest.raises(PrivacyRefusal, match="raw handle"):
            xgb_dp.evaluate(model, bare, epsilon=1.0, delta=1e-6)
    finally:
        del bare.handle  # it is that of the other one


# --------------------------------------------------------------------- in pairs
def readers(like: Any) -> list[xgb.Booster]:
    """Public models of a table like this one, whose predictions tell its cells."""
    rng = np.random.default_rng(5)
    if isinstance(like, pd.DataFrame):
        many = like.iloc[rng.integers(len(like), size=500)].reset_index(drop=True)
    else:
        many = np.where(rng.random((500, like)) < 0.2, np.nan, rng.normal(size=(500, like)))
    data = xgb.DMatrix(many, rng.normal(size=500), enable_categorical=True, nthread=1)
    params = {"max_depth": 4, "nthread": 1, "base_score": 0.0, "max_cat_to_onehot": 1}
    return [xgb.train(params | {"seed": seed, "subsample": 0.5}, data, 4) for seed in range(2)]


KINDS = [*FRAMES, "by appearance, arrow", "by appearance, polars", "numpy", "csr"]


def random_batch(rng: np.random.Generator, kind: str) -> Batch:
    """A few rows with a number and a category; some kinds list categories as they come."""
    n = int(rng.integers(1, 4))
    values = rng.choice(NAMES, n).tolist()
    weights = {"weight": np.ones(n)} if rng.random() < 0.1 else {}
    if kind in FRAMES:
        names = NAMES if rng.random() < 0.8 else NAMES[::-1]
        return batch(FRAMES[kind](values, names), **weights)
    if kind.endswith("arrow"):
        data = pa.table({"a": np.zeros(n), "c": pa.array(values).dictionary_encode()})
        return batch(data, **weights)
    if kind.endswith("polars"):
        data = pl.DataFrame({"a": np.zeros(n), "c": values}).with_columns(
            pl.col("c").cast(pl.Enum(list(dict.fromkeys(values))))
        )
        return batch(data, **weights)
    if kind == "numpy":
        X = rng.choice([0.0, 1.0, np.nan], (n, 3 if rng.random() < 0.1 else 2))
        return batch(X, **weights)
    rows = []
    for _ in range(n):
        columns = rng.permutation(3)[: rng.integers(4)].astype(np.int32)
        rows.append(np.append(columns, columns[:1]) if rng.random() < 0.15 else columns)
    X = sp.csr_matrix((n, 3), dtype=np.float32)
    X.indices = np.concatenate(rows).astype(np.int32)
    X.indptr = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int32)
    X.data = rng.normal(size=len(X.indices)).astype(np.float32)
    return {"data": X, "label": np.arange(n) % 2, **weights}


def read(models: dict[int, list[xgb.Booster]], *batches: Batch) -> np.ndarray | None:
    """What public models say of each row, its label and its weight; None if rows are refused.

    Categories are compared by name: XGBoost re-codes them for a model.
    """
    try:
        d = matrix(*batches)
    except xgb.core.XGBoostError:  # it compares how many categories there are
        return None
    try:
        check_source(d, "`d`")
        native.check_rows(d)
    except PrivacyError:
        return None
    predicted = [model.predict(d) for model in models[0 if d.feature_names else d.num_col()]]
    weights = d.get_weight()
    return np.stack([*predicted, d.get_label(), weights if weights.size else np.zeros(d.num_row())])


def test_batches_give_together_what_each_gives_alone():
    """350 pairs: refused, or the rows of each are those that it has by itself."""
    rng = np.random.default_rng(7)
    models = {0: readers(pandas_of(VALUES)), 2: readers(2), 3: readers(3)}
    refused = 0
    for number in range(350):
        pair = [random_batch(rng, KINDS[number % len(KINDS)]) for _ in range(2)]
        alone = [read(models, one) for one in pair]
        together = read(models, *pair)
        if together is None:
            refused += 1
            continue
        assert all(rows is not None for rows in alone)
        np.testing.assert_array_equal(together, np.concatenate(alone, axis=1))
    assert 50 < refused < 250


# ------------------------------------------------------------------ names that are no ASCII
def test_names_that_are_no_ascii_are_compared_whole():
    names, y = ["aé", "b"], np.array([0, 1] * 50)
    params = PARAMS | {"dp_categories": {"c": names}}

    def given(names: list[str]) -> xgb.DMatrix:
        return xgb.DMatrix(pandas_of(names * 50, names), y, enable_categorical=True)

    model = xgb.train(params, given(names), 2)
    rows = pd.DataFrame({"a": np.zeros(100), "c": names * 50})
    assert xgb_dp.evaluate(model, (rows, y), epsilon=1e3, delta=1e-6)  # it knows its names
    with pytest.raises(PrivacyError, match="categories"):
        xgb.train(params, given(["aé", "c"]), 2)


# --------------------------------------------------------------------- whole numbers
BIG = 2**60 + 2**36 + 1  # rounded to 32 bits it is another number than by way of 64


def first_cell(X: Any) -> float:
    return float(xgb.DMatrix(X).get_data().toarray()[0, 0])


def first_label(y: Any) -> float:
    return float(xgb.DMatrix(np.zeros((2, 1)), label=y).get_label()[0])


@pytest.mark.parametrize("other", [1, 0.5, None, 2**63])
def test_whole_numbers_are_read_alone(other):
    """The type of a list, a column or labels follows from one cell, and changes no other."""
    alone = float(np.float32(np.float64(BIG)))
    assert alone != float(np.array([BIG]).astype(np.float32)[0])
    cells = [BIG, other]
    assert first_cell([[v] for v in cells]) == alone
    assert first_cell(pd.DataFrame({"a": cells})) == alone
    assert first_cell(tuple((v,) for v in cells)) == alone
    for kind in (np.int64, np.uint64):
        assert first_cell([[kind(BIG)], [other]]) == alone
        assert first_cell([[kind(BIG)], [np.longdouble(0.5)]]) == alone
    if other in (1, None):
        for kind in ("Int64", "int64[pyarrow]"):
            column = pd.array(cells, dtype=kind)
            assert first_cell(pd.DataFrame({"a": column})) == alone
            assert float(private_matrix(pd.DataFrame({"a": column})).get_data()[0, 0]) == alone
    if other is not None:
        sparse = pd.DataFrame({"a": pd.arrays.SparseArray(cells)})
        with pytest.warns(UserWarning, match="dense"):
            assert first_cell(sparse) == alone
        assert first_cell(np.array(cells).reshape(-1, 1)) == alone
        assert first_label(cells) == first_label(tuple(cells)) == alone
        assert first_label(pd.Series(cells)) == first_label(np.array(cells)) == alone
        assert first_label(pd.DataFrame({"y": cells})) == alone


def test_a_missing_label_of_a_dictionary_is_no_label():
    cells = pa.chunked_array([pa.array([1.0, None]).dictionary_encode()])
    with pytest.raises(xgb.core.XGBoostError, match="Label contains NaN"):
        first_label(cells)
    assert first_label(pa.chunked_array([pa.array([1.0, 0.0]).dictionary_encode()])) == 1.0


# --------------------------------------------------------------------- types of columns
def test_feature_types_do_not_hide_a_dictionary():
    """Else codes in a list that follows from all rows would train, and be judged, as numbers."""
    X, y = pd.DataFrame({"c": pd.Categorical(["m", "n"] * 50)}), np.array([0, 1] * 50)
    numbers = pd.DataFrame({"c": y.astype(float)})
    model = xgb.train(PARAMS, xgb.DMatrix(numbers, y), 2)
    for types in (["q"], ["float"], None):
        d = xgb.DMatrix(X, y, enable_categorical=True, feature_types=types)
        d.feature_types = types
        assert d.feature_types == types
        with pytest.raises(PrivacyRefusal, match="feature_types"):
            xgb.train(PARAMS, d, 1)
        with pytest.raises(PrivacyRefusal, match="feature_types"):
            xgb_dp.evaluate(model, d, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_name_in_front_of_the_dictionary_of_a_frame(kind):
    """Its codes are those of the rows: one more name moves the codes of all others."""
    y = np.arange(200) % 2
    names = np.where(y == 1, "y", "x")
    codes = pd.DataFrame({"a": np.zeros(200), "c": y.astype(float)})
    d = xgb.DMatrix(codes, y, feature_types=["q", "c"], enable_categorical=True)
    params = PARAMS | {"dp_categories": {"c": 2}}
    model = xgb.train(params, d, 3)
    for more in ([], ["a"]):
        listed = [*more, *names]
        table: Any = pd.DataFrame({"a": 0.0, "c": pd.Series(listed, dtype="category")})
        if kind == "polars":
            table = pl.DataFrame({"a": np.zeros(len(listed)), "c": listed})
            table = table.with_columns(pl.col("c").cast(pl.Categorical))
        labels = [*[0] * len(more), *y]
        with pytest.raises(PrivacyParameterError, match="categor"):
            xgb_dp.evaluate(model, (table, labels), epsilon=1.0, delta=1e-6)
        dictionary = xgb.DMatrix(table, labels, enable_categorical=True)
        with pytest.raises(PrivacyParameterError, match="names"):
            xgb_dp.evaluate(model, dictionary, epsilon=1.0, delta=1e-6)
        with pytest.raises(PrivacyParameterError, match="names"):
            xgb.train(params, dictionary, 3)
