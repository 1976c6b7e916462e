"""Rows of one worker of a Dask cluster: every part is read by itself, then all are put together.

Which rows share a part, and which parts share a worker, follows from other rows. So a part becomes
plain numbers before it meets another one. Parts are joined by position: libraries align columns by
name, and fill in what one part lacks. The public layout of all parts must therefore be the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..engine import workers
from ..errors import PrivacyParameterError, PrivacyRefusal
from .cells import read_data
from .columns import numbers
from .frames import columns_of, prepared
from .ids import Persons, joined
from .matrices import META, check_shape, checked, private_matrix
from .sparse import check_sparse

__all__ = ["worker_matrix"]

Cells: TypeAlias = Any
"""32-bit floats: an array, or a sparse matrix by rows. Declared categories are codes."""
Layout: TypeAlias = Mapping[str, Any]
"""What must be the same in all parts, by the name that errors have for it; of JSON's types."""

_TABLE, _COLUMNS, _PERSONS = "the kind of table", "the columns", "`dp_privacy_id`"


@dataclass(frozen=True)
class _Part:
    """Some rows of a worker as plain numbers.

    Attributes:
        layout: Names, widths and what is given at all; public.
        cells: One row for each row.
        meta: Labels, weights and margins by their names, with one entry for each row.
        persons: Who the rows belong to; None where the unit of privacy is a row.
    """

    layout: Layout
    cells: Cells
    meta: Mapping[str, npt.NDArray[np.float64]]
    persons: Persons | None


def worker_matrix(
    categories: Mapping[Any, Any] | None, *, parts: Any, model: Any, Xy_cats: Any, **given: Any
) -> Any:
    """The training matrix of one worker of a Dask cluster, however the rows lie on workers.

    XGBoost's own refuses data frames with categories if some worker has no rows. Which worker has
    rows can depend on a single row; declared categories need none.
    """
    from xgboost import config

    del model, Xy_cats
    mine = workers.check_together(
        lambda: [read_data(_read, part, categories) for part in parts or ()]
    )
    layout = workers.first_of_all(mine[0].layout if mine else None)
    workers.check_together(lambda: _check_layout(layout, mine))

    def make(settings: Mapping[str, Any]) -> Any:
        with config.config_context(**settings):
            rows = read_data(_joined, layout, mine or [_no_rows(layout)], categories)
            # Categories are the declared ones, so that nothing else has to allow them.
            given.update(categories=categories, enable_categorical=True)
            return private_matrix(**rows, **given)

    def make_alone() -> Any:
        # The thread is no member of the cluster, so that no matrix is compared with another one.
        with ThreadPoolExecutor(1) as alone:
            return alone.submit(make, config.get_config()).result()

    return workers.check_together(make_alone)


def _read(part: Mapping[str, Any], categories: Any) -> _Part:
    """One part by itself: nothing of another part or worker is known here."""
    if part.get("qid") is not None:
        raise PrivacyRefusal(
            "Query groups (`qid`) are refused: they couple rows, and weights would belong to "
            "groups. Leave `qid` out of the DaskDMatrix."
        )
    kind, columns, cells = _table(part["data"], categories)
    given = {name: part[name] for name in META if part.get(name) is not None}
    meta = {
        name: values.astype(np.float64) for name, values in checked(given, cells.shape[0]).items()
    }
    layout = {_TABLE: kind, _COLUMNS: columns, _PERSONS: "persons" in part}
    for name, values in meta.items():
        if len(values) != cells.shape[0]:  # margins too, which may be several for each row
            raise PrivacyParameterError(f"`{name}` must have one entry for each row of the data.")
        names = [_spelt(n) for n in columns_of(given[name])] if _named(given[name]) else None
        layout[f"`{name}`"] = [list(values.shape[1:]), names]
    return _Part(layout, cells, meta, part.get("persons"))


def _table(table: Any, categories: Any) -> tuple[str, Any, Cells]:
    """Kind of a table, its names or its width, and its cells."""
    import scipy.sparse as sp

    check_shape(table)
    if _named(table) and hasattr(table, "iloc"):
        names = [_spelt(name) for name in columns_of(table)]
        return "data frame", names, _cells_of_frame(table, categories)
    table = prepared(table, categories)
    if sp.issparse(table):
        check_sparse(table)  # rows of other formats may be added up on their way
        table = table.tocsr()
        stored = _floats(numbers(table.data, "feature"))
        rows = sp.csr_matrix((stored, table.indices, table.indptr), shape=table.shape)
        return "sparse matrix", table.shape[1], rows
    if type(table) is np.ndarray:
        return "array", table.shape[1], _floats(table)
    raise PrivacyParameterError(
        f"A partition of the data is a {type(table).__name__}; a data frame of pandas, a NumPy "
        "array or a sparse matrix of SciPy was expected."
    )


def _cells_of_frame(table: Any, categories: Any) -> npt.NDArray[np.float32]:
    table = prepared(table, categories)
    for index in _dictionaries(table):
        codes = table.iloc[:, index].cat.codes.to_numpy()
        table.isetitem(index, np.where(codes < 0, np.nan, codes.astype(np.float64)))
    return _floats(table.to_numpy(dtype=np.float64, na_value=np.nan))


def _dictionaries(table: Any) -> dict[int, Any]:
    """Types of the columns of declared categories, by index."""
    import pandas as pd

    kinds = enumerate(table.dtypes)
    return {index: kind for index, kind in kinds if isinstance(kind, pd.CategoricalDtype)}


def _floats(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """As the trainer stores them, and rounded as if every part had its numbers as 64-bit floats."""
    with np.errstate(over="ignore"):  # infinite cells are refused where all cells are
        return values.astype(np.float64, copy=False).astype(np.float32)


def _named(values: Any) -> bool:
    return hasattr(values, "columns")


def _spelt(name: Any) -> Any:
    """The name of a column as other workers read it: a text, a number, or a list for a tuple."""
    if isinstance(name, tuple):
        return [_spelt(part) for part in name]
    name = name.item() if isinstance(name, np.generic) else name
    return name if isinstance(name, (str, int, float)) else str(name)


def _check_layout(layout: Layout, parts: Sequence[_Part]) -> None:
    for part in parts:
        for name in {**layout, **part.layout}:
            one, other = (json.dumps(v.get(name), sort_keys=True) for v in (layout, part.layout))
            if one != other:
                raise PrivacyParameterError(
                    f"Two partitions differ in {name}. All must have the same kind of table, and "
                    "the same columns in the same order, for features, labels, weights and "
                    "margins; a column that occurs in a few partitions tells about their rows. "
                    "Make the columns by a public rule, for example "
                    "frame.map_partitions(lambda part: part.reindex(columns=names))."
                )


def _no_rows(layout: Layout) -> _Part:
    """What a worker has that has no part: the same columns as all others."""
    columns = layout[_COLUMNS]
    width = columns if isinstance(columns, int) else len(columns)
    cells: Cells = np.empty((0, width), dtype=np.float32)
    if layout[_TABLE] == "sparse matrix":
        import scipy.sparse as sp

        cells = sp.csr_matrix(cells)
    meta = {name: np.empty((0, *layout[f"`{name}`"][0])) for name in META if f"`{name}`" in layout}
    return _Part(layout, cells, meta, joined([]) if layout[_PERSONS] else None)


def _joined(layout: Layout, parts: Sequence[_Part], categories: Any) -> dict[str, Any]:
    """All parts of a worker as arguments of ``xgboost.DMatrix``; their layouts are the same."""
    cells: Cells
    if layout[_TABLE] == "sparse matrix":
        import scipy.sparse as sp

        cells = sp.vstack([part.cells for part in parts], format="csr")
    else:
        cells = np.concatenate([part.cells for part in parts])
    if layout[_TABLE] == "data frame":
        cells = _frame(cells, layout[_COLUMNS], categories)
    rows = {name: np.concatenate([part.meta[name] for part in parts]) for name in parts[0].meta}
    persons = [part.persons for part in parts if part.persons is not None]
    return {"data": cells, **rows, **({"persons": joined(persons)} if persons else {})}


def _frame(cells: npt.NDArray[np.float32], names: Sequence[Any], categories: Any) -> Any:
    """A data frame of these cells, with declared categories in place of their codes."""
    import pandas as pd

    columns = pd.Index([tuple(name) if isinstance(name, list) else name for name in names])
    declared = prepared(pd.DataFrame(columns=columns, dtype=object), categories)
    table = pd.DataFrame(cells, columns=columns, copy=False)
    for index, kind in _dictionaries(declared).items():
        codes = np.nan_to_num(cells[:, index], nan=-1).astype(np.int32)
        table.isetitem(index, pd.Categorical.from_codes(codes, dtype=kind))
    return table
