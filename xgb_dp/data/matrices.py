"""Matrices of private rows: construction, the person of each row, and parts of a split.

The persons of a matrix are arbitrary codes, kept outside the matrix and only during one training.
No model, ledger, log or error contains an id. Matrices for estimators, Dask, public samples and
evaluation are built here, because XGBoost's own error messages quote cells.

Only a :class:`SplitMatrix` or :class:`SplitTable` can declare that a release reads one part of a
split. Its rows, labels and ids cannot be replaced, so the declaration stays true. Anything derived
from it (a copy, a slice, another matrix) belongs to no part, and a release on it is charged to all
rows.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import copy
import hashlib
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn
from weakref import WeakSet

import numpy as np
from xgboost import DMatrix
from xgboost.core import XGBoostError

from ..engine import native, workers
from ..errors import PrivacyParameterError, PrivacyRefusal, RowDomainError, alias, named
from .arrays import as_numbers, check_sparse
from .cells import read_data
from .frames import check_names, has_column, prepare_table
from .ids import Persons, SplitPart, encode_persons, mixed_kinds_error, read_id_column

_NAME = "dp_privacy_id"
_PERSONS, _HOLDS = "_dp_persons", "_dp_holds"  # attributes of a matrix
_LOCK = threading.Lock()


def attach(matrix: Any, persons: Persons) -> None:
    """Associate the persons of the rows with a matrix, for one training."""
    setattr(matrix, _PERSONS, persons)


def take_ids(given: Any, dtrain: Any) -> tuple[str | bool | None, Any]:
    """Take the privacy ids of a training from its parameter or from its matrix.

    Returns:
        The parameter to record, which is the name of the id column, True or None, and the ids.
    """
    attached = vars(dtrain).pop(_PERSONS, None)
    if attached is None:
        attached = read_part_persons(dtrain, given)
    if attached is None and (isinstance(given, str) or given is True):
        raise PrivacyParameterError(
            f"`{_NAME}` must have one id per row. The name of a column is accepted only where "
            "xgb_dp builds the matrix from a table with that column (estimators, Dask, Spark and "
            "the command line), and for a part of xgb_dp.split(..., privacy_id=ids), which also "
            "accepts True. For an xgboost.DMatrix, drop the id column from the features and pass "
            f"the ids themselves: {_NAME}=table[column]."
        )
    name = given if isinstance(given, str) else None
    if attached is not None and (given is None or given is True or name):
        given = attached
    if given is None:
        return None, None
    return name or read_id_column(given) or True, given


def id_column(params: Mapping[str, Any]) -> str | None:
    """Return the name of the id column from an estimator's parameters, or None."""
    column = params.get(_NAME)
    if column is None or isinstance(column, (str, Persons)):
        return column if isinstance(column, str) else None
    raise PrivacyParameterError(
        f"`{_NAME}` of an estimator must be the name of a column of its data, because "
        "parameters are saved and displayed. Pass the ids themselves to DPXGBClassifier or "
        "DPXGBRegressor as fit(X, y, privacy_id=ids), to xgboost.train, or to "
        "xgboost.dask.train."
    )


class Hold:
    """Claim of one training on the persons of its matrix, from its start to its end."""

    def __init__(self, dtrain: Any, persons: Persons | None) -> None:
        self.dtrain = dtrain
        self.digest = None if persons is None else hashlib.sha256(persons.codes.tobytes()).digest()
        self.thread = threading.current_thread()

    def check(self) -> None:
        """Raise PrivacyRefusal if another training has changed the persons of the matrix."""
        if self not in getattr(self.dtrain, _HOLDS, ()):
            raise PrivacyRefusal(
                "A training that was started inside this one, for example in a callback, has "
                "changed the privacy ids of this DMatrix, so the guarantee would no longer hold. "
                "Give the inner training its own DMatrix."
            )

    def release(self) -> None:
        """Release the matrix; the last holder removes the codes of the persons."""
        with _LOCK:
            holds: WeakSet[Hold] = getattr(self.dtrain, _HOLDS, WeakSet())
            if self not in holds:
                return
            holds.discard(self)
            if not holds:
                native.set_persons(self.dtrain, None)


def hold(dtrain: Any, persons: Persons | None) -> Hold:
    """Set the persons of a matrix for the duration of a training.

    Trainings in several threads may share a matrix only if they have the same persons, or all have
    none. The codes are then set once, so that C++ sees one object in every thread. Any other
    training is refused here, before it is charged to a budget, so that no running training loses
    its persons.

    A training that fails with an exception may never release its matrix. Its hold then ends with
    its thread, with the last reference to the exception, or when the thread starts another
    training.
    """
    claim = Hold(dtrain, persons)
    with _LOCK:
        holds: WeakSet[Hold] = vars(dtrain).setdefault(_HOLDS, WeakSet())  # of equal digests
        running = [h for h in holds if h.thread.is_alive()]
        others = [h for h in running if h.thread is not claim.thread]
        if others and others[0].digest != claim.digest:
            raise PrivacyRefusal(
                "Another thread is training on this DMatrix with different privacy ids, or only "
                "one of the two trainings has privacy ids. Nothing was released. Give each "
                f"training its own DMatrix, pass the same {named.dp_privacy_id} to both, or wait "
                "for the other one to end."
            )
        if others and native.is_paged(dtrain):
            raise PrivacyRefusal(
                "Another thread is training on this DMatrix, whose rows are on disk; XGBoost "
                "can read them in only one thread at a time. Nothing was released. Give each "
                "training its own DMatrix, or wait for the other one to end."
            )
        if not running or running[0].digest != claim.digest:
            holds.clear()
            native.set_persons(dtrain, None if persons is None else persons.codes)
        holds.add(claim)
    return claim


def hold_ids(dtrain: Any, ids: Any) -> Hold:
    """Encode the privacy ids, if any, and hold the matrix; all workers must call this."""
    persons = workers.check_together(
        lambda: None if ids is None else encode_persons(ids, dtrain.num_row())
    )
    _check_persons_apart(persons)
    return workers.check_together(lambda: hold(dtrain, persons))


def _check_persons_apart(persons: Persons | None) -> None:
    """Refuse training on all workers if the rows of a person are on more than one worker.

    Each worker bounds the contribution of the persons in its own rows. To find persons on two
    workers, the workers exchange keyed hashes of their persons, with a fresh key, and discard them
    at once. The workers trust each other with these hashes, as they do with their sums.
    """
    rank, world = workers.this_worker()
    if persons is None or world == 1:
        return
    kinds = set(workers.all_gather(persons.kind)) - {""}
    key = bytes.fromhex(workers.all_gather(secrets.token_hex(32) if rank == 0 else "")[0])
    local = persons.hashes(key).tobytes()
    known = {local[i : i + 16] for i in range(0, len(local), 16)}
    shared = False
    for root in range(world):
        remote = workers.broadcast(root, local)
        if root < rank:
            shared |= any(remote[i : i + 16] in known for i in range(0, len(remote), 16))

    def refuse() -> None:
        if len(kinds) > 1:
            raise mixed_kinds_error()
        if shared:
            raise RowDomainError(
                "A person has rows on two workers, so their contribution cannot be bounded. Move "
                "all rows of a person to one worker before you build matrices: use "
                "`frame.shuffle(on=column)` in Dask or `frame.repartition(column)` in Spark. "
                "Nothing was released."
            )

    workers.check_together(refuse)


_BOUND = "label bound"
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
    """Build an ``xgboost.DMatrix``; no error message contains data."""
    meta = {name: kwargs.pop(name, None) for name in META}
    coded = read_data(prepare_table, data, categories)
    check_shape(coded)
    if getattr(coded, "shape", (0, 1))[1] == 0:
        raise PrivacyParameterError("The data has no columns. Pass at least one feature.")
    check_sparse(coded)
    names = kwargs.get("feature_names")
    if names is not None:
        if not all(isinstance(name, str) for name in names):
            raise PrivacyParameterError("`feature_names` must be strings.")
        check_names(names)
    try:
        matrix = read_data(DMatrix, coded, **kwargs)
    except RowDomainError:
        _check_arguments(coded.shape[1], kwargs)
        raise
    info = checked(meta, matrix.num_row())
    read_data(lambda: matrix.set_info(**info))
    if persons is not None:
        attach(matrix, encode_persons(persons, matrix.num_row()))
    return matrix


def _check_arguments(width: int, arguments: Mapping[str, Any]) -> None:
    """Show XGBoost's error about an argument: with a row of zeros it contains no cell."""
    try:
        DMatrix(np.zeros((1, width)), **arguments)
    except (XGBoostError, TypeError, ValueError) as error:
        given = ", ".join(name for name, value in arguments.items() if value is not None)
        reason = " ".join(map(str, error.args))
        raise PrivacyParameterError(
            f"The data cannot be read with these arguments ({given}): {reason}. For example, "
            "`missing` must be a number, and `feature_types` needs 'q', 'i' or 'c' for each column."
        ) from None


def check_shape(table: Any) -> None:
    """Check that the public shape of a table is two-dimensional."""
    shape = getattr(table, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise PrivacyParameterError(
            f"Expected 2D array, got {len(shape)}D array instead: `X` must have rows and columns. "
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row, "
            "np.empty((0, columns)) for no row."
        )


def checked(meta: Mapping[str, Any], n: int) -> dict[str, np.ndarray]:
    """Check that values are finite and given per row; censored upper bounds may be infinite."""
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
                f"A row has a missing or infinite {META[name]} (`{alias(name)}`). Drop or replace "
                "it row by row."
            )
        if name == "weight" and not (array >= 0).all():
            raise RowDomainError(
                f"A row has a negative weight ({named.weight}). Drop or replace it row by row."
            )
        per_row = array.ndim > 0 and len(array) == n
        if not per_row and (name != "base_margin" or array.size % max(n, 1)):
            raise PrivacyParameterError(f"`{alias(name)}` must have one entry per row of the data.")
        out[name] = array
    return out


class SplitMatrix(DMatrix):
    """A part of a split as a DMatrix with immutable labels and weights.

    Attributes:
        part: The split and the name of this part.
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

    # Overrides every method with which XGBoost modifies a matrix.
    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise PrivacyRefusal: the rows of a part cannot be changed."""
        del args, kwargs
        raise PrivacyRefusal(
            "A part of xgb_dp.split cannot be changed, because releases on it are charged only to "
            "the rows that the split assigned to it. Change the rows before you split them."
        )

    set_info = set_label = set_weight = set_base_margin = set_group = _refuse
    set_float_info = set_float_info_npy2d = set_uint_info = _refuse


MATRICES = (DMatrix, SplitMatrix)
"""The matrix types that store the original rows; other subclasses store quantized bins."""


@dataclass(frozen=True, eq=False, repr=False)
class SplitTable:
    """A part of a split as a table and its labels, both immutable.

    Pass it unchanged to ``fit``, ``fit_select`` or :func:`xgb_dp.evaluate`. Releases on the result
    of :meth:`copy` are charged to all rows.

    Attributes:
        part: The split and the name of this part.
        persons: The ids of the rows if the split was made by person; None otherwise.
        arguments: The ``sample_weight`` and ``base_margin`` of the rows, if the split has them.

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
    arguments: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))

    def copy(self) -> tuple[Any, Any]:
        """Return a copy of the table and of the labels."""
        return copy.deepcopy(self._rows)

    def unpack(self, y: Any = None, ids: Any = None) -> tuple[Any, Any, Any]:
        """Return the table, its labels and the requested ids; by default the ids of the split."""
        if y is not None:
            raise PrivacyParameterError(
                "A part of xgb_dp.split already contains its labels. Pass it without `y`."
            )
        X, y = self._rows
        persons = read_part_persons(self, True if ids is None else ids)
        if persons is not None:
            name = persons.column
            ids = name if name is not None and has_column(X, name) else persons
        return X, y, ids


def split_matrix(matrix: Any, part: SplitPart | None, persons: Persons | None = None) -> Any:
    """Turn a DMatrix into a part of a split in place; unchanged if `part` is None."""
    if part is not None:
        matrix.__class__ = SplitMatrix  # building a new matrix would copy the rows
        matrix.part, matrix.persons = part, persons
    return matrix


def find_part(rows: Any, persons: Any = None) -> SplitPart | None:
    """Return the part that a release reads; None if it may read other rows or other persons.

    The ids of the release must be the ids of the split: after a split by patient, for example,
    both parts contain rows of the same hospital.
    """
    part = rows.part if isinstance(rows, (SplitMatrix, SplitTable)) else None
    if part is None or persons is None or part.unit == "row":
        return part
    return part if isinstance(persons, Persons) and persons.part == part else None


def read_part_persons(rows: Any, ids: Any) -> Persons | None:
    """Return the ids of a split by person if `ids` is True or the name of their column."""
    persons = rows.persons if isinstance(rows, (SplitMatrix, SplitTable)) else None
    if persons is None:
        return None
    named = isinstance(ids, str) and ids == persons.column
    return persons if ids is True or named else None
