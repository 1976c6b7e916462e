"""Random values: right, slightly wrong and absurd ones."""

import math
from random import Random
from typing import Any

import numpy as np

__all__ = ["Impossible", "absurd", "mutated", "name"]


class Impossible(RuntimeError):
    """What objects of the fuzz raise themselves."""


class Rude:
    """An object that cannot be shown."""

    def __str__(self) -> str:
        raise Impossible("str")

    __repr__ = __str__


class Vague:
    """An object that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise Impossible("eq")

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise Impossible("bool")


def _deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


_ABSURD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**32, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400,
    -(10**400), 0.0, -0.0, 0.5, -1.5, 1e-300, 5e-324, 1e300, 1e308, math.inf, -math.inf, math.nan,
    "", " ", "0", "1", "0.5", "-1", "nan", "inf", "1e400", "true", "False", "None", "default", "x",
    "\0", "a\0b", "\ud800", "\N{PILE OF POO}", "9" * 5000, "x" * 70_000, "[", "[" * 5000, "{}",
    "()", "[0, 1]", "(0, 1)", '{"a": 1}', "%s%n", "../../etc", b"", b"1", b"\xff", bytearray(b"x"),
    (), (0,), (0, 1), (1, 0), (0, 1, 2), [], [0], [1], [[1]], [None], ["a"], [math.nan], [[]],
    {}, {"a": 1}, {0: 1}, {None: None}, {"a": {"b": {}}}, {(): ()}, set(), {1, 2}, frozenset({"a"}),
    1j, object(), object, len, int, ..., NotImplemented, Rude(), Vague(), range(3), iter([1]),
    np.float16(0.5), np.float32(0.1), np.float64("nan"), np.float64(1), np.longdouble(1),
    np.int8(1), np.int64(-1), np.uint64(2**64 - 1), np.bool_(True), np.str_("x"), np.bytes_(b"x"),
    np.datetime64("2020-01-01"), np.timedelta64(1, "D"), np.datetime64("NaT"), np.complex64(1),
    np.array(1), np.array(1.5), np.array("x"), np.array([]), np.array([1]), np.array([0, 1]),
    np.array([1.5, np.nan]), np.array([[0, 1]]), np.array(["a", "b"]), np.array([None, 1]),
    np.zeros((2, 0)), np.array([True, False]), np.array(2.0), np.ma.masked, np.zeros(3),
)  # fmt: skip


def absurd(rng: Random) -> Any:
    """Anything that somebody might pass; small, so that it is harmless where it is right."""
    if rng.random() < 0.03:
        return _deep(rng.choice((10, 100, 2000)))
    return rng.choice(_ABSURD)


def mutated(rng: Random, value: Any) -> Any:
    """A value near a right one: another type, sign, length or magnitude."""
    if isinstance(value, bool):
        return rng.choice((int(value), str(value), np.bool_(value), [value], 2, "yes", value))
    if isinstance(value, (int, float)):
        return rng.choice(
            (-value, value + 1, value * 1.5, str(value), f" {value} ", np.float32(value),
             np.array(value), [value], (value, value), {"a": value}, value * 10**6, value / 10**6,
             f"{value}x", bytes(str(value), "ascii"), complex(value), math.nan, np.int64(value))
            if math.isfinite(value) else ("inf", -value, "infinity", [value])
        )  # fmt: skip
    if isinstance(value, str):
        return rng.choice(
            (value.upper(), value + " ", value[:-1], value.encode(), [value], (value, value),
             np.array([value]), np.str_(value), value + "\0", value + "\ud800", {value: value})
        )  # fmt: skip
    if isinstance(value, (list, tuple)):
        changed = list(value)
        if changed and rng.random() < 0.6:
            at = rng.randrange(len(changed))
            changed[at] = absurd(rng) if rng.random() < 0.5 else mutated(rng, changed[at])
            return changed
        return rng.choice((changed[:-1], changed * 2, [changed], str(changed), tuple(changed)))
    if isinstance(value, dict):
        changed_map = dict(value)
        key = rng.choice([*changed_map, "a"])
        kind = rng.randrange(4)
        if kind == 0:
            changed_map[key] = mutated(rng, changed_map.get(key, 1))
        elif kind == 1:
            changed_map[key] = absurd(rng)
        elif kind == 2:
            changed_map[rng.choice((99, -1, "nothing", None, 0.5, (), "\ud800", True))] = value
        else:
            return rng.choice((list(value), list(value.items()), str(value), [value]))
        return changed_map
    return absurd(rng)


def name(rng: Random, right: str) -> Any:
    """A name near a right one, or none at all."""
    return rng.choice(
        (right[:-1], right + "s", right.upper(), right.replace("_", "-"), "dp_" + right,
         right.encode(), right + "\0", "\ud800", "", 0, None, (right,), np.str_(right), 1.5,
         right + "\n", "dp_", "x" * 1000)
    )  # fmt: skip
