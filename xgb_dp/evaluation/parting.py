"""Train and hold-out by secret coins, so that a row, or a person, is in one of them.

Proof: docs/proofs/evaluation.md
Proof: docs/proofs/secret-splits.md
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from ..data.arrays import cells_of, collected
from ..data.cells import read_data
from ..data.frames import without_column
from ..data.ids import Persons, persons_of
from ..data.parts import TEST, TRAIN, Part, divided_by, mark, num_of_share, secret_num
from ..data.sparse import check_sparse
from ..engine.native import rows_apart
from ..errors import PrivacyParameterError, PrivacyRefusal, spelling
from ..noisy_sums import Ints
from ..parameters.parse import parse_flag, parse_number


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Two disjoint parts of the rows.

    Attributes:
        train: For trainings: a DMatrix, or (X, y).
        test: For evaluations, of the same kind.
        name: Name of the division in ledgers and budgets; random.
        unit: What a coin was drawn for: "row" or "person".
        train_ids: Ids of the persons of `train`; None without persons.
        test_ids: The same of `test`.

    Examples:
        >>> parts = xgb_dp.split(data, test=0.3)
        >>> parts.train.num_row() + parts.test.num_row()
        2000
    """

    train: Any
    test: Any
    name: str
    unit: str
    train_ids: Any = None
    test_ids: Any = None

    def __repr__(self) -> str:
        # Which rows are where, and how many, is secret.
        return f"Split(name={self.name!r}, unit={self.unit!r})"


def split(
    data: Any, *, test: float = 0.2, privacy_id: Any = None, coins_stay_secret: bool = False
) -> Split:
    """Divide rows into a part for trainings and one for evaluations, by secret coins.

    Every row is in the second part with probability `test`, independently of all others; with
    `privacy_id` every person with all their rows is. So a row, or a person, is in one part only:
    what is released from one part does not add to the cost of what is released from the other, and
    a budget that books both knows that.

    Privacy: free; nothing is released. Which rows are where, and how many, must stay secret: hand
    the parts to private trainings and evaluations only, as they are. A copy, a slice or a matrix
    made from a part is not known to be a part, and what is released from it adds up.

    Args:
        data: An ``xgboost.DMatrix`` in memory, or (X, y).
        test: Probability of the second part, in (0, 1).
        privacy_id: One id for each row, or the name of a column of X, for coins for persons.
        coins_stay_secret: You promise that nobody learns anything of the coins but by private
            releases: not which rows are in which part, not how many, and no exact figure of a part
            (a metric, a mean, the digest of a file); and that you do not choose among several
            splits. Then all releases on both parts cost less together: evaluations and reports say
            how much, and a budget made with ``secret_test`` counts so.

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
    share = parse_number("test", test, low=0.0, high=1.0, open_low=True, open_high=True)
    secret = parse_flag("coins_stay_secret", coins_stay_secret)
    test_num = secret_num(share) if secret else None
    rows = _rows(data)
    with spelling({"dp_privacy_id": "privacy_id"}):
        _, privacy_id = ids_apart(data, privacy_id)
        persons = None if privacy_id is None else persons_of(privacy_id, rows)
    sides = halves(data, share, None if persons is None else persons.codes)
    name, unit = secrets.token_hex(8), "row" if persons is None else "person"
    ids: list[Any] = [None, None]
    if persons is not None:
        column = _exact(persons)
        ids = [column[indices] for indices, _ in sides]
        divided_by(name, persons.column)
    for (_, taken), some, which in zip(sides, ids, (TRAIN, TEST), strict=True):
        for thing in (*(taken if isinstance(taken, tuple) else (taken,)), some):
            if thing is not None:
                mark(thing, Part(name, which, unit, test_num))
    return Split(sides[0][1], sides[1][1], name, unit, *ids)


def ids_apart(data: Any, ids: Any) -> tuple[Any, Any]:
    """A pair without the column that a name of ids means, and these ids; others as they are."""
    if not isinstance(ids, str) or not isinstance(data, (tuple, list)) or len(data) != 2:
        return data, ids
    table, cells = without_column(data[0], ids)
    return (table, data[1]), persons_of(cells, column=ids)


def _exact(persons: Persons) -> np.ndarray:
    """The id of each row, exactly: as cells, whole numbers would be rounded to floats."""
    distinct = persons.distinct
    if persons.kind == "UUIDs":
        distinct = np.array([UUID(int=v) for v in persons.listed], dtype=object)
    return distinct[persons.codes]


def halves(
    data: Any, share: float, codes: npt.NDArray[np.uint32] | None
) -> tuple[tuple[Ints, Any], tuple[Ints, Any]]:
    """Divide rows by secret coins, without a note of who is where."""
    kept, apart = rows_apart(_rows(data), num_of_share(share), codes)
    return (kept, _taken(data, kept)), (apart, _taken(data, apart))


def _rows(data: Any) -> int:
    """Number of rows, of a DMatrix or a pair."""
    from xgboost import DMatrix

    if type(data) is DMatrix:
        return int(data.num_row())
    if isinstance(data, (tuple, list)) and len(data) == 2 and hasattr(data[0], "shape"):
        check_sparse(data[0])  # before it is divided
        n = int(collected(data[0]).shape[0])
        if np.shape(cells_of(data[1], "label"))[:1] == (n,):
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
    return _some(X, rows), np.asarray(cells_of(y, "label"))[rows]


def _some(table: Any, rows: Ints) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if hasattr(table, "take") and hasattr(table, "column_names"):  # pyarrow
        return table.take(rows)
    return read_data(lambda: table[rows])
