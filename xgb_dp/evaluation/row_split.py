"""A random split of private rows into a part for training and a part for evaluation.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.arrays import as_cells, check_sparse, collected
from ..data.cells import read_data
from ..data.frames import without_column
from ..data.ids import TEST, TRAIN, Persons, SplitPart, encode_persons
from ..data.matrices import MATRICES, SplitTable, read_part_persons, split_matrix
from ..engine.native import split_rows
from ..errors import PrivacyParameterError, PrivacyRefusal, spelling, spelt
from ..noisy_sums import Ints
from ..parameters.parse import parse_number

_ASSIGNMENT_BITS = 32
"""A coin is a whole number of so many bits, compared with the share of the second part."""


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Two disjoint parts of the rows.

    Attributes:
        train: For trainings: a DMatrix for ``xgboost.train``, or a table for ``fit``.
        test: For evaluations, of the same kind.
        name: Name of the split in ledgers and budgets; random.
        unit: What was assigned to a part: "row" or "person".

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
        # Not the numbers of rows, which are private.
        return f"Split(name={self.name!r}, unit={self.unit!r})"


def split(data: Any, *, test: float = 0.2, privacy_id: Any = None) -> Split:
    """Divide rows at random into a part for trainings and a part for evaluations.

    Every row is in the second part with probability `test`, whatever the rows are; with
    `privacy_id` every person with all their rows. Since a row, or a person, is in one part only,
    releases on one part and releases on the other cost the larger of both, and not the sum.
    Budgets and reports count them so.

    Privacy: free; nothing is released. Hand the parts on as they are: each says which part it is,
    and its rows can no longer be changed. A copy, a slice or anything else made of a part is
    charged like all rows, so its costs add up.

    Args:
        data: An ``xgboost.DMatrix`` in memory, or (X, y).
        test: Probability of the second part, in (0, 1).
        privacy_id: One id for each row, or the name of a column of X, to assign whole persons.

    Returns:
        Split: Two parts. Parts of a DMatrix are matrices whose labels cannot be set. Parts of
        (X, y) are tables for ``fit`` and ``evaluate``; their method ``copy`` gives plain (X, y).
        ``dp_privacy_id=True`` in the parameters of a training means the ids of its part.

    Raises:
        PrivacyParameterError: An argument is out of range, or no such data.
        PrivacyRefusal: The rows stay on disk, so that they cannot be parted.

    Examples:
        >>> parts = xgb_dp.split(data, test=0.3)
        >>> trained = xgb.train(params, parts.train, 5)
        >>> report = xgb_dp.evaluate(trained, parts, epsilon=1.0, delta=1e-6)
        >>> "row pays for the model or for the figures, never for both" in report.statement()
        True
    """
    share = parse_number(spelt("test"), test, low=0.0, high=1.0, open_low=True, open_high=True)
    rows = _rows(data)
    with spelling({"dp_privacy_id": "privacy_id"}):
        _, privacy_id = ids_apart(data, privacy_id)
        persons = None if privacy_id is None else encode_persons(privacy_id, rows)
    sides = halves(data, share, None if persons is None else persons.codes)
    name, unit = secrets.token_hex(8), "row" if persons is None else "person"
    train, held_out = (
        part_with(taken, SplitPart(name, which, unit), persons and persons.some(indices))
        for (indices, taken), which in zip(sides, (TRAIN, TEST), strict=True)
    )
    return Split(train, held_out, name, unit)


def part_with(rows: Any, part: SplitPart, persons: Persons | None) -> Any:
    """Rows that nobody else holds, as a part of a split."""
    if persons is not None:
        persons = replace(persons, part=part)
        for array in (persons.codes, persons.distinct):
            array.flags.writeable = False
    if isinstance(rows, tuple):
        return SplitTable(rows, part, persons)
    return split_matrix(rows, part, persons)


def rows_and_ids(data: Any, ids: Any) -> tuple[Any, Any]:
    """Rows, a pair without the column of ids, and whose they are; of a part as it was made."""
    rows, persons = data, read_part_persons(data, True if ids is None else ids)
    if isinstance(data, SplitTable):
        X, y, ids = data.taken(ids=ids)
        rows = X, y
    rows, given = ids_apart(rows, ids)
    return rows, given if persons is None else persons


def ids_apart(data: Any, ids: Any) -> tuple[Any, Any]:
    """A pair without the column that a name of ids means, and these ids; others as they are."""
    if not isinstance(ids, str) or not isinstance(data, (tuple, list)) or len(data) != 2:
        return data, ids
    table, cells = without_column(data[0], ids)
    return (table, data[1]), encode_persons(cells, column=ids)


def halves(
    data: Any, share: float, codes: npt.NDArray[np.uint32] | None
) -> tuple[tuple[Ints, Any], tuple[Ints, Any]]:
    """Divide rows at random, without a note of who is where."""
    num = min(max(1, round(share * 2**_ASSIGNMENT_BITS)), 2**_ASSIGNMENT_BITS - 1)
    kept, apart = split_rows(_rows(data), num, codes)
    return (kept, _taken(data, kept)), (apart, _taken(data, apart))


def _rows(data: Any) -> int:
    """Number of rows, of a DMatrix or a pair."""
    if type(data) in MATRICES:
        return int(data.num_row())
    if isinstance(data, (tuple, list)) and len(data) == 2 and hasattr(data[0], "shape"):
        check_sparse(data[0])  # before it is divided
        n = int(collected(data[0]).shape[0])
        if np.shape(as_cells(data[1], "label"))[:1] == (n,):
            return n
        raise PrivacyParameterError("`y` must have one label for each row of `X`.")
    raise PrivacyParameterError(
        "`data` must be an xgboost.DMatrix (no QuantileDMatrix: its bins are exact quantiles of "
        "all rows), or a pair (X, y) of an array or data frame and its labels."
    )


def _taken(data: Any, rows: Ints) -> Any:
    """Some of the rows, of the same kind as all of them."""
    if not isinstance(data, (tuple, list)):
        from xgboost.core import XGBoostError

        with suppress(XGBoostError):
            return data.slice(rows)
        raise PrivacyRefusal(
            "Rows that stay on disk, or are ranked in groups, cannot be parted. Load the rows into "
            "one DMatrix. Nothing was spent."
        )
    X, y = data
    return _some(X, rows), np.asarray(as_cells(y, "label"))[rows]


def _some(table: Any, rows: Ints) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if hasattr(table, "take") and hasattr(table, "column_names"):  # pyarrow
        return table.take(rows)
    return read_data(lambda: table[rows])
