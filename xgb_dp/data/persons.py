"""Who the rows of a matrix belong to, where the unit of privacy is a person.

What goes on from here are codes without a meaning, which live beside the matrix for the time of one
training. No model, ledger, log or error holds an id.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..engine import native, workers
from ..errors import PrivacyParameterError, PrivacyRefusal, RowDomainError
from ..request.names import flatten
from .ids import SEVERAL_KINDS, Persons, column_of, persons_of

__all__ = [
    "assign",
    "attach",
    "check_apart",
    "check_same",
    "id_column",
    "name_of",
    "taken_out",
]

_NAME = "dp_privacy_id"
_ATTACHED: WeakKeyDictionary[Any, Persons] = WeakKeyDictionary()
_NAMES: WeakKeyDictionary[Any, object] = WeakKeyDictionary()  # of who was set last
_ASSIGNING = threading.Lock()


def attach(matrix: Any, persons: Persons) -> None:
    """Remember whose rows a matrix holds, for one training.

    Args:
        matrix: A matrix that this package has made of a table. Slices of it do not inherit.
        persons: Who its rows belong to.
    """
    _ATTACHED[matrix] = persons


def taken_out(
    params: Mapping[str, Any] | Iterable[tuple[str, Any]], dtrain: Any
) -> tuple[dict[str, Any], Any]:
    """Parameters without the ids, which say only that there are some; and the ids.

    Args:
        params: What the user gave.
        dtrain: The training data, which has brought the ids along if this package made it.

    Returns:
        Flat parameters, with the name of the column of ids, or True where it has none; and one id
        for each row, or None.

    Raises:
        PrivacyParameterError: As :func:`xgb_dp.request.names.flatten`, or a name or True stand for
            ids that the matrix does not bring along.
    """
    flat = flatten(params)
    given, brought = flat.get(_NAME), _ATTACHED.pop(dtrain, None)
    if brought is None and (isinstance(given, str) or given is True):
        raise PrivacyParameterError(
            f"`{_NAME}` takes one id for each row. The name of a column stands for them where "
            "xgb_dp makes the matrix of a table with that column: estimators, Dask, Spark and the "
            "command line. For an xgboost.DMatrix leave the column out of it, and give the ids "
            f"themselves: {_NAME}=table[column]."
        )
    name = given if isinstance(given, str) else None
    if brought is not None and (given is None or given is True or name):
        given = brought
    if given is not None:
        flat[_NAME] = name or column_of(given) or True
    return flat, given


def id_column(params: Mapping[str, Any]) -> str | None:
    """Name of the column of ids among the parameters of an estimator, None without.

    Raises:
        PrivacyParameterError: The ids themselves stand there.
    """
    column = params.get(_NAME)
    if column is None or isinstance(column, (str, Persons)):
        return column if isinstance(column, str) else None
    raise PrivacyParameterError(
        f"`{_NAME}` of an estimator is the name of a column of its data. The ids themselves would "
        "be saved and shown with its parameters: give them to DPXGBClassifier or DPXGBRegressor "
        "as fit(X, y, privacy_id=ids), or to xgboost.train."
    )


def assign(dtrain: Any, ids: Any) -> Persons | None:
    """Set the persons of a matrix for the training that follows.

    Args:
        dtrain: The training data.
        ids: One id for each row; None for a training whose unit is a row, and at the end of one.

    Raises:
        PrivacyParameterError: As :func:`xgb_dp.data.ids.persons_of`.
        RowDomainError: As :func:`xgb_dp.data.ids.persons_of`.
    """
    persons = None if ids is None else persons_of(ids, dtrain.num_row())
    # The name first, and both by one thread: whoever reads other persons finds another name later.
    with _ASSIGNING:
        _NAMES[dtrain] = object()
        native.set_persons(dtrain, None if persons is None else persons.codes)
    return persons


def name_of(dtrain: Any) -> object:
    """Stands for what :func:`assign` has done to a matrix last, for :func:`check_same`."""
    return _NAMES.get(dtrain)


def check_same(dtrain: Any, name: object) -> None:
    """The persons of a matrix are those that a training has set.

    Checked before and after something is drawn: a name is given once, and before its persons are
    set, so that the same name both times means that nobody else's were read in between.

    Args:
        dtrain: The training data.
        name: Result of :func:`name_of` when they had been set.

    Raises:
        PrivacyRefusal: Another training has set its own since.
    """
    if name_of(dtrain) is not name:
        raise PrivacyRefusal(
            "Another training has changed who the rows of this DMatrix belong to, before this one "
            "was done: its guarantee would be about others than it says. Give each training a "
            "DMatrix of its own, or let one end before the next one starts."
        )


def check_apart(persons: Persons | None) -> None:
    """All rows of a person are on one worker, or training is refused on all of them.

    The bound of a person is enforced by the worker that has their rows. Workers tell each other a
    keyed hash of every person of theirs, which is forgotten at once; they trust each other, as with
    their sums.

    Args:
        persons: Those of this worker; None for a training whose unit is a row.

    Raises:
        RowDomainError: A person has rows on two workers, or the ids of one worker are of another
            kind than those of another.
    """
    rank, world = workers.this_worker()
    if persons is None or world == 1:
        return
    kinds = set(workers.tell_all(persons.kind)) - {""}
    key = bytes.fromhex(workers.tell_all(secrets.token_hex(32) if rank == 0 else "")[0])
    mine = persons.hashes(key)
    shared = False
    for root in range(world):
        theirs = workers.told_by(root, mine.tobytes())
        if root < rank:
            shared = shared or _meet(mine, np.frombuffer(theirs, mine.dtype).reshape(-1, 2))

    def refuse() -> None:
        if len(kinds) > 1:
            raise RowDomainError(SEVERAL_KINDS)
        if shared:
            raise RowDomainError(
                "A person has rows on two workers, where nobody can bound them together. Bring all "
                "rows of a person to one worker before matrices are made of them: "
                "`frame.shuffle(on=column)` in Dask, `frame.repartition(column)` in Spark. Nothing "
                "was released."
            )

    workers.check_together(refuse)


def _meet(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two lists of hashes have one in common."""
    one = one[np.isin(one[:, 0], other[:, 0])]
    return not set(map(tuple, one.tolist())).isdisjoint(map(tuple, other.tolist()))
