"""Authorizations, which every training asks for before it releases anything.

A budget books the release; a selection checks that it has accounted for the release. Both refuse by
raising an error, before anything is released.

An authorization holds for the thread or task that sets it, and for threads and tasks with a copy of
its context. While a block of a budget is open, other threads of the process are refused, and so are
processes started in the block. So nothing in the block bypasses its budget.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Protocol, TypeAlias

from ..accounting import Event, Unit, one_unit
from ..data.ids import SplitPart
from ..errors import POLICY, BudgetError
from .ledger_model import RecordedRelease


@dataclass(frozen=True)
class ReleaseRequest:
    """The releases for which a training asks authorization."""

    events: tuple[Event, ...]  # events of the whole plan, in release order
    private: bool  # whether noise is drawn, with the operating system's key
    unit: Unit  # privacy unit of the calibration
    part: SplitPart | None = None  # the part of the rows that is read; None for all, or unknown
    earlier: tuple[RecordedRelease, ...] = ()  # releases that the model depends on


Authorization: TypeAlias = Callable[[ReleaseRequest], Sequence[str | None]]
"""Raises an error to refuse. Returns the names of entries of the budget, of each earlier release
and for this one, or nothing if there is no budget."""

POLICY_KEY = "policy"
"""Key of the policy's digest in a training's public record."""
_POLICY_MODULE = "xgb_dp.policy"


class PolicyRules(Protocol):
    """The interface of the process's policy for trainings (:class:`xgb_dp.policy.Policy`)."""

    @property
    def digest(self) -> str:
        """SHA-256 of the policy."""

    def check_params(self, params: dict[str, Any], names: Sequence[str]) -> None:
        """Refuse parameters that the policy does not allow."""

    def check_weights(self, proved_for_unit_weights: str) -> None:
        """Refuse a setting that is proved only for unit weights, if rows may have weights."""

    def unbooked(self) -> BudgetError:
        """The refusal of a release without a budget."""

    def faults(self, ledger: Any) -> list[str]:
        """Violations of the policy in a ledger."""


_check_policy: list[Callable[[], PolicyRules | None]] = []  # of this process, once it was imported


def policy_in_force() -> PolicyRules | None:
    """The policy of this process, if any.

    Its module is imported where the environment names a policy. Without that module the import
    fails, and nothing is released. Once imported, it is asked whatever becomes of the environment.
    """
    if not _check_policy:
        if POLICY not in os.environ and _POLICY_MODULE not in sys.modules:
            return None
        _check_policy.append(resolve_name(f"{_POLICY_MODULE}:in_force"))
    return _check_policy[0]()


def read_policy(path: str | os.PathLike[str]) -> PolicyRules:
    """Read a policy from a file."""
    rules: PolicyRules = resolve_name(f"{_POLICY_MODULE}:Policy.read")(path)
    return rules


VARIABLE = "XGB_DP_OPEN_BUDGET"
"""Environment variable with the open block's budget, for processes started in the block."""


@dataclass(eq=False)
class _Held:
    """An authorization in force, and whether its block is still open."""

    authorize: Authorization
    block: str | None
    check: Authorization | None = None
    open: bool = True


_IN_FORCE: ContextVar[_Held | None] = ContextVar("xgb_dp_gate", default=None)
_INHERITED = os.environ.get(VARIABLE)  # from the parent process
_blocks: list[_Held] = []  # open blocks of all threads
_lock = threading.Lock()


def authorize(
    events: Sequence[Event],
    *,
    private: bool,
    unit: Unit | None = None,
    part: SplitPart | None = None,
    earlier: Sequence[RecordedRelease] = (),
) -> tuple[str | None, ...]:
    """Ask for the authorization of a release, if one is in force. Reads no data.

    Returns:
        The names of the entries of the budget: of each earlier release, and of this one.
    """
    held = _IN_FORCE.get()
    names: Sequence[str | None] = ()
    if held is None:
        check_booked()
    elif not held.open:
        raise BudgetError(
            "The block of the budget in which this thread or task was started has ended, and this "
            "training would not be booked. Nothing was released. Wait inside the block for what "
            "was started there, or open a block in the thread or task itself."
        )
    else:
        whom = Unit(one_unit(events)) if unit is None else unit
        names = held.authorize(ReleaseRequest(tuple(events), private, whom, part, tuple(earlier)))
    return tuple(names) or (*(old.entry for old in earlier), None)


def check_before(release: ReleaseRequest) -> None:
    """Refuse a release that would not be authorized. Books nothing and reads no data.

    Parties that have a budget each check it before any of them books.
    """
    held = _IN_FORCE.get()
    if held is not None and held.open and held.check is not None:
        held.check(release)


def in_force() -> bool:
    """Whether a training here asks a budget or a selection before it releases anything."""
    held = _IN_FORCE.get()
    return held is not None and held.open


def check_here() -> None:
    """Refuse a training on a cluster that no authorization of this process would see."""
    if in_force():
        raise BudgetError(
            "A budget or a selection is in force here, and workers of a cluster would train past "
            "it: they are other processes, which it does not see. Nothing was released. Book the "
            "training by `reserve` and `commit` of the budget, outside of its block."
        )
    check_booked()


def check_booked() -> None:
    """Refuse a release that the open block of a budget would not see.

    Under a policy every training needs a budget.
    """
    if (rules := policy_in_force()) is not None:
        raise rules.unbooked()
    if _blocks:
        raise BudgetError(
            "A block of a budget (`with budget.drawing()`) is open elsewhere in this process, and "
            "this thread or task would not be booked there. Nothing was released. Start threads of "
            "the block with its context, contextvars.copy_context().run(function, ...), as "
            "asyncio.to_thread does; or open a block in the thread itself. What no budget is to "
            "cover has to wait until the block has ended."
        )
    if _INHERITED is not None:
        raise BudgetError(
            f"This process was started inside a block of the budget {_INHERITED!r}, which does not "
            "see what is trained here. Nothing was released. Draw on the budget in this process: "
            "`with xgb_dp.Budget(path).drawing(): ...`. What no budget is to cover needs a process "
            f"that is started outside of the block, without {VARIABLE} in its environment."
        )


def check_free(*, booked: bool = True) -> None:
    """Refuse a release that an authorization in force would not see."""
    if in_force():
        raise BudgetError(
            "Budgets and selections do not nest: the outer one would not see what is drawn inside. "
            "Draw on one budget at a time, and give it to a selection itself: "
            "xgb_dp.select(..., budget=...)."
        )
    if not booked:
        check_booked()


@contextmanager
def authorized_by(
    authorization: Authorization, *, block: str | None = None, check: Authorization | None = None
) -> Iterator[None]:
    """Put an authorization in force for the trainings in a block."""
    check_free()
    held = _Held(authorization, block, check)
    if block is not None:
        _change_blocks(_blocks.append, held)
    token = _IN_FORCE.set(held)
    try:
        yield
    finally:
        held.open = False  # also for copies of this context
        if block is not None:
            _change_blocks(_blocks.remove, held)
        # A generator may be closed elsewhere: the context that opened it keeps a closed one.
        with suppress(ValueError):
            _IN_FORCE.reset(token)


def _change_blocks(change: Callable[[_Held], None], held: _Held) -> None:
    """Open or close a block, and set the environment variable for new processes."""
    with _lock:
        change(held)
        name = _blocks[-1].block if _blocks else _INHERITED
        if name is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = name


if hasattr(os, "register_at_fork"):  # a fork must not copy a lock that another thread holds
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
