"""The parts of a model file besides its trees, and their digests in the ledger.

A file can hide anything in a key that XGBoost skips, in white space or in digits that are rounded
away. So every key is known here or reported, and the file must have exactly XGBoost's form.

Names, types, categories, objective, intercept and calibration determine the meaning of a
prediction. The ledger binds them by digests. They are public or follow from released numbers, so
the digests cost nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..engine import ubjson
from ..engine.native import model_content
from ..engine.saved_model import (
    CLASSES,
    CURVE,
    MarginCurve,
    SavedModel,
    class_names,
    is_json,
    is_number,
)
from ..errors import LedgerError
from ..request.params import PARAMETERS
from .authorization import POLICY_KEY
from .consistency import parameters_of
from .ledger import ATTRIBUTE, dump_checksummed, read_ledger, store
from .ledger_model import Ledger, TrainingRecord

_TOKEN = re.compile(
    rb'"(?:[^"\\\x00-\x1f]|\\["\\bfnrt]|\\u(?!00[2-7])[0-9a-f]{4})*"'
    rb"|(?:-?(?:[1-9](?:\.\d{0,8}[1-9])?E(?:-?\d|-?[1-3]\d|-?4[0-5])|0E0)|0|-?[1-9]\d*|-?Infinity)"
    rb"(?![0-9.E+-])"
    rb"|NaN|true|false|null|[{}\[\],:]"
)
"""A token of XGBoost's JSON: 32-bit floats have at most nine digits, without trailing zeros."""
_OF_EVALS = {"best_iteration", "best_score"}  # computed from evaluation sets, which were public
_SCIKIT_LEARN = {json.dumps({"_estimator_type": kind}) for kind in ("classifier", "regressor")}
_PUBLIC = {
    "objective", "unit", "unit_column", "max_rows_per_person", "columns", "private_candidates",
    "public_cuts", "public_grids", "categories", "feature_weights", "classes", "target_bounds",
    "exposure_bounds", "public_num_rows", "max_weight", "own_objective", "base_score", "evals",
    "public_data", "masked_sums", "hyperparameters", "part", "plan_choice", "target_seen",
    "preprocessing", "evaluations", POLICY_KEY,
}  # fmt: skip
"""Allowed public inputs of a training in a ledger, besides parameters of its objective."""
_PARTS = {
    "evaluations": {"events", "entry", "method", "delta", "parallel", "offset", "slope"},
    "masked_sums": {"workers", "colluders"},
    "part": {"split", "name", "unit"},
    "plan_choice": {"plans", "taken", "rows"},
}
"""The keys of public inputs that are objects, or lists of objects."""
_HYPERPARAMETERS = {"rounds", "weight_unit"} | {
    parameter.name.removeprefix("dp_") for parameter in PARAMETERS.values() if parameter.recorded
}


def uncovered(model: SavedModel, ledger: Ledger, data: bytes) -> Iterator[str]:
    """Names of additional content in a file, and of parts that differ from the ledger.

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
            "white space, digits or an order that XGBoost does not write: load the model and save "
            "it again"
        )
    text = model.attributes[ATTRIBUTE]
    canonical = dump_checksummed(ledger.to_json())
    if text not in (canonical, unescaped(canonical)):
        yield f"white space or digits in attribute {ATTRIBUTE}"
    digests: dict[str, str] = {}
    with suppress(KeyError, TypeError, ValueError):  # a part is missing or damaged
        digests = content_of(model)
    bound = ledger.content
    if ledger.is_complete and (not digests or digests["model"] != bound.get("model")):
        yield "columns, objective or intercept, which are not those of the ledger"
    if digests.get("categories") not in (None, bound.get("categories")):
        yield "categories, which are not those of the ledger"
    yield from (f"ledger.content.{name}" for name in set(bound) - {"model", "categories", *BOUND})
    has_evals = any(training.public.get("evals") for training in ledger.trainings)
    for name, value in model.attributes.items():
        known = (
            name == ATTRIBUTE
            or (name in BOUND and name in digests and digests[name] == bound.get(name))
            or (name == "scikit_learn" and value in _SCIKIT_LEARN)
            or (has_evals and name in _OF_EVALS and _is_canonical(value))
        )
        known &= name != CURVE or _is_curve(value, ledger)
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
    """Whether a string is a number in Python's form, which leaves no choice of digits."""
    return is_number(text) and text in (repr(float(text)), f"{float(text):.0f}")


def _unknown_inputs(training: TrainingRecord) -> Iterator[str]:
    """Public inputs that no training writes."""
    yield from sorted(set(training.public) - _PUBLIC - set(parameters_of(training)))
    yield from sorted(set(training.hyperparameters) - _HYPERPARAMETERS)
    for name, known in _PARTS.items():
        part = training.public.get(name) or []
        for inner in part if isinstance(part, list) else [part]:
            more = set(inner) - known if isinstance(inner, Mapping) else {"value"}
            yield from (f"{name}.{key}" for key in sorted(more))
    for plan in (training.public.get("plan_choice") or {}).get("plans", ()):
        yield from (f"plan_choice.plans.{key}" for key in sorted(set(plan) - _HYPERPARAMETERS))


def _is_curve(text: Any, ledger: Ledger) -> bool:
    """Whether a value is a probability curve, and the ledger has an evaluation."""
    evaluated = any(training.public.get("evaluations") for training in ledger.trainings)
    try:
        return evaluated and bool(MarginCurve.from_json(text))
    except (ValueError, TypeError):
        return False


def _are_classes(text: Any, model: SavedModel) -> bool:
    """Whether a value names each class of the model, and nothing else."""
    try:
        return bool(class_names(text, max(model.classes, 2)))
    except (ValueError, TypeError):
        return False


BOUND = ("dp_schema", "dp_calibration", "dp_classes")
"""Attributes of a model that a ledger binds by digests."""


def store_bound(booster: Any, ledger: Ledger) -> None:
    """Store the ledger of a finished model, bound to the whole model."""
    store(booster, replace(ledger, content=content_of_booster(booster)))


def content_of_booster(booster: Any) -> dict[str, str]:
    """:func:`content_of` a model in memory."""
    return content_of(SavedModel(model_content(booster)))


def check_bound(booster: Any, ledger: Ledger) -> None:
    """Refuse a model with changed parts, apart from its trees; the ledger has their digests."""
    content = content_of_booster(booster)
    if any(ledger.content.get(name) != digest for name, digest in content.items()):
        raise LedgerError(
            "This model was changed after its training: its names, categories, intercept, "
            "objective or attributes are not those of its privacy ledger. Take the model as it "
            "was saved."
        )


def content_of(model: SavedModel) -> dict[str, str]:
    """SHA-256 of the parts of a model besides its trees, by name."""
    strings = {name: str(text) for name, text in model.attributes.items() if name in BOUND}
    strings |= model.strings_without_trees()
    return {
        name: hashlib.sha256(unescaped(text).encode()).hexdigest() for name, text in strings.items()
    }


def unescaped(text: str) -> str:
    r"""The text of an attribute with resolved Unicode escapes.

    XGBoost writes the escapes ``\uXXXX`` of an attribute unchanged. Reading its file as JSON
    resolves them, while reading UBJSON or a model in memory does not.
    """
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def attach(booster: Any, **attributes: str) -> None:
    """Set attributes that the ledger binds to the model, named in :data:`BOUND`."""
    if booster.attr(ATTRIBUTE) is None:
        booster.set_attr(**attributes)
        return
    ledger = read_ledger(booster)
    check_bound(booster, ledger)
    booster.set_attr(**attributes)
    store_bound(booster, ledger)
