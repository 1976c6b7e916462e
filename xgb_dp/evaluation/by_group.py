"""Groups of rows that an evaluation has figures of: declared values of a column.

Each row is put into its group by its own cell, compared by value with what was declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.arrays import cells_of, codes_in, collected
from ..data.cells import Names, read_data
from ..data.frames import columns_of
from ..errors import PrivacyParameterError
from ..noisy_sums import Ints
from ..parameters.parse import listed, mapped
from ..request.names import read_one

if TYPE_CHECKING:
    from .rows import Judged

_MOST_GROUPS = 64


@dataclass(frozen=True, eq=False)
class Groups:
    """A declared division of the rows; public."""

    column: Any  # name or index
    levels: tuple[Any, ...]  # other values of a row are in a group of their own, the last one

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return (*(str(level) for level in self.levels), "other")

    @property
    def table(self) -> Names:
        """The levels by value."""
        return Names(self.levels, "`by` must declare different values: it", missing=True)


def read_groups(by: Any, model: Judged) -> Groups | None:
    """The declared groups. No row is looked at."""
    if by is None:
        return None
    given = mapped(by)
    if given is None:
        if not isinstance(by, (str, int, np.integer)) or isinstance(by, bool):
            raise PrivacyParameterError(
                "`by` must be a column, or a mapping of one column to its values, e.g. "
                "by={'sex': ['female', 'male']}."
            )
        column, values = by, _declared_levels(by, model)
    elif len(given) == 1:
        ((column, values),) = given.items()
        values = listed(values)
    else:
        raise PrivacyParameterError("`by` names several columns. Give one column at a time.")
    if not values or len(values) > _MOST_GROUPS:
        raise PrivacyParameterError(
            f"`by` must declare 1 to {_MOST_GROUPS} different values of its column, from knowledge "
            "of the domain and not from the rows: by={'sex': ['female', 'male']}. Rows with "
            "another value are in a group of their own, 'other'."
        )
    groups = Groups(column, tuple(values))
    _ = groups.table  # refuses what is not a value, and what is one twice
    return groups


def _declared_levels(column: Any, model: Judged) -> list[Any] | None:
    """The categories that an estimator or the training of a model has declared for a column."""
    read = getattr(model.model, "get_xgb_params", None)
    declared = read_one(read(), "dp_categories") if read is not None else None
    levels = (mapped(declared) or {}).get(column)
    if levels is None:
        levels = dict(model.public.get("categories", {})).get(str(column))
    if isinstance(levels, (int, np.integer)) and not isinstance(levels, bool):
        return list(range(int(levels)))
    return listed(levels)


def group_codes(groups: Groups, matrix: Any, table: Any) -> Ints:
    """The group of each row; the last one for values that were not declared."""
    of = _codes_of_matrix if table is None else _codes_of_column
    codes = of(groups, matrix if table is None else table)
    return np.where(codes < 0, len(groups.levels), codes)


def _no_column(column: Any) -> PrivacyParameterError:
    return PrivacyParameterError(
        f"`by` names {column!r}, which is not a column of the data. Check the name."
    )


def _codes_of_column(groups: Groups, table: Any) -> Ints:
    """The codes of a column of a table as it was handed in."""
    column = groups.column
    table = collected(table)
    if hasattr(table, "columns") or hasattr(table, "column_names"):
        names = columns_of(table)
        if column not in names and isinstance(column, (int, np.integer)) and column < len(names):
            column = names[int(column)]
        if column not in names:
            raise _no_column(column)
        return read_data(codes_in, table[column], groups.table, "feature")
    values = cells_of(table, "feature") if not hasattr(table, "tocsc") else None
    known = isinstance(column, (int, np.integer)) and column >= 0
    if not known or (values is not None and (values.ndim != 2 or column >= values.shape[1])):
        raise _no_column(column)
    if values is None:
        values = table.tocsc()[:, [int(column)]].toarray()
        column = 0
    return groups.table.codes(values[:, int(column)])


def _codes_of_matrix(groups: Groups, matrix: Any) -> Ints:
    """The codes of a column of a DMatrix; of categories by name, where it has names."""
    names = list(matrix.feature_names or [])
    column = groups.column
    if column in names:
        column = names.index(column)
    if not isinstance(column, (int, np.integer)) or not 0 <= column < matrix.num_col():
        raise _no_column(groups.column)
    data = matrix.get_data()
    values = np.full(matrix.num_row(), np.nan)
    row = np.repeat(np.arange(matrix.num_row()), np.diff(data.indptr))
    inside = data.indices == column
    values[row[inside]] = data.data[inside]
    listed_names = None
    if (matrix.feature_types or [])[column : column + 1] == ["c"]:
        (_, listed_names) = matrix.get_categories(export_to_arrow=True).to_arrow()[column]
    if listed_names is None:
        return groups.table.codes(values)
    # What a code stands for may follow from all rows together; what a name says does not.
    known = groups.table.codes(np.array([*listed_names.to_pylist(), None], dtype=object))
    codes = np.where(np.isnan(values), -1, values).astype(np.int64)
    return np.asarray(known[np.where(codes < len(known) - 1, codes, -1)])
