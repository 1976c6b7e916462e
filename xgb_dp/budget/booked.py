"""The one way in which what is released from Python is booked: before it is released."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..accounting import PERSON, ROW, Event, Unit
from ..data.parts import Part
from ..engine import tape
from ..engine.workers import this_worker
from ..errors import PrivacyRefusal
from ..parameters.parse import parse_int
from .budget import Budget, as_budget
from .gate import Release, before_release
from .whose import MOST

T = TypeVar("T")


def check_alone(what: str, secret: str, several: str) -> None:
    """Refuse to release where noise would not be secret, or be drawn by each of several workers."""
    if this_worker()[1] > 1:
        raise PrivacyRefusal(several)
    if tape.noise_key() is not None:
        raise PrivacyRefusal(
            f"Noise from a fixed key is refused in {what}: {secret} always secret. Call it outside "
            "of the block that fixes the key."
        )


def booked(
    release: Callable[[], T],
    events: Sequence[Event],
    budget: Budget | str | os.PathLike[str] | None,
    note: str,
    *,
    delta: float | None = None,
    unit: Unit | None = None,
    part: Part | None = None,
) -> tuple[T, str | None]:
    """Release once it is booked: a process that dies in between has paid and shown nothing."""
    if budget is None:
        [entry] = before_release(events, private=True, unit=unit, part=part)
        return release(), entry
    book = as_budget(budget)
    name = book.reserve(events, note, delta=delta, unit=unit, part=part)
    result = release()
    book._close("id", name)
    return result, name


def spent(book: Budget, release: Release, note: str, delta: float | None) -> list[str]:
    """Book a release as spent right away; the entries of what it rests on, and its own.

    The time at which the file changes last must not tell how long the release takes.
    """
    names = book._reserve(release, note, delta, None)
    book._close("id", names[-1])
    return names


def unit_of(
    persons: bool,
    column: str | None,
    group: int | None,
    budget: Budget | str | os.PathLike[str] | None,
) -> Unit:
    """Whom a release from Python is for."""
    name = PERSON if persons else ROW
    if group is not None:
        return Unit(name, parse_int("group", group, 1, MOST), column)
    unit = Unit() if budget is None else as_budget(budget).unit
    return Unit(name, unit.group if unit.name == name else 1, column)
