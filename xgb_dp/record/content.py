"""Check the parts of a model file other than its trees against digests in the ledger.

A file can hide data in keys that XGBoost skips, in white space or in digits that rounding discards.
Every key that is not known here is therefore reported, and the file must have exactly the form that
XGBoost writes.

Names, types, categories, objective, intercept and calibration determine what a prediction means, so
the ledger contains their digests. They are public or post-processing, so the digests are free.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..engine import ubjson
from ..engine.native import model_content
from ..engine.saved_model import (
    CLASSES,
    SavedModel,
    class_names,
    is_json,
    is_number,
)
from ..errors import LedgerError, PrivacyParameterError
from ..request.params import PARAMETERS
from .authorization import POLICY_KEY
from .consistency import parameters_of
from .ledger import ATTRIBUTE, dump_checksummed, parse_ledger, read_ledger, store
from .ledger_model import Ledger, TrainingRecord

_TOKEN = re.compile(
    rb'"(?:[^"\\\x00-\x1f]|\\["\\bfnrt]|\\u(?!00[2-7])[0-9a-f]{4})*"'
    rb"|(?:-?(?:[1-9](?:\.\d{0,8}[1-9])?E(?:-?\d|-?[1-3]\d|-?4[0-5])|0E0)|0|-?[1-9]\d*|-?Infinity)"
    rb"(?![0-9.E+-])"
    rb"|NaN|true|false|null|[{}\[\],:]"
)
"""A token of XGBoost's JSON. 32-bit floats have at most nine digits and no trailing zeros."""
_OF_EVALS = {"best_iteration", "best_score"}  # computed from public evaluation sets
_SCIKIT_LEARN = {json.dumps({"_estimator_type": kind}) for kind in ("classifier", "regressor")}
_PUBLIC = {
    "objective", "unit", "unit_column", "max_rows_per_person", "columns", "private_candidates",
    "public_cuts", "public_grids", "categories", "feature_weights", "classes", "target_bounds",
    "exposure_bounds", "public_num_rows", "max_weight", "own_objective", "base_score", "evals",
    "public_data", "masked_sums", "hyperparameters", "part", "plan_choice", "target_seen",
    "preprocessing", "evaluations", POLICY_KEY,
}  # fmt: skip
"""Allowed public inputs of a training, in addition to parameters of its objective."""
_PARTS = {
    "evaluations": {"events", "entry", "evaluated", "method", "delta", "parallel", "offset",
                    "slope"},
    "masked_sums": {"workers", "colluders"},
    "part": {"split", "name", "unit"},
    "plan_choice": {"plans", "taken", "rows"},
}  # fmt: skip
"""Allowed keys of public inputs that are objects or lists of objects."""
_HYPERPARAMETERS = {"rounds", "weight_unit"} | {
    parameter.name.removeprefix("dp_") for parameter in PARAMETERS.values() if parameter.recorded
}


def uncovered(model: SavedModel, ledger: Ledger, data: bytes) -> Iterator[str]:
    """Name additional content of a file, and parts that differ from the ledger.

    Args:
        model: The parsed file.
        ledger: The ledger in the file.
        data: The bytes of the file, in JSON or UBJSON.
    """
    yield from model.unknown_parts(parameters_of(ledger.trainings[-1]))
    for number, training in enumerate(ledger.trainings, 1):
        yield from (f"ledger.{number}.{name}" for name in _unknown_inputs(training))
    if not _is_canonical_json(data, model) if is_json(data) else not ubjson.is_canonical(data):
        yield (
            "white space, digits or an order that XGBoost does not write; load the model and save "
            "it again"
        )
    text = model.attributes[ATTRIBUTE]
    canonical = dump_checksummed(ledger.to_json())
    if text not in (canonical, unescaped(canonical)):
        yield f"white space or digits in attribute {ATTRIBUTE}"
    digests: dict[str, str] = {}
    with suppress(KeyError, TypeError, ValueError):  # if a part is missing or damaged
        digests = content_of(model)
    bound = ledger.content
    if ledger.is_complete and (not digests or digests["model"] != bound.get("model")):
        yield "columns, objective or intercept, which differ from the ledger"
    if digests.get("categories") not in (None, bound.get("categories")):
        yield "categories, which differ from the ledger"
    yield from (f"ledger.content.{name}" for name in set(bound) - {"model", "categories", *BOUND})
    has_evals = any(training.public.get("evals") for training in ledger.trainings)
    for name, value in model.attributes.items():
        known = (
            name == ATTRIBUTE
            or (name in BOUND and name in digests and digests[name] == bound.get(name))
            or (name == "scikit_learn" and value in _SCIKIT_LEARN)
            or (has_evals and name in _OF_EVALS and _is_canonical(value))
        )
        known &= name != CLASSES or _are_classes(value, model)
        if not known:
            yield f"attribute {name}"


def _is_canonical_json(data: bytes, model: SavedModel) -> bool:
    return not _TOKEN.sub(b"", data) and _is_sorted(model.content)


def _is_sorted(value: Any) -> bool:
    """Whether the keys of all objects in a value are sorted, as in XGBoost's files."""
    if isinstance(value, list):
        return all(_is_sorted(item) for item in value if isinstance(item, (dict, list)))
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(_is_sorted, value.values()))
    return True


def _is_canonical(text: Any) -> bool:
    """Whether a string is a number in Python's own format, which cannot hide digits."""
    return is_number(text) and text in (repr(float(text)), f"{float(text):.0f}")


def _unknown_inputs(training: TrainingRecord) -> Iterator[str]:
    """Name public inputs that no training writes."""
    yield from sorted(set(training.public) - _PUBLIC - set(parameters_of(training)))
    yield from sorted(set(training.hyperparameters) - _HYPERPARAMETERS)
    for name, known in _PARTS.items():
        part = training.public.get(name) or []
        for inner in part if isinstance(part, list) else [part]:
            more = set(inner) - known if isinstance(inner, Mapping) else {"value"}
            yield from (f"{name}.{key}" for key in sorted(more))
    for plan in (training.public.get("plan_choice") or {}).get("plans", ()):
        yield from (f"plan_choice.plans.{key}" for key in sorted(set(plan) - _HYPERPARAMETERS))


def _are_classes(text: Any, model: SavedModel) -> bool:
    """Whether a value lists exactly the class names of the model."""
    try:
        return bool(class_names(text, max(model.classes, 2)))
    except (ValueError, TypeError):
        return False


BOUND = ("dp_schema", "dp_classes")
"""Attributes of a model that have digests in its ledger."""


def store_bound(booster: Any, ledger: Ledger) -> None:
    """Store the ledger of a finished model, with digests of the whole model."""
    store(booster, replace(ledger, content=content_of_booster(booster)))


def content_of_booster(booster: Any) -> dict[str, str]:
    """:func:`content_of` a model in memory."""
    return content_of(SavedModel(model_content(booster)))


def check_bound(booster: Any, ledger: Ledger) -> None:
    """Refuse a model with parts, other than trees, that differ from the digests in the ledger."""
    content = content_of_booster(booster)
    if any(ledger.content.get(name) != digest for name, digest in content.items()):
        raise LedgerError(
            "This model was changed after its training: its names, categories, intercept, "
            "objective or attributes differ from its privacy ledger. Use the model as it was "
            "saved."
        )


def content_of(model: SavedModel) -> dict[str, str]:
    """SHA-256 of the parts of a model other than its trees, by name."""
    strings = {name: str(text) for name, text in model.attributes.items() if name in BOUND}
    strings |= model.strings_without_trees()
    return {
        name: hashlib.sha256(unescaped(text).encode()).hexdigest() for name, text in strings.items()
    }


def unescaped(text: str) -> str:
    r"""Resolve Unicode escapes in an attribute.

    XGBoost writes ``\uXXXX`` escapes in an attribute unchanged. Reading its file as JSON resolves
    them; reading UBJSON or a model in memory does not.
    """
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def attach(booster: Any, **attributes: str) -> None:
    """Set attributes in :data:`BOUND`, and update their digests in the ledger."""
    if booster.attr(ATTRIBUTE) is None:
        booster.set_attr(**attributes)
        return
    ledger = read_ledger(booster)
    check_bound(booster, ledger)
    booster.set_attr(**attributes)
    store_bound(booster, ledger)


@lru_cache(maxsize=16)
def _has_margins(text: str | None) -> bool:
    trainings = parse_ledger(text).trainings
    return any(training.hyperparameters.get("base_margin") for training in trainings)


def needs_margins(booster: Any) -> bool:
    """Return whether a model was trained with base margins, so that predictions need them too."""
    with suppress(LedgerError):
        return _has_margins(booster.attr(ATTRIBUTE))
    return False


def check_margins(booster: Any, margin: Any) -> None:
    """Check that rows have base margins if a model was trained with them."""
    if margin is None and needs_margins(booster):
        raise PrivacyParameterError(
            "The model was trained with base margins, so its predictions need them too. Pass "
            "`base_margin`, or on the command line a schema that names their column: for example "
            "the logs of the exposures, or zeros to predict for an exposure of 1."
        )
