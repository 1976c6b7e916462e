"""Untrusted JSON, parsed to a limited depth, and strings that XGBoost's JSON cannot store."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError

_DEEPEST = 100  # levels; a model has about ten, and readers that recurse end the process
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# XGBoost writes other control characters, and a backslash before a "u", as what it cannot read.
_LOST = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]|\\u")


def check_depth(text: str | bytes | bytearray) -> None:
    """Raise ValueError for JSON that is nested deeper than anything of ours, without recursion."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    brackets = np.frombuffer(_STRING.sub(b"", data).translate(None, _NO_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1)
    if np.cumsum(steps).max(initial=0) > _DEEPEST:
        raise ValueError("it is nested too deeply")


def loads(text: str | bytes | bytearray, **hooks: Any) -> Any:
    """``json.loads`` after a check of the depth."""
    check_depth(text)
    return json.loads(text, **hooks)


def check_carried(value: Any, what: str) -> None:
    """Refuse strings that XGBoost's JSON would lose, or that would make a model unreadable.

    Args:
        value: Strings in nested lists, arrays and mappings; other objects are ignored.
        what: Names the strings in the error.
    """
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, Mapping):
            rest += [*one.keys(), *one.values()]
        elif isinstance(one, np.ndarray):
            rest += one.ravel().tolist() if one.dtype.kind in "OU" else []
        elif isinstance(one, (list, tuple, set, frozenset)):
            rest += list(one)
        elif isinstance(one, str) and _LOST.search(one):
            raise PrivacyParameterError(
                f"{one[:80]!a} among {what} cannot be stored in a model file: XGBoost's JSON "
                "carries no control characters, and no backslash before a 'u'. Nothing was "
                "released. Rename it."
            )
