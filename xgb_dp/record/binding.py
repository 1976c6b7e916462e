"""Digests by which a ledger binds all of its model besides the trees, which it names one by one.

Names, types, categories, objective, intercept and calibration decide what a prediction means. They
are public or follow from released numbers, so their digests cost nothing.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import Any

from ..engine.native import model_content
from ..engine.saved_model import SavedModel
from ..errors import LedgerError
from .form import Ledger
from .ledger import ATTRIBUTE, read_ledger, store

BOUND = ("dp_schema", "dp_calibration", "dp_classes")
"""Attributes of a model whose text a ledger names by digest."""


def store_bound(booster: Any, ledger: Ledger) -> None:
    """Write the ledger of a finished model, bound to all of the model."""
    store(booster, replace(ledger, content=content_of_booster(booster)))


def content_of_booster(booster: Any) -> dict[str, str]:
    """:func:`content_of` a model in memory."""
    return content_of(SavedModel(model_content(booster)))


def check_bound(booster: Any, ledger: Ledger) -> None:
    """Refuse a model of which a part, but for its trees, is not the one that its ledger names."""
    content = content_of_booster(booster)
    if any(ledger.content.get(name) != digest for name, digest in content.items()):
        raise LedgerError(
            "This model was changed after its training: its names, categories, intercept, "
            "objective or attributes are not those of its privacy ledger. Take the model as it "
            "was saved."
        )


def content_of(model: SavedModel) -> dict[str, str]:
    """SHA-256 of the parts of a model besides its trees, by name."""
    texts = {name: str(text) for name, text in model.attributes.items() if name in BOUND}
    texts |= model.texts_without_trees()
    return {
        name: hashlib.sha256(unescaped(text).encode()).hexdigest() for name, text in texts.items()
    }


def unescaped(text: str) -> str:
    r"""The text of an attribute without its escapes of Unicode.

    XGBoost writes the escapes ``\uXXXX`` of an attribute as they are, so that reading its file as
    JSON resolves them, and reading it as UBJSON or in memory does not.
    """
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def attach(booster: Any, **attributes: str) -> None:
    """Set attributes that the ledger binds to the model: those named in :data:`BOUND`."""
    if booster.attr(ATTRIBUTE) is None:
        booster.set_attr(**attributes)
        return
    ledger = read_ledger(booster)
    check_bound(booster, ledger)
    booster.set_attr(**attributes)
    store_bound(booster, ledger)
