"""Values that options and schema files declare: names, ranges, parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import PrivacyParameterError
from ..parameters.parse import parse_range
from .schema_file import json_of

__all__ = ["bounds_of", "kind_of", "texts", "typed"]


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
    found = []
    for entry in value:
        if isinstance(entry, bool) or not isinstance(entry, (str, int)):
            raise PrivacyParameterError(
                f"{name} must be a list of names; one entry is {kind_of(entry)}: put it in quotes."
            )
        found.append(str(entry).strip())
    if len(set(found)) != len(found):
        raise PrivacyParameterError(f"{name} names an entry twice. Keep one of them.")
    return tuple(found)


def bounds_of(name: str, value: Any) -> tuple[Any, ...]:
    """A public range: (low, high) or (low, high, "log")."""
    if (
        not isinstance(value, (list, tuple))
        or len(value) not in (2, 3)
        or value[2:] not in ([], (), ["log"], ("log",))
    ):
        got = "" if isinstance(value, (list, tuple)) else f"; got {kind_of(value)}"
        raise PrivacyParameterError(f"{name} must be [low, high] or [low, high, log]{got}.")
    return (*parse_range(name, list(value[:2])), *value[2:])


def kind_of(value: Any) -> str:
    """What a value of a schema file is, in words: "a text", "a list"."""
    if value is None:
        return "nothing (null)"
    kinds = {bool: "a truth value", str: "a text", int: "a number", float: "a number"}
    kinds |= {list: "a list", tuple: "a list", dict: "a mapping"}
    return kinds.get(type(value), f"a {type(value).__name__}")


def typed(value: Any) -> Any:
    """A value of a parameter: texts that are JSON become numbers, lists and so on."""
    if isinstance(value, Mapping):
        return {str(k): typed(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [typed(v) for v in value]
    if not isinstance(value, str):
        return value
    try:
        found = json_of(value)
    except PrivacyParameterError as error:
        if "given twice" in str(error):
            raise
        return math.inf if value == "inf" else value
    except RecursionError:
        return value
    return value if found is None else found
