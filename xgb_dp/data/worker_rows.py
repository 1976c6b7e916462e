"""Rows of one worker of a Dask cluster: every part is read by itself, then all are put together.

Which rows share a part, and which parts share a worker, follows from other rows. So a part becomes
plain numbers before it meets another one. Parts are joined by position: libraries align columns by
name, and fill in what one part lacks. The public layout of all parts must therefore be the same.
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
"""What must be the same in all parts, by the name that errors have for it; of JSON's types."""
Rows: TypeAlias = Mapping[str, Any]
"""Rows of a part as plain numbers, by the names of arguments of a matrix, and whose they are.

Features are 32-bit floats, in an array or a sparse matrix by rows; declared categories are codes.
"""

_TABLE, _COLUMNS, _PERSONS = "the kind of table", "the columns", "`dp_privacy_id`"


def worker_matrix(
    categories: Mapping[Any, Any] | None, *, parts: Any, model: Any, Xy_cats: Any, **given: Any
) -> Any:
    """The training matrix of one worker of a Dask cluster, however the rows lie on workers.

    XGBoost's own refuses data frames with categories if some worker has no rows. Which worker has
    rows can depend on a single row; declared categories need none.
    """
    from xgboost import config

    del model, Xy_cats
    read = workers.check_together(
        lambda: [read_data(_read, part, categories) for part in parts or ()]
    )
    layout = workers.first_of_all(read[0][0] if read else None)
    workers.check_together(lambda: _check_layouts(layout, [other for other, _ in read]))

    def make(settings: Mapping[str, Any]) -> Any:
        with config.config_context(**settings):
            rows = [rows for _, rows in read] or [_no_rows(layout)]
            # Categories are the declared ones, so that nothing else has to allow them.
            given.update(categories=categories, enable_categorical=True)
            return private_matrix(**read_data(_joined, layout, rows, categories), **given)

    def make_alone() -> Any:
        # The thread is no member of the cluster, so that no matrix is compared with another one.
        with ThreadPoolExecutor(1) as alone:
            return alone.submit(make, config.get_config()).result()

    return workers.check_together(make_alone)


def _read(part: Mapping[str, Any], categories: Any) -> tuple[Layout, Rows]:
    """One part by itself: nothing of another part or worker is known here."""
    if part.get("qid") is not None:
        raise PrivacyRefusal(
            "Query groups (`qid`) are refused: they couple rows, and weights would belong to "
            "groups. Leave `qid` out of the DaskDMatrix."
        )
    kind, columns, cells = _cells(part["data"], categories)
    layout: dict[str, Any] = {_TABLE: kind, _COLUMNS: columns, _PERSONS: "persons" in part}
    rows = {"data": cells}
    if "persons" in part:
        rows["persons"] = part["persons"]
    given = {name: part[name] for name in META if part.get(name) is not None}
    for name, values in checked(given, cells.shape[0]).items():
        if len(values) != cells.shape[0]:  # margins too, which may be several for each row
            raise PrivacyParameterError(f"`{name}` must have one entry for each row of the data.")
        named = hasattr(given[name], "columns")
        layout[f"`{name}`"] = [list(values.shape[1:]), _names(given[name]) if named else None]
        rows[name] = values.astype(np.float64)
    return layout, rows


def _cells(table: Any, categories: Any) -> tuple[str, Any, Any]:
    """Kind of a table, its names or its width, and its cells."""
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
        check_sparse(table)  # rows of other formats may be added up on their way
        table = table.tocsr()
        stored = _floats(as_numbers(table.data, "feature"))
        rows = sp.csr_matrix((stored, table.indices, table.indptr), shape=table.shape)
        return "sparse matrix", table.shape[1], rows
    if type(table) is np.ndarray:
        return "array", table.shape[1], _floats(table)
    raise PrivacyParameterError(
        f"A partition of the data is a {type(table).__name__}; a data frame of pandas, a NumPy "
        "array or a sparse matrix of SciPy was expected."
    )


def _dictionaries(table: Any) -> dict[int, Any]:
    """Types of the columns of declared categories, by index."""
    return {i: kind for i, kind in enumerate(table.dtypes) if hasattr(kind, "categories")}


def _floats(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """As the trainer stores them, and rounded as if every part had its numbers as 64-bit floats."""
    with np.errstate(over="ignore"):  # infinite cells are refused where all cells are
        return values.astype(np.float64, copy=False).astype(np.float32)


def _names(table: Any) -> list[Any]:
    """Names of columns as other workers read them: a text, a number, or a list for a tuple."""
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
                    f"Two partitions differ in {name}. All must have the same kind of table, and "
                    "the same columns in the same order, for features, labels, weights and "
                    "margins; a column that occurs in a few partitions tells about their rows. "
                    "Make the columns by a public rule, for example "
                    "frame.map_partitions(lambda part: part.reindex(columns=names))."
                )


def _no_rows(layout: Layout) -> Rows:
    """What a worker has that has no part: the same columns as all others."""
    columns = layout[_COLUMNS]
    width = columns if isinstance(columns, int) else len(columns)
    make = sp.csr_matrix if layout[_TABLE] == "sparse matrix" else np.empty
    rows: dict[str, Any] = {"data": make((0, width), dtype=np.float32)}
    for name in META:
        if f"`{name}`" in layout:
            rows[name] = np.empty((0, *layout[f"`{name}`"][0]))
    return {**rows, "persons": join_persons([])} if layout[_PERSONS] else rows


def _joined(layout: Layout, parts: Sequence[Rows], categories: Any) -> Rows:
    """All parts of a worker, whose layouts are the same."""
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
    """A data frame of these cells, with declared categories in place of their codes."""
    import pandas as pd

    columns = pd.Index([tuple(name) if isinstance(name, list) else name for name in names])
    declared = prepare_table(pd.DataFrame(columns=columns, dtype=object), categories)
    table = pd.DataFrame(cells, columns=columns, copy=False)
    for index, kind in _dictionaries(declared).items():
        codes = np.nan_to_num(cells[:, index], nan=-1).astype(np.int32)
        table.isetitem(index, pd.Categorical.from_codes(codes, dtype=kind))
    return table
