"""Readers of user input: each checks one value, and errors name the parameter.

Every input, even an object with methods that raise, results in a value or a
``PrivacyParameterError``. Messages show numbers and strings, and only the type of other values.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError

Reader = Callable[[str, Any, Any], Any]
"""Function that reads one value from the parameter name, the user's value and the settings."""


class OpenRounds(int):
    """A default number of rounds, which a plan chosen by the number of rows may replace."""


def listed(value: Any) -> list[Any] | None:
    """The entries of a list, tuple or one-dimensional array; None for other values."""
    if isinstance(value, np.ndarray):
        return list(value) if value.ndim == 1 else None
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        return None
    try:
        return list(value)
    except Exception:  # methods of user objects may raise anything
        return None


def mapped(value: Any) -> dict[Any, Any] | None:
    """The entries of a mapping; None for other values."""
    try:
        return dict(value.items()) if isinstance(value, Mapping) else None
    except Exception:  # methods of user objects may raise anything
        return None


def show(value: Any) -> str:
    """The ``repr`` of the first 60 characters of a string; the type of other values."""
    return repr(str.__str__(value)[:60]) if isinstance(value, str) else f"a {type(value).__name__}"


def _digits(number: float, form: str = "") -> str:
    """Format a number; integers up to 2^20 have no decimal point."""
    if math.isfinite(number) and number == int(number) and abs(number) <= 1 << 20:
        return str(int(number))
    return format(number, form)


@dataclass(frozen=True)
class Number:
    """Reads a real number within a range."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    finite: bool = True
    integer: bool = False

    def __call__(self, name: str, value: Any, settings: Any = None) -> float:
        """Return the number, or raise an error that names the parameter."""
        kind = "a finite number" if self.finite and math.isinf(self.high) else "a number"
        kind = "an integer" if self.integer else kind
        expected = " ".join(filter(None, (_tick(name), "must be", kind, self._range())))
        try:
            if isinstance(value, (bool, np.bool_)):
                raise TypeError
            number = float(value)
        except OverflowError:
            raise PrivacyParameterError(f"{expected}; got a number beyond 1e308.") from None
        except Exception:  # methods of user objects may raise anything
            raise PrivacyParameterError(f"{expected}; got a {type(value).__name__}.") from None
        below = number <= self.low if self.open_low else number < self.low
        above = number >= self.high if self.open_high else number > self.high
        bad = below or above or math.isnan(number) or (self.finite and math.isinf(number))
        if bad or (self.integer and number != int(number)):
            raise PrivacyParameterError(f"{expected}; got {_digits(number)}.")
        return number

    def _range(self) -> str:
        """The range in words; empty if unlimited."""
        least, most = _digits(self.low, ".6g"), _digits(self.high, ".6g")
        closed = math.isfinite(self.low) and math.isfinite(self.high)
        if closed and not (self.open_low or self.open_high):
            return f"from {least} to {most}"
        ends = []
        if math.isfinite(self.low):
            ends.append(f"{'above' if self.open_low else 'of at least'} {least}")
        if math.isfinite(self.high):
            ends.append(f"{'below' if self.open_high else 'of at most'} {most}")
        return " and ".join(ends)

    def __str__(self) -> str:
        above, below = "<" if self.open_low else "<=", "<" if self.open_high else "<="
        if self.high < math.inf and (self.open_low or self.open_high):
            return f"{self.low:g} {above} value {below} {self.high:g}"
        if self.high < math.inf:
            return f"{self.low:g} to {self.high:g}"
        return f"{'>' if self.open_low else '>='} {self.low:g}"


@dataclass(frozen=True)
class Integer:
    """Reads an integer from `low` to `high`."""

    low: int
    high: int

    def __call__(self, name: str, value: Any, settings: Any = None) -> int:
        """Return the integer, or raise an error that names the parameter."""
        return int(Number(self.low, self.high, integer=True)(name, value))

    def __str__(self) -> str:
        return f"int {self.low} to {self.high}"


def parse_number(name: str, value: Any, **limits: Any) -> float:
    """Read a real number within the limits of :class:`Number`; errors name the parameter."""
    return Number(**limits)(name, value)


def parse_probability(name: str, value: Any) -> float:
    """Read a number in (0, 1); errors name the parameter."""
    return parse_number(name, value, low=0.0, high=1.0, open_low=True, open_high=True)


def parse_target(epsilon: Any, delta: Any) -> tuple[float, float]:
    """Read a target (epsilon, delta): epsilon above 0, and delta in (0, 1)."""
    number = parse_number("epsilon", epsilon, low=0.0, open_low=True)
    return number, parse_probability("delta", delta)


def parse_int(name: str, value: Any, low: int, high: int) -> int:
    """Read an integer in [low, high]; errors name the parameter."""
    return Integer(low, high)(name, value)


def parse_range(name: str, value: Any) -> tuple[float, float]:
    """Read a pair (low, high) of finite numbers with low < high; errors name the parameter."""
    pair = listed(value)
    if pair is None or len(pair) != 2:
        raise PrivacyParameterError(
            f"{_tick(name)} must be a pair of numbers (low, high), for example (0, 100)."
        )
    low, high = (parse_number(name, v) for v in pair)
    if not low < high or math.isinf(high - low):
        raise PrivacyParameterError(
            f"{_tick(name)} must be (low, high) with finite ends and low < high."
        )
    return low, high


def _tick(name: str) -> str:
    return name if "`" in name or " " in name else f"`{name}`"


@dataclass(frozen=True)
class Flag:
    """Reads a bool, or 0, 1, 'true', 'false'."""

    def __call__(self, name: str, value: Any, settings: Any = None) -> bool:
        """Return the bool, or raise an error that names the parameter."""
        if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        words = {"true": True, "false": False, "1": True, "0": False}
        if isinstance(value, str) and value.lower() in words:
            return words[value.lower()]
        raise PrivacyParameterError(
            f"`{name}` must be True or False; got a {type(value).__name__}."
        )

    def __str__(self) -> str:
        return "bool"


parse_flag = Flag()


@dataclass(frozen=True)
class OneOf:
    """Reads one of `names`."""

    names: tuple[str, ...]

    def __call__(self, name: str, value: Any, settings: Any = None) -> str:
        """Return the name, or raise an error that lists all names."""
        if isinstance(value, str) and value in self.names:
            return self.names[self.names.index(value)]
        raise PrivacyParameterError(
            f"`{name}` must be one of {', '.join(map(repr, self.names))}; got {show(value)}."
        )

    def __str__(self) -> str:
        *first, last = map(repr, self.names)
        return f"{', '.join(first)} or {last}"


@dataclass(frozen=True)
class FileName:
    """Type of parameters that name a file; the file is not opened."""

    def __call__(self, name: str, value: Any, settings: Any = None) -> str:
        """Return the name, or raise an error that does not show it."""
        try:
            path = os.fspath(value)
        except Exception:  # methods of user objects may raise anything
            path = b""
        if not isinstance(path, str) or not path or "\0" in path:
            raise PrivacyParameterError(
                f"`{name}` must be a file name; got a {type(value).__name__}."
            )
        return str.__str__(path)

    def __str__(self) -> str:
        return "file name"


def plain(name: str, value: Any, settings: Any = None) -> Any:
    """Return a value for XGBoost: a number, a bool, a string, or a list of such values."""
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
                f"`{name}` contains an unpaired surrogate and cannot be encoded in UTF-8. Use "
                "valid Unicode characters."
            ) from None
    if not isinstance(value, (bool, int, float, np.bool_, np.number)):
        raise PrivacyParameterError(
            f"`{name}` must be a number, a string or a list of them; got a {type(value).__name__}."
        )
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise PrivacyParameterError(f"`{name}` does not fit into 64 bits. Use a smaller number.")
    return value
