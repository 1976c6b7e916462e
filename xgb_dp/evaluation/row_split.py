"""Randomly split private rows into a training part and a test part.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.arrays import as_cells, check_sparse, collect_table
from ..data.cells import read_data
from ..data.frames import without_column
from ..data.ids import TEST, TRAIN, Persons, SplitPart, encode_persons
from ..data.matrices import MATRICES, SplitTable, checked, read_part_persons, split_matrix
from ..engine.native import split_rows
from ..errors import PrivacyParameterError, PrivacyRefusal, alias, spelling
from ..noisy_sums import Ints
from ..parameters.parse import parse_number
from ..request.names import takes

_ASSIGNMENT_BITS = 32
"""Bits of the random integer that assigns a row, compared with the share of the test part."""


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Two disjoint parts of the rows.

    Attributes:
        train: Part for training: a DMatrix for ``xgboost.train``, or a table for ``fit``.
        test: Part for evaluation, of the same type.
        name: Random name that identifies the split in ledgers and budgets.
        unit: Unit of the random assignment: "row" or "person".

    Examples:
        >>> parts = xgb_dp.split(data, test=0.3)
        >>> parts.train.num_row() + parts.test.num_row()
        2000
    """

    train: Any
    test: Any
    name: str
    unit: str

    def __repr__(self) -> str:
        # Row counts are private and must not be shown.
        return f"Split(name={self.name!r}, unit={self.unit!r})"


@takes()
def split(
    data: Any,
    *,
    test: float = 0.2,
    privacy_id: Any = None,
    sample_weight: Any = None,
    base_margin: Any = None,
) -> Split:
    """Randomly split rows into a training part and a test part.

    Each row is assigned to the test part independently with probability `test`, regardless of its
    values. With `privacy_id`, all rows of a person are assigned together. A row (or person) is in
    one part only, so releases on the two parts compose in parallel: together they cost the larger
    of the two, not the sum. Budgets and reports account for this.

    Privacy: free; nothing is released. Pass the parts on unchanged: each part records which part it
    is, and its rows are read-only. A copy, a slice or any other data derived from a part is charged
    to all rows, so its cost adds up.

    Args:
        data: An ``xgboost.DMatrix`` in memory, or (X, y).
        test: Probability of the test part, in (0, 1).
        privacy_id: One id per row, or the name of a column of X, to assign whole persons.
        sample_weight: Weights of the rows of (X, y) for training; evaluations ignore them. A
            DMatrix contains its own.
        base_margin: Margins of the rows of (X, y), such as log exposures.

    Returns:
        Split: The two parts. Parts of a DMatrix are matrices with read-only labels. Parts of (X, y)
        are tables for ``fit`` and ``evaluate``; their method ``copy`` returns plain (X, y). To
        train with the ids of a part, set ``dp_privacy_id=True``.

    Raises:
        PrivacyParameterError: An argument is out of range, or `data` has an unsupported type.
        PrivacyRefusal: The rows are in external memory and cannot be split.

    Examples:
        >>> parts = xgb_dp.split(data, test=0.3)
        >>> trained = xgb.train(params, parts.train, 5)
        >>> report = xgb_dp.evaluate(trained, parts, epsilon=1.0, delta=1e-6)
        >>> "each row contributes to only one of them" in report.statement()
        True
    """
    share = parse_number(alias("test"), test, low=0.0, high=1.0, open_low=True, open_high=True)
    rows = _count_rows(data)
    with spelling({"dp_privacy_id": "privacy_id"}):
        _, privacy_id = separate_ids(data, privacy_id)
        persons = None if privacy_id is None else encode_persons(privacy_id, rows)
    arguments = _read_arguments(data, rows, sample_weight=sample_weight, base_margin=base_margin)
    sides = split_randomly(data, share, None if persons is None else persons.codes)
    name, unit = secrets.token_hex(8), "row" if persons is None else "person"
    train, held_out = (
        make_part(
            taken,
            SplitPart(name, which, unit),
            persons and persons.select(indices),
            {name: values[indices] for name, values in arguments.items()},
        )
        for (indices, taken), which in zip(sides, (TRAIN, TEST), strict=True)
    )
    return Split(train, held_out, name, unit)


def _read_arguments(data: Any, rows: int, **given: Any) -> dict[str, npt.NDArray[Any]]:
    """Read the weights and margins of the rows of a pair (X, y)."""
    names = {"weight": "sample_weight", "base_margin": "base_margin"}
    known = {key: given[name] for key, name in names.items() if given[name] is not None}
    if known and type(data) in MATRICES:
        raise PrivacyParameterError(
            "`sample_weight` and `base_margin` of split belong to a pair (X, y). For an "
            "xgboost.DMatrix, set `weight` and `base_margin` when you create it."
        )
    arguments = {names[key]: values for key, values in checked(known, rows).items()}
    for name, values in arguments.items():
        if values.shape[:1] != (rows,):
            raise PrivacyParameterError(f"`{name}` must have one entry per row of `data`.")
    return arguments


def make_part(
    rows: Any,
    part: SplitPart,
    persons: Persons | None,
    arguments: Mapping[str, npt.NDArray[Any]] | None = None,
) -> Any:
    """Wrap rows as a part of a split; the caller must keep no other reference to them."""
    arguments = arguments or {}
    for array in arguments.values():
        array.flags.writeable = False
    if persons is not None:
        persons = replace(persons, part=part)
        for array in (persons.codes, persons.distinct):
            array.flags.writeable = False
    if isinstance(rows, tuple):
        return SplitTable(rows, part, persons, MappingProxyType(dict(arguments)))
    return split_matrix(rows, part, persons)


def row_arguments(rows: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return weights and margins of rows: those of a part of a split, and others that are given."""
    recorded = rows.arguments if isinstance(rows, SplitTable) else {}
    if twice := [name for name in recorded if given.get(name) is not None]:
        raise PrivacyParameterError(
            f"A part of xgb_dp.split already contains its `{twice[0]}`. Pass the part without."
        )
    return {**given, **recorded}


def separate_rows_and_ids(data: Any, ids: Any) -> tuple[Any, Any]:
    """Return rows without their id column, and the ids; a split part keeps its recorded ids."""
    rows, persons = data, read_part_persons(data, True if ids is None else ids)
    if isinstance(data, SplitTable):
        X, y, ids = data.unpack(ids=ids)
        rows = X, y
    rows, given = separate_ids(rows, ids)
    return rows, given if persons is None else persons


def separate_ids(data: Any, ids: Any) -> tuple[Any, Any]:
    """If `ids` names a column of X, remove it and return it as ids; else return both unchanged."""
    if not isinstance(ids, str) or not isinstance(data, (tuple, list)) or len(data) != 2:
        return data, ids
    table, cells = without_column(data[0], ids)
    return (table, data[1]), encode_persons(cells, column=ids)


def split_randomly(
    data: Any, share: float, codes: npt.NDArray[np.uint32] | None
) -> tuple[tuple[Ints, Any], tuple[Ints, Any]]:
    """Randomly split rows into (indices, rows) pairs; the parts are not labelled yet."""
    num = min(max(1, round(share * 2**_ASSIGNMENT_BITS)), 2**_ASSIGNMENT_BITS - 1)
    kept, test = split_rows(_count_rows(data), num, codes)
    return (kept, _select_rows(data, kept)), (test, _select_rows(data, test))


def _count_rows(data: Any) -> int:
    """Return the number of rows of a DMatrix or a pair (X, y)."""
    if type(data) in MATRICES:
        return int(data.num_row())
    if isinstance(data, (tuple, list)) and len(data) == 2 and hasattr(data[0], "shape"):
        check_sparse(data[0])  # validate before slicing
        n = int(collect_table(data[0]).shape[0])
        if np.shape(as_cells(data[1], "label"))[:1] == (n,):
            return n
        raise PrivacyParameterError("`y` must have exactly one label for each row of `X`.")
    raise PrivacyParameterError(
        "`data` must be an xgboost.DMatrix (not a QuantileDMatrix: its bins are exact quantiles of "
        "all rows) or a pair (X, y) of an array or data frame and its labels."
    )


def _select_rows(data: Any, rows: Ints) -> Any:
    """Select rows by index, keeping the type of `data`."""
    if not isinstance(data, (tuple, list)):
        from xgboost.core import XGBoostError

        with suppress(XGBoostError):
            return data.slice(rows)
        raise PrivacyRefusal(
            "Rows in external memory or with ranking groups cannot be split. Load all rows into "
            "one in-memory DMatrix without groups. Nothing was spent."
        )
    X, y = data
    return _select_from_table(X, rows), np.asarray(as_cells(y, "label"))[rows]


def _select_from_table(table: Any, rows: Ints) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if hasattr(table, "take") and hasattr(table, "column_names"):  # pyarrow
        return table.take(rows)
    return read_data(lambda: table[rows])
