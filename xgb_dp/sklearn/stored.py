"""What a model file holds for estimators: names of classes, tables, and the column of ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.class_codes import codes_of, declared, label_array
from ..domain.domain import ATTRIBUTE, Domain
from ..engine.predictions import CLASSES
from ..errors import LedgerError, PrivacyParameterError
from ..record.binding import attach
from ..record.ledger import ATTRIBUTE as LEDGER
from ..record.ledger import parse_ledger


def store(booster: Any, domain: Domain | None, classes: np.ndarray | None) -> None:
    """Store with a model what was declared of its classes and tables; public."""
    stored: dict[str, str] = {}
    if classes is not None:
        stored[CLASSES] = json.dumps(classes.tolist(), allow_nan=False)
    if domain is not None:
        named = None if classes is None else tuple(map(str, classes))
        stored[ATTRIBUTE] = replace(domain, classes=named).to_json()
    attach(booster, **stored)


def column_of_ids(booster: Any) -> str | None:
    """The column that said whose row each row was, by the ledger; None where there was none."""
    with suppress(LedgerError):
        return parse_ledger(booster.attr(LEDGER)).unit.column
    return None


def refuse_ids(arguments: Mapping[str, Any]) -> None:
    """Refuse ids of persons under the names that other interfaces have for groups of rows."""
    if groups := sorted({"group", "groups", "qid"} & set(arguments)):
        raise PrivacyParameterError(
            f"`{groups[0]}` is not an argument of `fit`. To protect all rows of a person together, "
            "give one id for each row, or the name of a column, as `privacy_id`."
        )


def coded_labels(labels: Any, classes: np.ndarray | None) -> Any:
    """Labels as positions in the declared classes; as they are where there are no classes."""
    return label_array(labels) if classes is None else codes_of(label_array(labels), classes)


def in_order(classes: Any) -> np.ndarray:
    """The declared classes; refuses another order than that of the columns of probabilities."""
    labels = declared(classes)
    if not isinstance(classes, (int, np.integer)) and list(labels) != list(classes):
        raise PrivacyParameterError(
            "`classes` must be in increasing order, in which scikit-learn keeps them and "
            f"`predict_proba` has its columns: {labels.tolist()}."
        )
    return labels
