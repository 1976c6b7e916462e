"""Values that options and schema files declare: names, ranges, parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import PrivacyParameterError
from ..parameters.parse import parse_number, parse_range
from .schema_file import json_of

_KINDS = {
    type(None): "nothing (null)", bool: "a truth value", str: "a text", int: "a number",
    float: "a number", list: "a list", tuple: "a list", dict: "a mapping",
}  # fmt: skip


def kind_of(value: Any) -> str:
    """What a value of a schema file is, in words."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def mapping(expected: str, value: Any) -> Mapping[str, Any]:
    """A mapping of a schema file."""
    if not isinstance(value, Mapping):
        raise PrivacyParameterError(f"{expected}; got {kind_of(value)}.")
    return value


def column_of(name: str, value: Any) -> str:
    """The name of a column."""
    if not isinstance(value, str) or not value.strip():
        raise PrivacyParameterError(
            f"{name} must be the name of a column; got {kind_of(value)}. Put it in quotes, or "
            "leave the line out."
        )
    return value.strip()


def texts(name: str, value: Any) -> tuple[str, ...]:
    """A list of distinct names."""
    if not isinstance(value, (list, tuple)):
        raise PrivacyParameterError(
            f"{name} must be a list of names, such as [red, green]; got {kind_of(value)}."
        )
    if not value:
        raise PrivacyParameterError(
            f"{name} is an empty list. Name at least one entry, or leave it out."
        )
    for entry in value:
        if isinstance(entry, bool) or not isinstance(entry, (str, int)):
            raise PrivacyParameterError(
                f"{name} must be a list of names; one entry is {kind_of(entry)}: put it in quotes."
            )
    names = tuple(str(entry).strip() for entry in value)
    if len(set(names)) != len(names):
        raise PrivacyParameterError(f"{name} names an entry twice. Keep one of them.")
    return names


def classes_of(name: str, value: Any) -> tuple[str, ...]:
    """The classes of a target."""
    classes = texts(name, value)
    if len(classes) < 2:
        raise PrivacyParameterError(f"{name} must name at least two classes.")
    return classes


def levels_of(name: str, value: Any) -> tuple[float, ...]:
    """Levels of quantiles; their order is checked with the other parameters."""
    levels = value if isinstance(value, (list, tuple)) else [value]
    return tuple(parse_number(name, level) for level in levels)


def bounds_of(name: str, value: Any) -> tuple[Any, ...]:
    """A public range: (low, high) or (low, high, "log")."""
    listed = isinstance(value, (list, tuple))
    if not listed or len(value) not in (2, 3) or list(value[2:]) not in ([], ["log"]):
        got = "" if listed else f"; got {kind_of(value)}"
        raise PrivacyParameterError(f"{name} must be [low, high] or [low, high, log]{got}.")
    return (*parse_range(name, list(value[:2])), *value[2:])


def typed(value: Any) -> Any:
    """A value of a parameter: texts that are JSON become numbers, lists and so on."""
    if isinstance(value, Mapping):
        return {str(k): typed(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [typed(v) for v in value]
    if not isinstance(value, str):
        return value
    try:
        parsed = json_of(value)
    except PrivacyParameterError as error:
        if "given twice" in str(error):
            raise
        return math.inf if value == "inf" else value
    except RecursionError:
        return value
    return value if parsed is None else parsed
