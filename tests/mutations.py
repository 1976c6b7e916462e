"""Every single change of a JSON value: what a file may hold that was damaged or written by hand."""

import copy
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

ODD: list[Any] = [
    None, True, "", "0", "inf", [], {}, [[]], -1, 0, 0.5, 1e300, 10**400, "\ud800",
]  # fmt: skip
"""Values of every kind, of which a field has one at most by right."""
Path = tuple[str | int, ...]


def places(value: Any) -> Iterator[Path]:
    """Where the fields and entries of a value are, those that hold others included."""
    if not isinstance(value, dict | list):
        return
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        yield (key,)
        yield from ((key, *deeper) for deeper in places(held))


def mutations(value: Any, every: int = 1) -> Iterator[tuple[str, Any]]:
    """Copies with one field removed, doubled or of another value, and what was done.

    One of so many of them, evenly.
    """
    number = count()
    for path in places(value):
        odd = [v for v in ODD if repr(v) != repr(at(value, path))]
        for name, change in (
            ("removed", lambda inside, key: inside.pop(key)),
            ("doubled", double),
            *((repr(v)[:9], lambda inside, key, v=v: inside.__setitem__(key, v)) for v in odd),
        ):
            if next(number) % every:
                continue
            changed = copy.deepcopy(value)
            change(at(changed, path[:-1]), path[-1])
            yield f"{path} {name}", changed


def at(value: Any, path: Sequence[str | int]) -> Any:
    """What is at a place."""
    for key in path:
        value = value[key]
    return value


def double(inside: Any, key: Any) -> None:
    """One more entry of a list, or one more field of an object."""
    if isinstance(inside, list):
        inside.insert(key, inside[key])
    else:
        inside[f"{key}_"] = inside[key]
