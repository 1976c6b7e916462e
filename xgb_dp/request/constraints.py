"""Public rules for the shape of trees: monotone and interaction constraints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import PrivacyParameterError
from ..parameters import parse
from ..parameters.config import Config
from .schema import by_column, column_index


def _entries(name: str, text: str) -> Any:
    """XGBoost's textual form, e.g. "(1,0,-1)" or "[[0, 1], [2]]"."""
    try:
        return json.loads(text.strip().replace("(", "[").replace(",)", "]").replace(")", "]"))
    except (ValueError, RecursionError):
        raise PrivacyParameterError(
            f"`{name}` is not a list: write it as XGBoost does, e.g. "
            + ("'(1,0,-1)'." if name == "monotone_constraints" else "'[[0, 1], [2, 3]]'.")
        ) from None


def monotone_directions(name: str, value: Any, s: Config) -> tuple[int, ...]:
    """Direction of every feature: 1 increasing, -1 decreasing, 0 free."""
    schema = s.schema
    if isinstance(value, str):
        value = _entries(name, value) if value.strip() else []
    if not isinstance(value, Mapping):
        entries = parse.listed(value)
        if entries is None or len(entries) > schema.width:
            raise PrivacyParameterError(
                f"`{name}` must be a list of -1, 0 or 1 with one entry for each of the "
                f"{schema.width} columns, or a mapping from column names."
            )
        value = dict(enumerate(entries))
    given = by_column(name, value, s)
    directions = [0] * schema.width
    for index, direction in given.items():
        directions[index] = parse.parse_int(name, direction, -1, 1)
        if directions[index] and index in schema.categorical:
            raise PrivacyParameterError(
                f"`{name}` names the categorical feature {schema.names[index]!r}, whose "
                "categories have no order. Leave it out."
            )
    return tuple(directions)


def interaction_sets(name: str, value: Any, s: Config) -> tuple[tuple[int, ...], ...]:
    """Sets of features that may occur on one path of a tree."""
    if isinstance(value, str):
        value = _entries(name, value) if value.strip() else []
    sets = [
        list(one) if isinstance(one, (set, frozenset)) else parse.listed(one)
        for one in parse.listed(value) or ()
    ]
    if parse.listed(value) is None or None in sets:
        raise PrivacyParameterError(
            f"`{name}` must be a list of lists of columns, e.g. [[0, 1], [2, 3]]."
        )
    return tuple(
        tuple(sorted({column_index(name, column, s.schema) for column in one or ()}))
        for one in sets
    )
