"""What two parts of the rows give alone is what they give together, or all of them raise.

Parts are what a worker of a cluster joins. Which rows share one follows from other rows.
"""

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from itertools import combinations_with_replacement
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost as xgb

import xgb_dp
from xgb_dp.data.ids import encode_persons
from xgb_dp.data.worker_rows import worker_matrix
from xgb_dp.errors import PrivacyError, PrivacyParameterError, PrivacyRefusal, RowDomainError
from xgb_dp.request.schema import read_schema

BIG = 2**54 + 2**30 + 1  # rounded to another 32-bit float than by way of 64 bits
DECLARED = {"dp_categories": {"c": ["u", "v"], "n": [0, 1, 2]}}
FLOATS = [0.1, np.nan]


def matrix(*parts: dict[str, Any], **params: Any) -> xgb.DMatrix:
    return worker_matrix(
        params.get("dp_categories"),
        parts=list(parts),
        model=None,
        Xy_cats=None,
        missing=np.nan,
        nthread=1,
    )


def cells(d: xgb.DMatrix) -> np.ndarray:
    """Missing cells are NaN."""
    stored = d.get_data()
    out = np.full(stored.shape, np.nan, dtype=np.float32)
    rows = np.repeat(np.arange(stored.shape[0]), np.diff(stored.indptr))
    out[rows, stored.indices] = stored.data
    return out


def content(d: xgb.DMatrix) -> list[Any]:
    """All that a training reads of a matrix."""
    names = ("label", "weight", "base_margin", "label_lower_bound", "label_upper_bound")
    return [cells(d), *(d.get_float_info(name) for name in names)]


def outcome(*parts: dict[str, Any], **params: Any) -> Any:
    """A matrix, or the error without what says where it was raised."""
    try:
        return matrix(*parts, **params)
    except PrivacyError as error:
        return type(error), str(error)


def check_pairs(parts: Sequence[dict[str, Any]], kinds: Any = None, **params: Any) -> None:
    """Parts of one kind agree with each other, and with none of another kind."""
    alone = [outcome(part, **params) for part in parts]
    kinds = [0] * len(parts) if kinds is None else kinds
    for i, j in combinations_with_replacement(range(len(parts)), 2):
        if (i + j) % 2:
            i, j = j, i  # either may be the first
        together = outcome(parts[i], parts[j], **params)
        raised = [one for one in (alone[i], alone[j]) if isinstance(one, tuple)]
        if raised:
            assert together in raised
        elif kinds[i] != kinds[j]:
            assert together[0] is PrivacyParameterError
            assert "Two partitions differ in" in together[1]
        else:
            assert read_schema(together) == read_schema(alone[i]) == read_schema(alone[j])
            for joined, a, b in zip(*map(content, (together, alone[i], alone[j])), strict=True):
                np.testing.assert_array_equal(joined, np.concatenate([a, b]))


def column(values: Any, kind: Any = None) -> pd.DataFrame:
    return pd.DataFrame({"a": pd.Series(values, dtype=kind)})


COLUMNS: dict[str, pd.DataFrame] = {
    "int64": column([BIG, 3], "int64"),
    "uint64": column([BIG, 3], "uint64"),
    "Int64": column([BIG, None], "Int64"),
    "int64[pyarrow]": column([BIG, None], "int64[pyarrow]"),
    "float64": column(FLOATS, "float64"),
    "float32": column(FLOATS, "float32"),
    "float16": column(FLOATS, "float16"),
    "Float32": column([0.1, None], "Float32"),
    "double[pyarrow]": column([0.1, None], "double[pyarrow]"),
    "bool": column([True, False], "bool"),
    "boolean": column([True, None], "boolean"),
    "bool[pyarrow]": column([True, None], "bool[pyarrow]"),
    "Sparse[int]": column(pd.arrays.SparseArray([0, 3, 0])),
    "object": column([BIG, 0.1, True, None, Decimal("0.5")], object),
    "object, missing": column([None, None], object),
    "object, a date": column([date(2020, 1, 1)], object),
    "dates": column(["2020-01-01"], "datetime64[ns]"),
    "text": column(["1"], "string"),
    "dictionary": column([1, 2], "category"),
    "dictionary of texts": column(["u", "v"], "category"),
    "infinite": column([np.inf]),
    "beyond": column([1e300]),
    "no rows": column([], "float64"),
    "no rows, object": column([], object),
    "no rows, int64": column([], "int64"),
    "no rows, dictionary": column([], "category"),
    "no rows, dates": column([], "datetime64[ns]"),
}
ARRAYS: dict[str, Any] = {
    "int64": np.array([[BIG, 1]]),
    "uint64": np.array([[BIG, 1]], dtype=np.uint64),
    "float64": np.array([FLOATS]),
    "float16": np.array([FLOATS], dtype=np.float16),
    "bool": np.array([[True, False]]),
    "object": np.array([[BIG, None]], dtype=object),
    "masked": np.ma.MaskedArray([[BIG, 7]], mask=[[False, True]]),
    "complex": np.array([[1j, 0]]),
    "no rows": np.empty((0, 2)),
    "no rows, object": np.empty((0, 2), dtype=object),
}
SPARSE: dict[str, Any] = {
    "csr": sp.csr_matrix(np.eye(2)),
    "csr of int64": sp.csr_matrix(np.array([[BIG, 0]])),
    "csr of bool": sp.csr_matrix(np.array([[True, False]])),
    "csr, stored zeros": sp.csr_matrix((np.zeros(2), [1, 0], [0, 2]), shape=(1, 2)),
    "csc": sp.csc_matrix(np.eye(2)),
    "coo array": sp.coo_array(np.eye(2)),
    "coo, a cell twice": sp.coo_array((np.ones(2), ([0, 0], [1, 1])), shape=(1, 2)),
    "no rows": sp.csr_matrix((0, 2)),
    "complex": sp.csr_matrix(np.array([[1j, 0]])),
}


def parts_of(*tables: Any) -> list[dict[str, Any]]:
    return [{"data": table, "label": np.zeros(table.shape[0])} for table in tables]


@pytest.mark.parametrize("params", [{}, {"dp_categories": {"a": 3}}], ids=["numbers", "codes"])
def test_columns_of_any_types(params):
    """A number of codes declares no dictionary: a frame's own stays refused in each part alone."""
    check_pairs(parts_of(*COLUMNS.values()), **params)


@pytest.mark.parametrize("tables", [ARRAYS, SPARSE], ids=["arrays", "sparse"])
def test_tables_without_names(tables):
    check_pairs(parts_of(*tables.values()))


def test_kinds_of_tables_do_not_mix():
    """A dense part behind a sparse one lost its zeros; also with parts without rows."""
    frame = pd.DataFrame({"a": [0.0], "b": [0.0]})
    kinds = [frame, frame.to_numpy(), sp.csr_matrix(frame.to_numpy())]
    check_pairs(parts_of(*kinds, *(kind[:0] for kind in kinds)), "faSfaS")


NAMED: dict[str, pd.DataFrame] = {
    name: pd.DataFrame({"x": [0.5] * len(c), "c": c, "n": n})
    for name, c, n in (
        ("objects", pd.Series(["v", None], dtype=object), pd.Series([0, 1])),
        ("texts", pd.Series(["v", None], dtype="string"), pd.Series([2.0, None])),
        ("dictionary", pd.Categorical(["v", "u"]), pd.Categorical([2, 0])),
        ("its reverse", pd.Categorical(["v"], ["v", "u"]), pd.Categorical([2], [2, 1])),
        ("missing", pd.Series([np.nan]), pd.Series([None], dtype=object)),
        ("truth values", pd.Series(["u", "v"]), pd.Series([True, False])),
        ("with a missing one", pd.Series(["u", "v"]), pd.Series([True, None], dtype=object)),
        ("another name", pd.Categorical(["w"]), pd.Series([0])),
        ("no rows", pd.Categorical([], ["w"]), pd.Categorical([])),
        ("no rows, objects", pd.Series([], dtype=object), pd.Series([], dtype=object)),
    )
}


def test_declared_names():
    """By name in each part, whatever dictionary the part comes with."""
    check_pairs(parts_of(*NAMED.values()), **DECLARED)
    joined = matrix(*parts_of(NAMED["dictionary"]), **DECLARED)
    np.testing.assert_array_equal(cells(joined)[:, 1:], [[1, 2], [0, 0]])


def table(names: list[Any], rows: int = 2) -> pd.DataFrame:
    values = np.arange(rows * len(names), dtype=float)
    return pd.DataFrame(values.reshape(rows, len(names)), columns=names)


def test_columns_have_one_order_and_the_same_names():
    """pandas would align them by name, and one more row with a column fill the others with 0."""
    names: list[list[Any]] = [
        ["a", "b"], ["a"], ["b", "a"], ["a", "c"], ["a", "b", "c"], ["a", 1], [("a", "b"), "b"],
        [0, 1],
    ]  # fmt: skip
    tables = [table(n, rows) for rows in (2, 0) for n in names]
    check_pairs(parts_of(*tables), [*range(len(names))] * 2)
    check_pairs(parts_of(table([0, np.int64(1)]), table([np.int32(0), 1])))
    check_pairs(parts_of(np.zeros((1, 2)), np.zeros((1, 3)), np.zeros((0, 2))), [2, 3, 2])


LABELS: dict[str, dict[str, Any]] = {
    "one": {"label": np.zeros(2)},
    "a column": {"label": np.zeros((2, 1))},
    "two": {"label": np.zeros((2, 2))},
    "two by name": {"label": table(["u", "v"])},
    "two in another order": {"label": table(["v", "u"])},
    "weights": {"label": np.zeros(2), "weight": np.ones(2)},
    "margins": {"label": np.zeros(2), "base_margin": np.ones(2)},
    "two margins": {"label": np.zeros(2), "base_margin": np.ones((2, 2))},
    "bounds": {"label_lower_bound": np.ones(2), "label_upper_bound": np.ones(2)},
    "upper bounds": {"label_upper_bound": np.ones(2)},
    "none": {},
}


def test_labels_weights_and_margins_are_the_same_in_all_parts():
    parts = [
        {"data": np.zeros((rows, 2)), **{name: values[:rows] for name, values in meta.items()}}
        for rows in (2, 0)
        for meta in LABELS.values()
    ]
    check_pairs(parts, [*range(len(LABELS))] * 2)


def test_labels_of_any_types():
    labels = [
        np.array(values, dtype=object)
        for values in ([True, False], [0.5, 1.0], [BIG, 3], ["0.5", "1"], [None, 1.0], [])
    ]
    labels += [
        pd.Series([1, 0], dtype="category"), pd.Series([BIG, 1], dtype="int64[pyarrow]"),
        pd.Series([1, None], dtype="Int64"), pd.to_datetime(["2020-01-01"] * 2),
        np.array([0.1, 1], dtype=np.float16), np.array([BIG, 3]),
    ]  # fmt: skip
    check_pairs([{"data": np.zeros((len(v), 1)), "label": v} for v in labels])


@pytest.mark.parametrize("name", ["label", "weight", "base_margin", "label_upper_bound"])
def test_each_part_has_an_entry_for_each_row(name):
    """Features of 3 + 1 rows and labels of 1 + 3 would pass together."""
    parts = [
        {"data": np.zeros((rows, 2)), "label": np.zeros(rows), name: np.ones(4 - rows)}
        for rows in (3, 1)
    ]
    with pytest.raises(PrivacyParameterError, match=f"`{name}` must have one entry"):
        matrix(*parts)


def test_persons_are_given_in_all_parts_or_in_none():
    part = {"data": np.zeros((2, 2)), "label": np.zeros(2)}
    with pytest.raises(PrivacyParameterError, match="differ in `dp_privacy_id`"):
        matrix({**part, "persons": encode_persons([1, 2])}, part)


def test_what_is_not_a_table_of_rows_is_refused():
    part = {"data": np.zeros((2, 2)), "label": np.zeros(2)}
    with pytest.raises(PrivacyRefusal, match="Query groups"):
        matrix({**part, "qid": np.zeros(2)})
    for odd in ("ab", {"a": [1.0]}, memoryview(b"ab")):
        with pytest.raises((PrivacyParameterError, RowDomainError)):
            matrix({**part, "data": odd})


def test_differences_are_told_without_names():
    """A column that occurs in one part only may be named after a cell."""
    secret = "-".join(["SECRET", "CELL"])
    one, other = table(["a"]), table(["a", secret])
    with pytest.raises(PrivacyParameterError, match="differ in the columns") as caught:
        matrix(*({"data": t, "label": np.zeros(2)} for t in (one, other)))
    assert secret not in str(caught.value)


def test_collections_are_refused_where_rows_in_memory_are_expected():
    """A library would compute them, and join their partitions by name."""
    X = dd.from_pandas(pd.DataFrame({"a": [0.0, 1.0]}), npartitions=2)
    rows, labels = X.to_dask_array(lengths=True), X["a"].to_dask_array(lengths=True)
    local, y = np.zeros((2, 1)), np.zeros(2)
    model = xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=2, n_estimators=1)
    model.fit(local, y)
    budget = {"epsilon": 1.0, "delta": 1e-6}
    calls: list[Callable[[], Any]] = [
        lambda: model.fit(X, X["a"]),
        lambda: model.fit(local, labels),
        lambda: model.predict(rows),
        lambda: xgb_dp.evaluate(model, (rows, y), **budget),
        lambda: xgb_dp.evaluate(model, (local, labels), **budget),
        lambda: xgb_dp.split((X, X["a"])),
        lambda: xgb_dp.discover(X, **budget),
    ]
    for call in calls:
        with pytest.raises(PrivacyParameterError, match="Expected rows in memory"):
            call()
