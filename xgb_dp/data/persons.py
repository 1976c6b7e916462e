"""Who the rows of a matrix belong to, where the unit of privacy is a person.

What goes on from here are codes without a meaning, which live beside the matrix for the time of one
training. No model, ledger, log or error holds an id.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from ..engine import native, workers
from ..errors import PrivacyParameterError, PrivacyRefusal, RowDomainError, named
from .ids import Persons, column_of, several_kinds
from .split_rows import persons_of_part

_NAME = "dp_privacy_id"
_ATTACHED: WeakKeyDictionary[Any, Persons] = WeakKeyDictionary()
_HOLDS: WeakKeyDictionary[Any, WeakSet[Hold]] = WeakKeyDictionary()  # all of a matrix agree
_LOCK = threading.Lock()


def attach(matrix: Any, persons: Persons) -> None:
    """Remember whose rows a matrix holds, for one training."""
    _ATTACHED[matrix] = persons


def taken_out(params: Mapping[str, Any], dtrain: Any) -> tuple[dict[str, Any], Any]:
    """Parameters without the ids, which say only that there are some; and the ids."""
    given, attached = params.get(_NAME), _ATTACHED.pop(dtrain, None)
    if attached is None:
        attached = persons_of_part(dtrain, given)
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
    return {**params, _NAME: name or column_of(given) or True}, given


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
    kinds = set(workers.tell_all(persons.kind)) - {""}
    key = bytes.fromhex(workers.tell_all(secrets.token_hex(32) if rank == 0 else "")[0])
    mine = persons.hashes(key).tobytes()
    ours = {mine[i : i + 16] for i in range(0, len(mine), 16)}
    shared = False
    for root in range(world):
        theirs = workers.told_by(root, mine)
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
