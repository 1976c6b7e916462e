"""Matrices of private rows: how they are made, whose rows they are, and their part of a split.

The persons of a matrix are codes without a meaning, which live beside the matrix for the time of
one training. No model, ledger, log or error contains an id. Matrices for estimators, Dask, public
samples and evaluation are made here, because XGBoost's own messages quote cells.

A :class:`SplitMatrix` or :class:`SplitTable` is the only way to say that a release reads one part.
Its rows, labels and ids cannot be replaced, so the name stays true. Whatever is made of it (a copy,
a slice, another matrix) has no name, and a release on it is counted on all rows.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import copy
import hashlib
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
from xgboost import DMatrix

from ..engine import native, workers
from ..errors import PrivacyParameterError, PrivacyRefusal, RowDomainError, named
from .arrays import as_numbers, check_sparse
from .cells import read_data
from .frames import check_names, has_column, prepare_table
from .ids import Persons, SplitPart, encode_persons, read_id_column, several_kinds

_NAME = "dp_privacy_id"
_ATTACHED: WeakKeyDictionary[Any, Persons] = WeakKeyDictionary()
_HOLDS: WeakKeyDictionary[Any, WeakSet[Hold]] = WeakKeyDictionary()  # all of a matrix agree
_LOCK = threading.Lock()


def attach(matrix: Any, persons: Persons) -> None:
    """Remember whose rows a matrix holds, for one training."""
    _ATTACHED[matrix] = persons


def take_ids(params: Mapping[str, Any], dtrain: Any) -> tuple[dict[str, Any], Any]:
    """Parameters without the ids, which say only that there are some; and the ids."""
    given, attached = params.get(_NAME), _ATTACHED.pop(dtrain, None)
    if attached is None:
        attached = read_part_persons(dtrain, given)
    if attached is None and (isinstance(given, str) or given is True):
        raise PrivacyParameterError(
            f"`{_NAME}` takes one id for each row. The name of a column stands for them where "
            "xgb_dp makes the matrix of a table with that column (estimators, Dask, Spark and the "
            "command line), and for a part of xgb_dp.split(..., privacy_id=ids), as True does. For "
            "an xgboost.DMatrix leave the column out of it, and give the ids themselves: "
            f"{_NAME}=table[column]."
        )
    name = given if isinstance(given, str) else None
    if attached is not None and (given is None or given is True or name):
        given = attached
    if given is None:
        return dict(params), None
    return {**params, _NAME: name or read_id_column(given) or True}, given


def id_column(params: Mapping[str, Any]) -> str | None:
    """Name of the column of ids among the parameters of an estimator, None without."""
    column = params.get(_NAME)
    if column is None or isinstance(column, (str, Persons)):
        return column if isinstance(column, str) else None
    raise PrivacyParameterError(
        f"`{_NAME}` of an estimator is the name of a column of its data. The ids themselves would "
        "be saved and shown with its parameters: give them to DPXGBClassifier or DPXGBRegressor "
        "as fit(X, y, privacy_id=ids), to xgboost.train, or to xgboost.dask.train."
    )


class Hold:
    """The claim of a running training on who the rows of its matrix belong to."""

    def __init__(self, persons: Persons | None) -> None:
        self.digest = None if persons is None else hashlib.sha256(persons.codes.tobytes()).digest()
        self.thread = threading.current_thread()

    def check(self, dtrain: Any) -> None:
        """Refuse to go on after :func:`hold` has let another training take the matrix."""
        if self not in _HOLDS.get(dtrain, ()):
            raise PrivacyRefusal(
                "A training inside of this one, for example in a callback, has changed who the "
                "rows of this DMatrix belong to: the guarantee of this one would be about others "
                "than it says. Give the inner training a DMatrix of its own."
            )

    def release(self, dtrain: Any) -> None:
        """Let others have the matrix; the last one takes the codes of persons off."""
        with _LOCK:
            holds = _HOLDS.get(dtrain)
            if holds is None or self not in holds:
                return
            holds.discard(self)
            if not holds:
                native.set_persons(dtrain, None)


def hold(dtrain: Any, persons: Persons | None) -> Hold:
    """Set the persons of a matrix until the training that follows has ended.

    Trainings in several threads share a matrix if all of them have the same persons, or none. The
    codes are then set once, so C++ sees the same object in all of them. Others are refused here,
    before anything is booked, so that no training loses the persons that it has begun with.

    An error may end a training without a word to its matrix. Its hold then ends with its thread,
    with the exception that still refers to it, or when its thread starts the next training.
    """
    claim = Hold(persons)
    with _LOCK:
        holds = _HOLDS.setdefault(dtrain, WeakSet())
        running = [h for h in holds if h.thread.is_alive()]
        others = [h for h in running if h.thread is not claim.thread]
        if others and others[0].digest != claim.digest:
            raise PrivacyRefusal(
                "Another thread is training on this DMatrix for other persons than this training, "
                "or one of both is for rows. Nothing was released. Give each training a DMatrix "
                f"of its own, give both the same {named.dp_privacy_id}, or wait for the other one "
                "to end."
            )
        if others and native.is_paged(dtrain):
            raise PrivacyRefusal(
                "Another thread is training on this DMatrix, whose rows are on disk: XGBoost "
                "reads them in one thread at a time. Nothing was released. Give each training a "
                "DMatrix of its own, or wait for the other one to end."
            )
        if not running or running[0].digest != claim.digest:
            holds.clear()
            native.set_persons(dtrain, None if persons is None else persons.codes)
        holds.add(claim)
    return claim


def check_apart(persons: Persons | None) -> None:
    """All rows of a person are on one worker, or training is refused on all of them.

    The bound of a person is enforced by the worker that has their rows. Workers tell each other a
    keyed hash of every person of theirs, which is forgotten at once; they trust each other, as with
    their sums.
    """
    rank, world = workers.this_worker()
    if persons is None or world == 1:
        return
    kinds = set(workers.all_gather(persons.kind)) - {""}
    key = bytes.fromhex(workers.all_gather(secrets.token_hex(32) if rank == 0 else "")[0])
    mine = persons.hashes(key).tobytes()
    ours = {mine[i : i + 16] for i in range(0, len(mine), 16)}
    shared = False
    for root in range(world):
        theirs = workers.broadcast(root, mine)
        if root < rank:
            shared |= any(theirs[i : i + 16] in ours for i in range(0, len(theirs), 16))

    def refuse() -> None:
        if len(kinds) > 1:
            raise several_kinds()
        if shared:
            raise RowDomainError(
                "A person has rows on two workers, where nobody can bound them together. Bring all "
                "rows of a person to one worker before matrices are made of them: "
                "`frame.shuffle(on=column)` in Dask, `frame.repartition(column)` in Spark. Nothing "
                "was released."
            )

    workers.check_together(refuse)


_BOUND = "bound of its label"
META = {
    "label": "label",
    "weight": "weight",
    "base_margin": "margin",
    "label_lower_bound": _BOUND,
    "label_upper_bound": _BOUND,
}


def private_matrix(
    data: Any,
    *,
    categories: Mapping[Any, Any] | None = None,
    persons: Persons | None = None,
    **kwargs: Any,
) -> Any:
    """An ``xgboost.DMatrix``; what is wrong with the data is told without showing any of it."""
    from xgboost import DMatrix

    meta = {name: kwargs.pop(name, None) for name in META}
    coded = read_data(prepare_table, data, categories)
    check_shape(coded)
    if getattr(coded, "shape", (0, 1))[1] == 0:
        raise PrivacyParameterError("The data has no columns. Give at least one feature.")
    check_sparse(coded)
    names = kwargs.get("feature_names")
    if names is not None:
        if not all(isinstance(name, str) for name in names):
            raise PrivacyParameterError("`feature_names` must be texts.")
        check_names(names)
    matrix = read_data(DMatrix, coded, **kwargs)
    info = checked(meta, matrix.num_row())
    read_data(lambda: matrix.set_info(**info))
    if persons is not None:
        attach(matrix, encode_persons(persons, matrix.num_row()))
    return matrix


def check_shape(table: Any) -> None:
    """Refuse a table whose dimensions, which are public, are not rows and columns."""
    shape = getattr(table, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise PrivacyParameterError(
            f"Expected 2D array, got {len(shape)}D array instead: `X` must have rows and columns. "
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row, "
            "np.empty((0, columns)) for no row."
        )


def checked(meta: Mapping[str, Any], n: int) -> dict[str, np.ndarray]:
    """Finite numbers for each row; an upper bound of a label is infinite where no end was seen."""
    out: dict[str, np.ndarray] = {}
    for name, values in meta.items():
        if values is None:
            continue
        array = as_numbers(values, META[name])
        with np.errstate(over="ignore"):
            finite = np.isfinite(array.astype(np.float32))
        if name == "label_upper_bound":
            finite |= array == np.inf
        if not finite.all():
            raise RowDomainError(
                f"A row has a missing or infinite {META[name]} (`{name}`). Drop or replace it "
                "row by row."
            )
        if name == "weight" and not (array >= 0).all():
            raise RowDomainError(
                "A row has a negative weight (`weight`). Drop or replace it row by row."
            )
        if name != "base_margin" and (array.ndim == 0 or len(array) != n):
            raise PrivacyParameterError(f"`{name}` must have one entry for each row of the data.")
        out[name] = array
    return out


class SplitMatrix(DMatrix):
    """A part of a split as a DMatrix, whose labels and weights can no longer be set.

    Attributes:
        part: The split and the part.
        persons: The ids of the rows if the split was made by person; None otherwise.

    Examples:
        >>> parts = xgb_dp.split(data, test=0.3)
        >>> parts.test.part.name
        'test'
        >>> parts.test.set_label([])  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        PrivacyRefusal: A part of xgb_dp.split cannot be changed...
    """

    part: SplitPart
    persons: Persons | None

    # What follows takes the place of everything by which XGBoost changes a matrix.
    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: the rows of a part cannot be changed."""
        del args, kwargs
        raise PrivacyRefusal(
            "A part of xgb_dp.split cannot be changed, because a release on it is charged for the "
            "rows that the split put there. Change the rows before you split them."
        )

    set_info = set_label = set_weight = set_base_margin = set_group = _refuse
    set_float_info = set_float_info_npy2d = set_uint_info = _refuse


MATRICES = (DMatrix, SplitMatrix)
"""Types of matrices that hold the rows as they are; others, such as bins, are subclasses too."""


@dataclass(frozen=True, eq=False, repr=False)
class SplitTable:
    """A part of a split as a table and its labels, which cannot be replaced.

    Give it to ``fit``, ``fit_select`` or :func:`xgb_dp.evaluate` as it is. Releases on what
    :meth:`copy` returns are charged for all rows.

    Attributes:
        part: The split and the part.
        persons: The ids of the rows if the split was made by person; None otherwise.

    Examples:
        >>> parts = xgb_dp.split((data.get_data(), data.get_label()), test=0.3)
        >>> trained = xgb_dp.DPXGBClassifier(epsilon=1.0, delta=1e-6, classes=[0, 1])
        >>> report = xgb_dp.evaluate(trained.fit(parts.train), parts, epsilon=1.0, delta=1e-6)
        >>> report.cost.parallel
        True
    """

    _rows: tuple[Any, Any]
    part: SplitPart
    persons: Persons | None = None

    def copy(self) -> tuple[Any, Any]:
        """A copy of the table and of the labels."""
        return copy.deepcopy(self._rows)

    def taken(self, y: Any = None, ids: Any = None) -> tuple[Any, Any, Any]:
        """The table, its labels, and the ids that are asked for; by default those of the split."""
        if y is not None:
            raise PrivacyParameterError(
                "A part of xgb_dp.split has its own labels. Give it alone, without `y`."
            )
        X, y = self._rows
        persons = read_part_persons(self, True if ids is None else ids)
        if persons is not None:
            name = persons.column
            ids = name if name is not None and has_column(X, name) else persons
        return X, y, ids


def split_matrix(matrix: Any, part: SplitPart | None, persons: Persons | None = None) -> Any:
    """The same DMatrix as a part of a split; unchanged where the part is not known."""
    if part is not None:
        matrix.__class__ = SplitMatrix  # XGBoost cannot make a matrix of another one without a copy
        matrix.part, matrix.persons = part, persons
    return matrix


def find_part(rows: Any, persons: Any = None) -> SplitPart | None:
    """The part that a release reads; None if it may read other rows or other persons.

    Rows of one hospital are in both parts of a split by patient.
    """
    part = rows.part if isinstance(rows, (SplitMatrix, SplitTable)) else None
    if part is None or persons is None or part.unit == "row":
        return part
    return part if isinstance(persons, Persons) and persons.part == part else None


def read_part_persons(rows: Any, ids: Any) -> Persons | None:
    """The ids of a split by person, where they are asked for by True or by their name."""
    persons = rows.persons if isinstance(rows, (SplitMatrix, SplitTable)) else None
    if persons is None:
        return None
    named = isinstance(ids, str) and ids == persons.column
    return persons if ids is True or named else None
