"""Every cell means the same whatever stands beside it, in every container, at every entry."""

import datetime
import warnings
from collections import UserList, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.pairs import HIDDEN, Converted, Reader, check_pairs, masked, objects
from xgb_dp.data.arrays import as_cells, as_numbers, split_dates
from xgb_dp.data.cells import MISSING
from xgb_dp.data.frames import encode_labels, label_array, parse_classes
from xgb_dp.data.ids import encode_persons
from xgb_dp.data.matrices import private_matrix
from xgb_dp.discovery.column_reader import read_numbers, read_strings
from xgb_dp.domain.columns import read_codes as declared_codes
from xgb_dp.domain.columns import read_numbers as declared_numbers
from xgb_dp.errors import PrivacyParameterError, RowDomainError
from xgb_dp.evaluation.rows import Groups, group_codes

pytestmark = pytest.mark.filterwarnings("ignore")

INF, NAN = float("inf"), float("nan")
LARGE, HUGE = 2**53 + 1, 2**60 + 2**36 + 1  # two numbers that 64-bit floats round
WHOLE: list[Any] = [0, 1, -1, LARGE, HUGE, 2**63 - 1]
POSITIVE: list[Any] = [0, 1, 2, LARGE, HUGE, 2**64 - 1]
SMALL: list[Any] = [0, 1, -1, 127]
REAL: list[Any] = [0.0, -0.0, 1.0, 0.5, 1e30, NAN, INF]
TRUTH: list[Any] = [True, False]
TEXT: list[Any] = ["a", "b", "1", "1.0", "", "NA", "true", "wé"]
ODD: list[Any] = [
    0, 1, 2, True, False, None, NAN, pd.NA, pd.NaT, -0.0, 1.0, 0.5, LARGE, float(2**53), HUGE,
    10**400, INF, "a", "1", "1.0", " 7 ", "1_0", "", "NA", b"1", Decimal("1"), Decimal("sNaN"),
    Fraction(1, 2), 1j, np.int64(1), np.float32(0.1), np.float16(INF), 314159, np.bool_(True),
    np.str_("a"), np.longdouble(1) / 3, np.datetime64("NaT"), np.timedelta64(1, "s"),
    datetime.date(2020, 1, 1), pd.Timestamp(0), [1], (1, 2), np.array(1), frozenset([1]),
]  # fmt: skip
MIXED: list[Any] = [0, 1, True, None, NAN, 0.5, LARGE, "a", "1"]  # which libraries give one type
NAMES: list[list[Any]] = [
    [0, 1, 2], ["a", "b", "1"], [True, False], [0.5, 1.0], ["a", 1], [float(2**53), HUGE],
]  # fmt: skip


def frame(dtype: Any) -> Callable[[list[Any]], Any]:
    plain = dtype in ("int64", "uint64")  # pandas itself reads lists by way of floats

    def make(cells: list[Any]) -> Any:
        column = np.array(cells, dtype) if plain else pd.array(cells, dtype=dtype)
        return pd.DataFrame({"a": pd.Series(column)})

    return make


UNCERTAIN: list[Any] = [
    0, 1, True, None, NAN, 0.5, LARGE, 2**63, 2**64, 10**400, "a", "1", Decimal("1"), 1j,
    np.float32(0.1), np.longdouble(1) / 3, np.datetime64("NaT"), np.timedelta64(1, "s"),
]  # fmt: skip


def arrow(kind: Any) -> Callable[[list[Any]], Any]:
    return lambda cells: pa.table({"a": pa.array(cells, kind, from_pandas=True)})


def polars(kind: Any) -> Callable[[list[Any]], Any]:
    return lambda cells: pl.DataFrame({"a": pl.Series(cells, dtype=kind)})


def chunks(cells: list[Any]) -> Any:
    """As many chunks as rows, each with a dictionary of its own."""
    parts = [pa.array([cell], pa.string()).dictionary_encode() for cell in cells]
    kind = pa.dictionary(pa.int32(), pa.string())
    return pa.table({"a": pa.chunked_array(parts, kind)})


NONE: list[Any] = [None]
MONEY = [Decimal("0"), Decimal("1.5"), Decimal(HUGE), None]
NUMBERS: dict[str, tuple[Callable[[list[Any]], Any], list[Any]]] = {
    "pandas int64": (frame("int64"), WHOLE),
    "pandas uint64": (frame("uint64"), POSITIVE),
    "pandas int8": (frame("int8"), SMALL),
    "pandas float64": (frame("float64"), REAL),
    "pandas float32": (frame("float32"), REAL),
    "pandas bool": (frame("bool"), TRUTH),
    "pandas Int64": (frame("Int64"), WHOLE + NONE),
    "pandas UInt64": (frame("UInt64"), POSITIVE + NONE),
    "pandas Float64": (frame("Float64"), REAL + NONE),
    "pandas boolean": (frame("boolean"), TRUTH + NONE),
    "pandas sparse": (frame(pd.SparseDtype("float64")), REAL),
    "pandas sparse int": (frame(pd.SparseDtype("int64")), WHOLE),
    "pandas int64[pyarrow]": (frame("int64[pyarrow]"), WHOLE + NONE),
    "pandas uint64[pyarrow]": (frame("uint64[pyarrow]"), POSITIVE + NONE),
    "pandas double[pyarrow]": (frame("double[pyarrow]"), REAL + NONE),
    "pandas bool[pyarrow]": (frame("bool[pyarrow]"), TRUTH + NONE),
    "pandas decimal[pyarrow]": (frame(pd.ArrowDtype(pa.decimal128(30, 3))), MONEY),
    "pandas object": (lambda c: pd.DataFrame({"a": pd.Series(objects(c), dtype=object)}), ODD),
    "pandas as inferred": (lambda c: pd.DataFrame({"a": c}), [*WHOLE, *REAL, *TRUTH, None]),
    "polars Int64": (polars(pl.Int64), WHOLE + NONE),
    "polars UInt64": (polars(pl.UInt64), POSITIVE + NONE),
    "polars Int8": (polars(pl.Int8), SMALL + NONE),
    "polars Int128": (polars(pl.Int128), [*WHOLE, 2**100, None]),
    "polars Float64": (polars(pl.Float64), REAL + NONE),
    "polars Float32": (polars(pl.Float32), REAL + NONE),
    "polars Boolean": (polars(pl.Boolean), TRUTH + NONE),
    "polars Decimal": (polars(pl.Decimal(30, 3)), MONEY),
    "polars Object": (polars(pl.Object), MIXED),
    "polars Null": (polars(pl.Null), NONE),
    "polars lazy": (lambda c: polars(pl.Int64)(c).lazy(), WHOLE + NONE),
    "arrow int64": (arrow(pa.int64()), WHOLE + NONE),
    "arrow uint64": (arrow(pa.uint64()), POSITIVE + NONE),
    "arrow int8": (arrow(pa.int8()), SMALL + NONE),
    "arrow double": (arrow(pa.float64()), REAL + NONE),
    "arrow float": (arrow(pa.float32()), REAL + NONE),
    "arrow bool": (arrow(pa.bool_()), TRUTH + NONE),
    "arrow decimal": (arrow(pa.decimal128(30, 3)), MONEY),
    "arrow null": (arrow(pa.null()), NONE),
    "numpy int64": (lambda c: np.array(c, np.int64).reshape(-1, 1), WHOLE),
    "numpy uint64": (lambda c: np.array(c, np.uint64).reshape(-1, 1), POSITIVE),
    "numpy float64": (lambda c: np.array(c, np.float64).reshape(-1, 1), REAL),
    "numpy float16": (lambda c: np.array(c, np.float16).reshape(-1, 1), REAL[:4]),
    "numpy longdouble": (lambda c: np.array(c, np.longdouble).reshape(-1, 1), REAL),
    "numpy bool": (lambda c: np.array(c, bool).reshape(-1, 1), TRUTH),
    "numpy objects": (lambda c: objects(c).reshape(-1, 1), ODD),
    "numpy texts": (lambda c: np.array(c, "U8").reshape(-1, 1), TEXT),
    "numpy masked": (
        lambda c: np.ma.masked_equal(np.array(c, np.int64).reshape(-1, 1), 1), WHOLE
    ),
    "list": (lambda c: [[cell] for cell in c], ODD),
    "tuple of lists": (lambda c: tuple([cell] for cell in c), MIXED),
    "list of arrays": (lambda c: [np.array([cell], np.int64) for cell in c], WHOLE),
    "list of sequences": (lambda c: [deque([cell]) for cell in c], ODD),
    "sequence as a list": (lambda c: deque([cell] for cell in c), ODD),
    "another sequence as a list": (lambda c: UserList([cell] for cell in c), ODD),
    "list of cells beside rows": (
        lambda c: [cell[0] if isinstance(cell, tuple) else [cell] for cell in c],
        [0, 1, "1", None, (0,), (1,)],
    ),
    "numpy masked objects": (lambda c: masked(c, object), [0, 1, "1", None, True, "wé", HIDDEN]),
    "numpy masked texts": (lambda c: masked(c, "U9"), ["0", "1", "a", "", HIDDEN]),
    "numpy masked floats": (lambda c: masked(c, np.float64), [0.0, 0.5, HIDDEN]),
    "numpy converts": (lambda c: Converted([[cell] for cell in c]), UNCERTAIN),
}  # fmt: skip
NAMED: dict[str, tuple[Callable[[list[Any]], Any], list[Any]]] = {
    "pandas string": (frame("string"), TEXT + NONE),
    "pandas str": (frame("str"), TEXT + NONE),
    "pandas string[pyarrow]": (frame(pd.ArrowDtype(pa.string())), TEXT + NONE),
    "pandas category": (frame("category"), [0, 1, 0.5, "a", "1", None, LARGE]),
    "pandas strange category": (frame(pd.CategoricalDtype(["1", "b", "a", "z"])), ["a", "1", "z"]),
    "pandas inferred": (lambda c: pd.DataFrame({"a": c}), MIXED),
    "polars String": (polars(pl.String), TEXT + NONE),
    "polars Categorical": (polars(pl.Categorical), TEXT + NONE),
    "polars Enum": (polars(pl.Enum(["1", "b", "a"])), ["a", "b", "1", None]),
    "arrow string": (arrow(pa.string()), TEXT + NONE),
    "arrow large string": (arrow(pa.large_string()), TEXT + NONE),
    "arrow dictionary": (
        lambda c: pa.table({"a": pa.array(c, pa.string()).dictionary_encode()}), TEXT + NONE
    ),
    "arrow dictionary of numbers": (
        lambda c: pa.table({"a": pa.array(c, pa.int64()).dictionary_encode()}), WHOLE + NONE
    ),
    "arrow chunks": (chunks, TEXT + NONE),
}  # fmt: skip
TABLES = {
    name: found for name, found in NUMBERS.items() if "numpy" not in name and "list" not in name
}
COLUMNS = {**TABLES, **NAMED}
every = pytest.mark.parametrize


def values_of(table: Any, **declared_categories: Any) -> np.ndarray:
    matrix = private_matrix(
        table, categories=declared_categories, enable_categorical=True, nthread=1
    )
    rows = matrix.get_data()
    out = np.full(matrix.num_row(), np.nan)
    out[np.repeat(np.arange(matrix.num_row()), np.diff(rows.indptr))] = rows.data
    return out


def column_of(table: Any) -> Any:
    table = table.collect() if hasattr(table, "collect") else table
    return table["a"]


@every("kind", NUMBERS)
def test_features(kind):
    make, cells = NUMBERS[kind]
    if "list" not in kind:
        check_pairs(make, cells, values_of)
        return
    if "beside" not in kind:
        cells = [cell for cell in cells if not isinstance(cell, (list, tuple))]
    # A list without rows does not show its columns.
    check_pairs(make, cells, lambda rows: values_of(rows) if len(rows) else [])


@every("kind", COLUMNS)
def test_categories(kind):
    check_pairs(*COLUMNS[kind], *(partial(values_of, a=names) for names in NAMES))


@every("kind", COLUMNS)
def test_dictionaries_that_nobody_declared_are_refused(kind):
    make, cells = NAMED.get(kind, (None, None))
    if make is None or kind == "pandas inferred":
        return
    for categories in ({}, {"a": 3}):
        with pytest.raises(PrivacyParameterError, match="categories"):
            values_of(make(cells[:2]), **categories)


def group_reader(levels: list[Any]) -> Reader:
    groups = Groups("a", tuple(levels))
    return lambda table: group_codes(groups, None, table).tolist()


@every("kind", COLUMNS)
def test_groups(kind):
    check_pairs(*COLUMNS[kind], *map(group_reader, [*NAMES, [None, "a"]]))


def class_reader(names: Any) -> Reader:
    classes = parse_classes(names)
    return lambda labels: encode_labels(label_array(labels), classes).ravel().tolist()


def number_reader(what: str) -> Reader:
    return lambda cells: as_numbers(cells, what).astype(np.float64).ravel()


CLASSES = [class_reader(names) for names in (2, ["a", "1"], [0.5, LARGE])]
LABELS = [*CLASSES, *map(number_reader, ("label", "weight", "margin"))]


def check_columns(kind: str, cells: list[Any], *readers: Reader) -> None:
    make, _ = COLUMNS[kind]
    check_pairs(lambda picked: column_of(make(picked)), cells, *readers)


@every("kind", COLUMNS)
def test_labels(kind):
    check_columns(kind, COLUMNS[kind][1], *LABELS)


def test_lists_of_labels():
    cells = [cell for cell in ODD if not isinstance(cell, tuple)]
    for wrap in (list, tuple, objects, deque, UserList):
        check_pairs(wrap, cells, *LABELS[:-1])
    check_pairs(Converted, UNCERTAIN, class_reader(["a", "1"]))
    assert class_reader([1, LARGE])([1, LARGE, float(2**53)]) == [0, 1, 1]  # as 64-bit floats
    with pytest.raises(PrivacyParameterError, match="same value twice"):
        parse_classes([LARGE, LARGE - 1])


def strings(cells: Any) -> list[str | None]:
    codes, names = read_strings(cells, MISSING)
    return [None if code < 0 else names[code] for code in codes]


def discovery(cells: Any) -> Any:
    return read_numbers(cells, "number", "1970-01-01", MISSING)


def part_reader(part: str) -> Reader:
    return lambda cells: split_dates(cells, [part], missing=MISSING)[part]


DATES: list[Any] = [
    datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 3), pd.Timestamp(0), pd.NaT, None, NAN,
    pd.Timestamp("2020-01-01 12:00", tz="UTC"), pd.Timestamp("2020-01-01 13:00", tz="+01:00"),
    np.datetime64("2020-02-02"), np.datetime64("NaT"), np.datetime64("9999-01-01", "D"),
    np.datetime64("2020-01-01", "ns"), "2020-01-01", "2020-01-01 23:00", "NA", "x", 1, True,
    np.timedelta64(1, "D"), np.timedelta64("NaT"), [1],
]  # fmt: skip


def series(cells: list[Any]) -> pd.Series:
    return pd.Series(objects(cells), dtype=object)


def test_looks_at_lists_and_objects():
    for wrap in (list, tuple, deque, objects, series):
        check_pairs(wrap, ODD, strings, discovery)
        check_pairs(wrap, DATES, *map(part_reader, ("days", "hour")))


@every("kind", COLUMNS)
def test_looks_at_columns(kind):
    check_columns(kind, COLUMNS[kind][1], strings, discovery)


@every("kind", ["datetime64[s]", "datetime64[ns]", "datetime64[ns, UTC]", "timestamp[ns][pyarrow]"])
def test_columns_of_dates(kind):
    cells = [pd.Timestamp("2020-01-01 05:00"), pd.Timestamp("1969-12-31 23:00"), None, pd.NaT]
    parts = map(part_reader, ("days", "hour", "weekday"))
    check_pairs(lambda picked: pd.Series(pd.array(picked, dtype=kind)), cells, *parts)


IDS: dict[str, list[Any]] = {
    "whole numbers": [0, 1, -1, True, 1.0, LARGE, 0.5, float(2**53), 2**64, 2**70, None, NAN],
    "texts": ["a", "b", "1", " a", "", "wé", "\ud800", "a\ud800", None, pd.NA],
    "bytes": [b"a", b"b", b"", None],
    "UUIDs": [UUID(int=1), UUID(int=2), None],
    "numbers of NumPy": [np.int64(1), np.uint64(2**64 - 1), 1, np.float32(1), np.bool_(True)],
}


def people(cells: Any) -> list[Any]:
    persons = encode_persons(cells)
    listed = persons.listed
    return [listed[code] for code in persons.codes.tolist()]


@every("kind", IDS)
def test_ids(kind):
    for wrap in (list, tuple, deque, objects, series):
        check_pairs(wrap, IDS[kind], people)


def test_ids_that_are_no_unicode_are_refused():
    column = pd.Series(objects(["a", "\ud800"]), dtype=object)
    names = pd.Categorical.from_codes([0, 1], pd.Index(column, dtype=object))
    for ids in (column.tolist(), column.to_numpy(), column, pd.Series(names)):
        with pytest.raises(RowDomainError, match="surrogate"):
            encode_persons(ids)


@every("kind", COLUMNS)
def test_columns_of_ids(kind):
    cells = COLUMNS[kind][1]
    if kind in ("pandas category", "pandas inferred", "pandas object", "polars Object"):
        cells = [cell for cell in cells if type(cell) is str or cell is None]
    if kind != "pandas as inferred":  # pandas rounds ids before anything of ours sees them
        check_columns(kind, cells, people)


FILES = [
    partial(declared_codes, declared=names, missing=MISSING, other=other)
    for names in (("0", "1", "2"), ("1", "1.0", "a"), ("true", "false"), ("True", "b"), ("01",))
    for other in ("error", "missing", names[-1])
]


@every("kind", [kind for kind in COLUMNS if kind.startswith("pandas")])
def test_cells_of_files(kind):
    check_columns(kind, COLUMNS[kind][1], lambda column: declared_numbers(column, MISSING), *FILES)


@every("kind", COLUMNS)
def test_cells_are_those_of_a_list(kind):
    """A cell means in a typed column what it means in a list, where the type can express it."""
    make, cells = COLUMNS[kind]
    if kind in ("pandas float32", "polars Float32", "arrow float"):
        cells = [cell for cell in cells if cell != 1e30]
    levels = [1, 0, 0.5, "a", "b", "1", "1.0", LARGE, HUGE, -1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = Groups("a", tuple(levels))
        column = group_codes(groups, None, make(cells)).tolist()
    as_list = group_codes(Groups(0, tuple(levels)), None, [[cell] for cell in cells]).tolist()
    if kind not in ("pandas object", "polars Object", "pandas category", "pandas inferred"):
        assert column == as_list, kind
    assert len(as_cells(column_of(make(cells)), "label")) == len(cells)
