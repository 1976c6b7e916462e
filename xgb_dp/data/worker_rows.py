"""Training rows of one worker of a Dask cluster: read each partition by itself, then join them.

Which rows share a partition, and which partitions share a worker, depends on other rows. Every
partition is therefore converted to plain numbers before it is joined to another one. Partitions are
joined by position, because libraries align columns by name and fill in missing ones. All partitions
must therefore have the same public layout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..engine import workers
from ..errors import PrivacyParameterError, PrivacyRefusal
from .arrays import as_numbers, check_sparse, is_sparse
from .cells import read_data
from .frames import list_columns, prepare_table
from .ids import Persons, join_persons
from .matrices import META, check_shape, checked, private_matrix

Layout: TypeAlias = Mapping[str, Any]
"""JSON-compatible properties that all partitions must share, by their name in error messages."""
Rows: TypeAlias = Mapping[str, Any]
"""Rows of a partition as plain numbers, by DMatrix argument, and the persons of the rows.

Features are 32-bit floats in an array or a CSR matrix; declared categories are codes.
"""

_TABLE, _COLUMNS, _PERSONS = "the kind of table", "the columns", "`dp_privacy_id`"


def worker_matrix(
    categories: Mapping[Any, Any] | None, *, parts: Any, model: Any, Xy_cats: Any, **given: Any
) -> Any:
    """Build the training matrix of one Dask worker, however the rows are spread over workers.

    XGBoost's own version refuses data frames with categories if a worker has no rows, which can
    depend on a single row. With declared categories, a worker needs no rows.
    """
    from xgboost import config

    del model, Xy_cats
    read = workers.check_together(
        lambda: [read_data(_read, part, categories) for part in parts or ()]
    )
    layout = workers.broadcast_first(read[0][0] if read else None)
    workers.check_together(lambda: _check_layouts(layout, [other for other, _ in read]))

    def make(settings: Mapping[str, Any]) -> Any:
        with config.config_context(**settings):
            rows = [rows for _, rows in read] or [_no_rows(layout)]
            # The categories are the declared ones, so the caller need not enable them.
            given.update(categories=categories, enable_categorical=True)
            return private_matrix(**read_data(_joined, layout, rows, categories), **given)

    def make_alone() -> Any:
        # This thread has no communicator, so XGBoost does not compare matrices between workers.
        with ThreadPoolExecutor(1) as alone:
            return alone.submit(make, config.get_config()).result()

    return workers.check_together(make_alone)


def _read(part: Mapping[str, Any], categories: Any) -> tuple[Layout, Rows]:
    """Read one partition without using any other partition or worker."""
    if part.get("qid") is not None:
        raise PrivacyRefusal(
            "Query groups (`qid`) are not supported: they couple rows, and weights would apply to "
            "groups. Remove `qid` from the DaskDMatrix."
        )
    kind, columns, cells = _cells(part["data"], categories)
    layout: dict[str, Any] = {_TABLE: kind, _COLUMNS: columns, _PERSONS: "persons" in part}
    rows = {"data": cells}
    if "persons" in part:
        rows["persons"] = part["persons"]
    given = {name: part[name] for name in META if part.get(name) is not None}
    for name, values in checked(given, cells.shape[0]).items():
        if len(values) != cells.shape[0]:  # base margins may be a matrix with several per row
            raise PrivacyParameterError(f"`{name}` must have one entry per row of the data.")
        named = hasattr(given[name], "columns")
        layout[f"`{name}`"] = [list(values.shape[1:]), _names(given[name]) if named else None]
        rows[name] = values.astype(np.float64)
    return layout, rows


def _cells(table: Any, categories: Any) -> tuple[str, Any, Any]:
    """Return the kind of a table, its column names or width, and its cells."""
    check_shape(table)
    if hasattr(table, "columns") and hasattr(table, "iloc"):
        names = _names(table)
        table = prepare_table(table, categories)
        for index in _dictionaries(table):
            codes = table.iloc[:, index].cat.codes.to_numpy()
            table.isetitem(index, np.where(codes < 0, np.nan, codes.astype(np.float64)))
        return "data frame", names, _floats(table.to_numpy(dtype=np.float64, na_value=np.nan))
    table = prepare_table(table, categories)
    if is_sparse(table):
        check_sparse(table)  # conversion to CSR may sum repeated entries
        table = table.tocsr()
        stored = _floats(as_numbers(table.data, "feature"))
        rows = sp.csr_matrix((stored, table.indices, table.indptr), shape=table.shape)
        return "sparse matrix", table.shape[1], rows
    if type(table) is np.ndarray:
        return "array", table.shape[1], _floats(table)
    raise PrivacyParameterError(
        f"Expected partitions that are pandas data frames, NumPy arrays or SciPy sparse matrices; "
        f"got a {type(table).__name__}."
    )


def _dictionaries(table: Any) -> dict[int, Any]:
    """Return the types of the categorical columns, by column index."""
    return {i: kind for i, kind in enumerate(table.dtypes) if hasattr(kind, "categories")}


def _floats(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Round to 32-bit floats through 64-bit floats, so that the partition's type has no effect."""
    with np.errstate(over="ignore"):  # infinite cells are refused when the matrix is built
        return values.astype(np.float64, copy=False).astype(np.float32)


def _names(table: Any) -> list[Any]:
    """Return column names in JSON form: a string, a number, or a list for a tuple."""
    return [_spelt(name) for name in list_columns(table)]


def _spelt(name: Any) -> Any:
    if isinstance(name, tuple):
        return [_spelt(part) for part in name]
    name = name.item() if isinstance(name, np.generic) else name
    return name if isinstance(name, (str, int, float)) else str(name)


def _check_layouts(layout: Layout, others: Sequence[Layout]) -> None:
    for other in others:
        for name in {**layout, **other}:
            strings = {json.dumps(v.get(name), sort_keys=True) for v in (layout, other)}
            if len(strings) > 1:
                raise PrivacyParameterError(
                    f"Two partitions differ in {name}. All partitions must have the same kind of "
                    "table and the same columns in the same order, for features, labels, weights "
                    "and margins: a column that occurs only in some partitions reveals something "
                    "about their rows. Create the columns by a public rule, for example "
                    "frame.map_partitions(lambda part: part.reindex(columns=names))."
                )


def _no_rows(layout: Layout) -> Rows:
    """Return zero rows in the shared layout, for a worker without partitions."""
    columns = layout[_COLUMNS]
    width = columns if isinstance(columns, int) else len(columns)
    make = sp.csr_matrix if layout[_TABLE] == "sparse matrix" else np.empty
    rows: dict[str, Any] = {"data": make((0, width), dtype=np.float32)}
    for name in META:
        if f"`{name}`" in layout:
            rows[name] = np.empty((0, *layout[f"`{name}`"][0]))
    return {**rows, "persons": join_persons([])} if layout[_PERSONS] else rows


def _joined(layout: Layout, parts: Sequence[Rows], categories: Any) -> Rows:
    """Join the partitions of a worker, which all have the same layout."""
    rows = {name: _stacked([part[name] for part in parts]) for name in parts[0]}
    if layout[_TABLE] == "data frame":
        rows["data"] = _frame(rows["data"], layout[_COLUMNS], categories)
    return rows


def _stacked(values: Sequence[Any]) -> Any:
    if isinstance(values[0], Persons):
        return join_persons(values)
    if is_sparse(values[0]):
        return sp.vstack(values, format="csr")
    return np.concatenate(values)


def _frame(cells: npt.NDArray[np.float32], names: Sequence[Any], categories: Any) -> Any:
    """Build a data frame from cells, with declared categories in place of their codes."""
    import pandas as pd

    columns = pd.Index([tuple(name) if isinstance(name, list) else name for name in names])
    declared = prepare_table(pd.DataFrame(columns=columns, dtype=object), categories)
    table = pd.DataFrame(cells, columns=columns, copy=False)
    for index, kind in _dictionaries(declared).items():
        codes = np.nan_to_num(cells[:, index], nan=-1).astype(np.int32)
        table.isetitem(index, pd.Categorical.from_codes(codes, dtype=kind))
    return table
