"""The last step before a training releases anything: whoever has to agree is asked here.

A budget books what is about to be released; a selection checks that it is what it has accounted
for. Both refuse by raising, and then nothing was released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from .accounting import Event
from .errors import BudgetError

__all__ = ["Gate", "before_release", "guarded"]

Gate: TypeAlias = Callable[[Sequence[Event], bool], None]
"""Called with the events of the whole plan, and whether the training is private at all."""

_GATE: ContextVar[Gate | None] = ContextVar("xgb_dp_gate", default=None)


def before_release(events: Sequence[Event], *, private: bool) -> None:
    """Ask the gate in force, if there is one. Reads no data.

    Args:
        events: What the training is going to release, in release order.
        private: Whether noise is drawn, from the operating system's key.

    Raises:
        PrivacyError: The gate refuses.
    """
    gate = _GATE.get()
    if gate is not None:
        gate(events, private)


def check_free() -> None:
    """Refuse what would go past a gate that is in force.

    Raises:
        BudgetError: A budget or a selection is in force here.
    """
    if _GATE.get() is not None:
        raise BudgetError(
            "Budgets and selections do not nest: the outer one would not see what is drawn inside. "
            "Draw on one budget at a time, and give it to a selection itself: "
            "xgb_dp.select(..., budget=...)."
        )


@contextmanager
def guarded(gate: Gate) -> Iterator[None]:
    """Put a gate in force for the trainings of this block.

    Raises:
        BudgetError: Another gate is in force, which would not see what the new one lets through.
    """
    check_free()
    token = _GATE.set(gate)
    try:
        yield
    finally:
        _GATE.reset(token)
