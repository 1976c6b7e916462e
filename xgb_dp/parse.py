"""Readers of user-given values: each checks one value and names the parameter at fault."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .errors import PrivacyParameterError
from .params import ALIASES, same

__all__ = [
    "choice",
    "flatten",
    "parse_classes",
    "parse_flag",
    "parse_int",
    "parse_number",
    "parse_range",
    "parse_rounds",
]


def flatten(params: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """One dictionary from XGBoost's two forms of parameters, without unset (None) values.

    Args:
        params: A repeated ``eval_metric`` becomes a list.

    Raises:
        PrivacyParameterError: A parameter is given twice with different values, so which one counts
            would be a guess.
    """
    items = list(params.items()) if isinstance(params, Mapping) else list(params)
    flat: dict[str, Any] = {}
    for name, value in items:
        if value is None and not str(name).startswith("dp_"):
            continue
        key = ALIASES.get(name, name)
        if key == "eval_metric" and key in flat:
            old = flat[key] if isinstance(flat[key], list) else [flat[key]]
            flat[key] = old + (value if isinstance(value, list) else [value])
        elif key in flat and not same(flat[key], value):
            raise PrivacyParameterError(
                f"`{name}` is given twice (also as an alias) with different values: keep one."
            )
        else:
            flat[key] = value
    return flat


def parse_number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    finite: bool = True,
) -> float:
    """A real number within a range, or an error that names the parameter.

    Args:
        name: Parameter name for the message.
        value: What the user gave; a bool is refused.
        low, high: Range; the end is excluded with ``open_low`` or ``open_high``.
        finite: Refuse infinity.
    """
    expected = f"{'>' if open_low else '>='} {low:g}" if low > -math.inf else "a number"
    if high < math.inf:
        expected += f" and {'<' if open_high else '<='} {high:g}"
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise PrivacyParameterError(
            f"{_tick(name)} must be a number, {expected}; got a {type(value).__name__}."
        ) from None
    bad = math.isnan(number) or (finite and math.isinf(number)) or number < low or number > high
    if bad or (open_low and number == low) or (open_high and number == high):
        raise PrivacyParameterError(
            f"{_tick(name)} must be {expected}{' and finite' if finite else ''}; got {number!r}."
        )
    return number


def parse_int(name: str, value: Any, low: int, high: int) -> int:
    """A whole number in [low, high], or an error that names the parameter."""
    number = parse_number(name, value, low=low, high=high)
    if number != int(number):
        raise PrivacyParameterError(
            f"`{name}` must be a whole number from {low} to {high}; got {number!r}."
        )
    return int(number)


def parse_rounds(value: Any) -> int:
    """Boosting rounds, or an error: a number that is rounded would not be what is calibrated."""
    try:
        # An array of one float has `__index__` as well, and fails only when it is called.
        whole = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None:
        raise PrivacyParameterError(
            "`num_boost_round` must be a whole number: the noise is calibrated for exactly that "
            f"many rounds; got {type(value).__name__}."
        )
    return parse_int("num_boost_round", whole, 1, 1 << 20)


def parse_range(name: str, value: Any) -> tuple[float, float]:
    """A pair (low, high) of finite numbers with low < high; errors name the parameter."""
    if (
        isinstance(value, (str, bytes))
        or not isinstance(value, (Sequence, np.ndarray))
        or len(value) != 2
    ):
        raise PrivacyParameterError(f"{_tick(name)} must be a pair (low, high).")
    low, high = (parse_number(name, v) for v in value)
    if not low < high or math.isinf(high - low):
        raise PrivacyParameterError(f"{_tick(name)} must have low < high, with a finite width.")
    return low, high


def _tick(name: str) -> str:
    return name if name.startswith("`") else f"`{name}`"


def parse_flag(name: str, value: Any) -> bool:
    """A bool (or 0, 1, 'true', 'false'), or an error that names the parameter."""
    table = {"true": True, "false": False, "1": True, "0": False}
    if isinstance(value, (bool, np.bool_, int, str)) and str(value).lower() in table:
        return table[str(value).lower()]
    raise PrivacyParameterError(f"`{name}` must be True or False; got a {type(value).__name__}.")


def parse_classes(value: Any) -> int:
    """Number of classes K from ``dp_classes``, an int K or the list 0..K-1.

    Raises:
        PrivacyParameterError: Anything else: XGBoost predicts class numbers, so labels must already
            be 0..K-1.
    """
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        try:
            codes = [parse_number("dp_classes", v) for v in value]
        except PrivacyParameterError:
            codes = []
        if len(codes) < 2 or codes != list(range(len(codes))):
            raise PrivacyParameterError(
                "`dp_classes` must be the list 0, 1, ..., K-1 with K >= 2 (or the number K): "
                "XGBoost needs labels encoded as 0..K-1. Encode them with a mapping that is fixed "
                "in advance."
            )
        return len(codes)
    return parse_int("dp_classes", value, 2, 1 << 16)


def choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """A name out of a list.

    Raises:
        PrivacyParameterError: Another value.
    """
    if value not in choices:
        raise PrivacyParameterError(f"`{name}` must be one of {', '.join(map(repr, choices))}.")
    return str(value)
