"""Public rules for the shape of trees: monotone and interaction constraints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import parse
from .errors import PrivacyParameterError
from .features import Feature, Schema, by_index

__all__ = ["interaction_sets", "monotone_directions"]


def _entries(name: str, text: str) -> Any:
    """XGBoost's textual form, e.g. "(1,0,-1)" or "[[0, 1], [2]]"."""
    try:
        return json.loads(text.strip().replace("(", "[").replace(",)", "]").replace(")", "]"))
    except json.JSONDecodeError:
        raise PrivacyParameterError(
            f"`{name}` is not a list: write it as XGBoost does, e.g. "
            + ("'(1,0,-1)'." if name == "monotone_constraints" else "'[[0, 1], [2, 3]]'.")
        ) from None


def monotone_directions(value: Any, schema: Schema, features: Sequence[Feature]) -> tuple[int, ...]:
    """Direction of every feature: 1 increasing, -1 decreasing, 0 free.

    Args:
        value: XGBoost's ``monotone_constraints``: one entry for each column (the last ones may be
            left out), its textual form, or a mapping from names or indices. None for no constraint.
        schema: Public schema of the training data.
        features: Candidates of every feature.

    Returns:
        One of -1, 0 and 1 for each column. Public.

    Raises:
        PrivacyParameterError: Ill-formed, too long, or a direction for a categorical feature.
    """
    name = "monotone_constraints"
    if isinstance(value, str):
        value = _entries(name, value) if value.strip() else None
    if value is None:
        value = []
    if not isinstance(value, Mapping):
        if not isinstance(value, (Sequence, np.ndarray)) or len(value) > len(features):
            raise PrivacyParameterError(
                f"`{name}` must be a list of -1, 0 or 1 with one entry for each of the "
                f"{len(features)} columns, or a mapping from column names."
            )
        value = dict(enumerate(value))
    given = by_index(name, value, schema)
    directions = [0] * len(features)
    for index, direction in given.items():
        directions[index] = parse.parse_int(name, direction, -1, 1)
        if directions[index] and features[index].kind == "categorical":
            raise PrivacyParameterError(
                f"`{name}` names the categorical feature {schema.names[index]!r}, whose "
                "categories have no order. Leave it out."
            )
    return tuple(directions)


def interaction_sets(value: Any, schema: Schema) -> tuple[tuple[int, ...], ...]:
    """Sets of features that may occur on one path of a tree.

    Args:
        value: XGBoost's ``interaction_constraints``: lists of column indices or names, or the
            textual form. None for no constraint.
        schema: Public schema of the training data.

    Returns:
        Column indices of each set. Public.

    Raises:
        PrivacyParameterError: Ill-formed, or an unknown column.
    """
    name = "interaction_constraints"
    if isinstance(value, str):
        value = _entries(name, value) if value.strip() else None
    if value is None:
        return ()
    if not isinstance(value, Sequence) or any(
        isinstance(s, (str, bytes)) or not isinstance(s, (Sequence, set, frozenset)) for s in value
    ):
        raise PrivacyParameterError(
            f"`{name}` must be a list of lists of columns, e.g. [[0, 1], [2, 3]]."
        )
    return tuple(tuple(sorted(by_index(name, dict.fromkeys(s), schema))) for s in value)
