"""Authorization that every training requests before it releases anything.

A budget records the release; a selection checks that the release was accounted for. Both refuse by
raising an error before anything is released.

An authorization applies to the thread or task that sets it, and to threads and tasks with a copy of
its context. While a budget block is open, releases in other threads of the process, and in
processes started inside the block, are refused. Nothing in the block can therefore bypass its
budget.

Tests can fix the noise of trainings, generated from a known key instead of a key of the operating
system. Models trained with it are marked as not private in the plan, the ledger and the report.
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

from ..accounting import Event, Unit
from ..data.ids import SplitPart
from ..errors import POLICY, BudgetError, PrivacyParameterError
from .ledger_model import RecordedRelease


@dataclass(frozen=True)
class ReleaseRequest:
    """The releases for which a training requests authorization."""

    events: tuple[Event, ...]  # events of the whole plan, in release order
    private: bool  # whether noise is added, with a key from the operating system
    unit: Unit  # privacy unit of the calibration
    part: SplitPart | None = None  # part of the rows that is read; None if all or unknown
    earlier: tuple[RecordedRelease, ...] = ()  # earlier releases that the model depends on


Authorization: TypeAlias = Callable[[ReleaseRequest], Sequence[str | None]]
"""Raises an error to refuse. Returns the budget entry of each earlier release and of this one;
empty without a budget."""

POLICY_KEY = "policy"
"""Key of the policy digest in the public record of a training."""
_POLICY_MODULE = "xgb_dp.policy"


class PolicyRules(Protocol):
    """Interface of a policy for trainings (:class:`xgb_dp.policy.Policy`)."""

    @property
    def digest(self) -> str:
        """SHA-256 of the policy."""

    def check_params(self, params: dict[str, Any], names: Sequence[str]) -> None:
        """Refuse parameters that the policy does not allow."""

    def check_weights(self, proved_for_unit_weights: str) -> None:
        """Refuse a setting that is proved only for unit weights if rows can have weights."""

    def no_budget_error(self) -> BudgetError:
        """Create the error for a release without a budget."""

    def faults(self, ledger: Any) -> list[str]:
        """Violations of the policy in a ledger."""


_check_policy: list[Callable[[], PolicyRules | None]] = []  # empty until it is imported


def policy_in_force() -> PolicyRules | None:
    """Return the policy of this process, if any.

    The policy module is imported if the environment variable is set. If the import fails, nothing
    is released. Once imported, the module decides, even if the environment changes.
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


_NOISE_KEY: ContextVar[str | None] = ContextVar("xgb_dp_test_key", default=None)
_process_key: str | None = None


def noise_key() -> str | None:
    """Return the key of the fixed noise as 64 hexadecimal digits; None outside of tests."""
    return _NOISE_KEY.get() or _process_key


@contextmanager
def fixed_noise(key: int | bytes | str) -> Iterator[str]:
    """Draw all noise inside the block from a known key, so that trainings are reproducible.

    Privacy: none. Whoever knows the key can subtract the noise, so the models are marked as not
    private.

    Args:
        key: A non-negative integer, 32 bytes, or 64 hexadecimal digits.

    Yields:
        str: The key as 64 hexadecimal digits.

    Raises:
        PrivacyParameterError: The key has another form.
    Examples:
        >>> with xgb_dp.testing.fixed_noise(7):
        ...     first = xgb.train(params, data, 2)
        >>> with xgb_dp.testing.fixed_noise(7):
        ...     second = xgb.train(params, data, 2)
        >>> first.save_raw() == second.save_raw(), xgb_dp.privacy_report(first).private
        (True, False)
    """
    token = _NOISE_KEY.set(_hex(key))
    try:
        yield _hex(key)
    finally:
        _NOISE_KEY.reset(token)


def fix_noise_of_process(key: int | bytes | str | None) -> None:
    """Draw all noise of this process from a known key from now on; for workers of a cluster.

    Privacy: none, as with :func:`fixed_noise`.
    """
    global _process_key
    _process_key = None if key is None else _hex(key)


def _hex(key: int | bytes | str) -> str:
    try:
        raw = key.to_bytes(32, "little") if isinstance(key, int) else key
        raw = bytes.fromhex(raw) if isinstance(raw, str) else bytes(raw)
    except (ValueError, TypeError, OverflowError):
        raw = b""
    if len(raw) != 32:
        raise PrivacyParameterError("`key` must be an integer >= 0, 32 bytes or 64 hex digits.")
    return raw.hex()


VARIABLE = "XGB_DP_OPEN_BUDGET"
"""Environment variable with the budget of the open block, for processes started inside it."""


@dataclass(eq=False)
class _Held:
    """An active authorization, and whether its block is still open."""

    authorize: Authorization
    block: str | None
    check: Authorization | None = None
    open: bool = True


_IN_FORCE: ContextVar[_Held | None] = ContextVar("xgb_dp_gate", default=None)
_INHERITED = os.environ.get(VARIABLE)  # from the parent process
_blocks: list[_Held] = []  # open blocks of all threads
_lock = threading.Lock()


@dataclass(frozen=True)
class Context:
    """State outside its arguments that a release depends on, read once when it starts."""

    held: _Held | None  # the active budget or selection
    policy: PolicyRules | None
    noise_key: str | None  # key of fixed noise in tests

    @classmethod
    def current(cls) -> Context:
        """Read the context of this thread or task."""
        return cls(_IN_FORCE.get(), policy_in_force(), noise_key())

    @property
    def in_force(self) -> bool:
        """Whether a budget or a selection authorizes releases."""
        return _is_open(self.held)

    def authorize(self, release: ReleaseRequest) -> tuple[str | None, ...]:
        """Request authorization of a release from the active budget or selection, if any.

        Privacy: reads no data.

        Returns:
            Names of the budget entries of each earlier release and of this one.
        """
        names: Sequence[str | None] = ()
        if self.held is None:
            check_without_budget()
        elif not self.held.open:
            raise BudgetError(
                "The budget block in which this thread or task was started has ended, so this "
                "training would not be recorded. Nothing was released. Wait for the thread or task "
                "inside the block, or open a block in the thread or task itself."
            )
        else:
            names = self.held.authorize(release)
        return tuple(names) or (*(old.entry for old in release.earlier), None)

    def check_before(self, release: ReleaseRequest) -> None:
        """Refuse a release that would not be authorized. Records nothing and reads no data.

        In secure aggregation, every party checks its own budget before any party records the
        release.
        """
        if self.held is not None and self.held.open and self.held.check is not None:
            self.held.check(release)


def _is_open(held: _Held | None) -> bool:
    return held is not None and held.open


def check_here() -> None:
    """Refuse a training on a cluster, which an authorization in this process would not see."""
    if _is_open(_IN_FORCE.get()):
        raise BudgetError(
            "A budget or a selection is active here, but it does not see trainings on the workers "
            "of a cluster, which are other processes. Nothing was released. Record the training "
            "with `reserve` and `commit` of the budget, outside of its block."
        )
    check_without_budget()


def check_without_budget() -> None:
    """Refuse a release that an open budget block would not see.

    Under a policy, every training needs a budget.
    """
    if (rules := policy_in_force()) is not None:
        raise rules.no_budget_error()
    if _blocks:
        raise BudgetError(
            "A budget block (`with budget.drawing()`) is open elsewhere in this process, and it "
            "would not record a training in this thread or task. Nothing was released. Start "
            "threads of the block with its context, contextvars.copy_context().run(function, ...), "
            "as asyncio.to_thread does, or open a block in the thread itself. To train without a "
            "budget, wait until the block has ended."
        )
    if _INHERITED is not None:
        raise BudgetError(
            f"This process was started inside a block of the budget {_INHERITED!r}, which does not "
            "see trainings in this process. Nothing was released. Use the budget in this process: "
            "`with xgb_dp.Budget(path).drawing(): ...`. To train without a budget, start the "
            f"process outside of the block, without {VARIABLE} in its environment."
        )


def check_free(*, charged: bool = True) -> None:
    """Refuse to open a budget or a selection inside another one."""
    if _is_open(_IN_FORCE.get()):
        raise BudgetError(
            "Budgets and selections do not nest: the outer one would not see releases inside the "
            "inner one. Use one budget at a time, and pass it to a selection: "
            "xgb_dp.select(..., budget=...)."
        )
    if not charged:
        check_without_budget()


@contextmanager
def authorized_by(
    authorization: Authorization, *, block: str | None = None, check: Authorization | None = None
) -> Iterator[None]:
    """Activate an authorization for the trainings in a block."""
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
        # A generator can be closed in another context; the original keeps a closed authorization.
        with suppress(ValueError):
            _IN_FORCE.reset(token)


def _change_blocks(change: Callable[[_Held], None], held: _Held) -> None:
    """Open or close a block, and update the environment variable for new processes."""
    with _lock:
        change(held)
        name = _blocks[-1].block if _blocks else _INHERITED
        if name is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = name


if hasattr(os, "register_at_fork"):  # a fork must not copy a lock held by another thread
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
