"""Readers of user-given values: each checks one value and names the parameter at fault.

Whatever a caller hands in, even an object whose methods raise, ends as a value or as an error of
ours. Messages show the type of a value, or the value itself where it is a number or a text.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError

__all__ = [
    "Choice",
    "FileName",
    "Flag",
    "Number",
    "OpenRounds",
    "Reader",
    "Whole",
    "listed",
    "mapped",
    "parse_classes",
    "parse_flag",
    "parse_int",
    "parse_number",
    "parse_range",
    "plain",
    "same",
    "shown",
]

Reader = Callable[[str, Any, Any], Any]
"""Reads one value: name of the parameter, what the user gave, and the settings read so far."""


class OpenRounds(int):
    """A number of rounds that nobody has given: the plan may follow how many rows there are."""


def same(a: Any, b: Any) -> bool:
    """Whether two parameter values are equal; arrays never are."""
    try:
        return bool(a == b)
    except Exception:  # an object of the caller may do anything
        return False


def listed(value: Any) -> list[Any] | None:
    """The entries of a list, a tuple or an array of one dimension; None for anything else."""
    if isinstance(value, np.ndarray):
        return list(value) if value.ndim == 1 else None
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        return None
    try:
        return list(value)
    except Exception:  # an object of the caller may do anything
        return None


def mapped(value: Any) -> dict[Any, Any] | None:
    """The entries of a mapping; None for anything else."""
    try:
        return dict(value.items()) if isinstance(value, Mapping) else None
    except Exception:  # an object of the caller may do anything
        return None


def shown(value: Any) -> str:
    """A text as Python writes it, in which no character is out of place; else the type."""
    return repr(str.__str__(value)[:60]) if isinstance(value, str) else f"a {type(value).__name__}"


def parse_number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    finite: bool = True,
    whole: bool = False,
) -> float:
    """A real number within a range, or an error that names the parameter."""
    kind = "whole" if whole else "finite" if finite and math.isinf(high) else ""
    expected = " ".join(filter(None, ("a", kind, "number", _range(low, high, open_low, open_high))))
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = float(value)
    except OverflowError:
        raise PrivacyParameterError(
            f"{_tick(name)} must be {expected}; got a number beyond 1e308."
        ) from None
    except Exception:  # an object of the caller may do anything
        raise PrivacyParameterError(
            f"{_tick(name)} must be {expected}; got a {type(value).__name__}."
        ) from None
    bad = math.isnan(number) or (finite and math.isinf(number)) or number < low or number > high
    bad = bad or (open_low and number == low) or (open_high and number == high)
    if bad or (whole and number != int(number)):
        raise PrivacyParameterError(f"{_tick(name)} must be {expected}; got {_digits(number)}.")
    return number


def _range(low: float, high: float, open_low: bool, open_high: bool) -> str:
    """A range in words; empty where every number will do."""
    least, most = _digits(low, ".6g"), _digits(high, ".6g")
    if math.isfinite(low) and math.isfinite(high) and not (open_low or open_high):
        return f"from {least} to {most}"
    ends = []
    if math.isfinite(low):
        ends.append(f"{'above' if open_low else 'of at least'} {least}")
    if math.isfinite(high):
        ends.append(f"{'below' if open_high else 'of at most'} {most}")
    return " and ".join(ends)


def _digits(number: float, form: str = "") -> str:
    """A number as people write it: whole ones up to a million without a point."""
    if math.isfinite(number) and number == int(number) and abs(number) <= 1 << 20:
        return str(int(number))
    return format(number, form)


def parse_int(name: str, value: Any, low: int, high: int) -> int:
    """A whole number in [low, high], or an error that names the parameter."""
    return int(parse_number(name, value, low=low, high=high, whole=True))


def parse_range(name: str, value: Any) -> tuple[float, float]:
    """A pair (low, high) of finite numbers with low < high; errors name the parameter."""
    pair = listed(value)
    if pair is None or len(pair) != 2:
        raise PrivacyParameterError(
            f"{_tick(name)} must be a pair of numbers (low, high), for example (0, 100)."
        )
    low, high = (parse_number(name, v) for v in pair)
    if not low < high or math.isinf(high - low):
        raise PrivacyParameterError(
            f"{_tick(name)} must have a low end below its high end, both finite."
        )
    return low, high


def _tick(name: str) -> str:
    return name if name.startswith("`") else f"`{name}`"


def parse_flag(name: str, value: Any) -> bool:
    """A bool (or 0, 1, 'true', 'false'), or an error that names the parameter."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    table = {"true": True, "false": False, "1": True, "0": False}
    if isinstance(value, str) and value.lower() in table:
        return table[value.lower()]
    raise PrivacyParameterError(f"`{name}` must be True or False; got a {type(value).__name__}.")


def parse_classes(value: Any) -> int:
    """Number of classes K from ``dp_classes``, an int K or the list 0..K-1."""
    given = listed(value)
    if given is None:
        return parse_int("dp_classes", value, 2, 1 << 16)
    try:
        codes = [parse_number("dp_classes", v) for v in given]
    except PrivacyParameterError:
        codes = []
    if len(codes) < 2 or codes != list(range(len(codes))):
        raise PrivacyParameterError(
            "`dp_classes` must be the list 0, 1, ..., K-1 with K >= 2 (or the number K): "
            "XGBoost needs labels encoded as 0..K-1. Encode them with a mapping that is fixed "
            "in advance."
        )
    return len(codes)


@dataclass(frozen=True)
class Number:
    """Reads a real number within a range; see :func:`parse_number`."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    finite: bool = True

    def __call__(self, name: str, value: Any, settings: Any = None) -> float:
        """The number, or an error that names the parameter."""
        return parse_number(
            name,
            value,
            low=self.low,
            high=self.high,
            open_low=self.open_low,
            open_high=self.open_high,
            finite=self.finite,
        )

    def __str__(self) -> str:
        above, below = "<" if self.open_low else "<=", "<" if self.open_high else "<="
        if self.high < math.inf and (self.open_low or self.open_high):
            return f"{self.low:g} {above} value {below} {self.high:g}"
        if self.high < math.inf:
            return f"{self.low:g} to {self.high:g}"
        return f"{'>' if self.open_low else '>='} {self.low:g}"


@dataclass(frozen=True)
class Whole:
    """Reads a whole number from `low` to `high`."""

    low: int
    high: int

    def __call__(self, name: str, value: Any, settings: Any = None) -> int:
        """The number, or an error that names the parameter."""
        return parse_int(name, value, self.low, self.high)

    def __str__(self) -> str:
        return f"int {self.low} to {self.high}"


@dataclass(frozen=True)
class Flag:
    """Reads True or False."""

    def __call__(self, name: str, value: Any, settings: Any = None) -> bool:
        """The truth value, or an error that names the parameter."""
        return parse_flag(name, value)

    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class Choice:
    """Reads one of some names."""

    names: tuple[str, ...]

    def __call__(self, name: str, value: Any, settings: Any = None) -> str:
        """The name, or an error that lists all."""
        if isinstance(value, str) and value in self.names:
            return self.names[self.names.index(value)]
        raise PrivacyParameterError(
            f"`{name}` must be one of {', '.join(map(repr, self.names))}; got {shown(value)}."
        )

    def __str__(self) -> str:
        *first, last = map(repr, self.names)
        return f"{', '.join(first)} or {last}"


@dataclass(frozen=True)
class FileName:
    """Reads the name of a file, which is not opened here."""

    def __call__(self, name: str, value: Any, settings: Any = None) -> str:
        """The name, or an error that does not show it."""
        try:
            path = os.fspath(value)
        except Exception:  # an object of the caller may do anything
            path = b""
        if not isinstance(path, str) or not path or "\0" in path:
            raise PrivacyParameterError(
                f"`{name}` must be the name of a file; got a {type(value).__name__}."
            )
        return str.__str__(path)

    def __str__(self) -> str:
        return "name of a file"


def plain(name: str, value: Any, settings: Any = None) -> Any:
    """What XGBoost reads itself, as it is: a number, a truth value, a text or a list of texts."""
    if isinstance(value, list):
        entries = listed(value)
        if entries is not None:
            return [_plain(name, entry) for entry in entries]
    return _plain(name, value)


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, str):
        try:
            return str.__str__(value).encode().decode()
        except UnicodeEncodeError:
            raise PrivacyParameterError(
                f"`{name}` contains half of a surrogate pair, which is not a character of "
                "Unicode. Spell it in whole characters."
            ) from None
    if not isinstance(value, (bool, int, float, np.bool_, np.number)):
        raise PrivacyParameterError(
            f"`{name}` must be a number, a text or a list of texts; got a {type(value).__name__}."
        )
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise PrivacyParameterError(
            f"`{name}` is a number of more than 64 bits. Give a smaller one."
        )
    return value
