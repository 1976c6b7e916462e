"""The privacy ledger as an attribute of a booster: JSON with a checksum.

The C++ trainer records its draws. This module adds the intercept, earlier trainings, the target and
public inputs, and stores everything in the attribute ``dp_ledger``. Attributes are the only
free-form fields that survive ``save_model``, pickling and copying.

The checksum detects accidental damage. It has no key, so it does not detect deliberate changes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..accounting import Event
from ..engine import model_json
from ..engine.model_json import ModelJson
from ..errors import LedgerError, PrivacyParameterError, PrivacyRefusal, alias
from .ledger_model import Ledger, TrainingRecord

DIGEST = "digest"
"""Key of the digest in checksummed JSON."""
_LONGEST = 100  # maximum digits of an integer; integers in valid ledgers are shorter


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form of a JSON object: sorted keys, no spaces, ASCII."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def dump_checksummed(content: Mapping[str, Any], indent: int | None = None) -> str:
    """Dump an object as JSON with a new digest."""
    content = {name: value for name, value in content.items() if name != DIGEST}
    sealed = {**content, DIGEST: checksum(content)}
    separators = (",", ":") if indent is None else None
    text = json.dumps(sealed, indent=indent, separators=separators, allow_nan=False)
    load_checksummed(text)
    return text


def load_checksummed(text: str | bytes) -> dict[str, Any]:
    """Read a JSON object and check its digest."""
    try:
        content = model_json.loads(
            text,
            object_pairs_hook=refuse_duplicate_keys,
            parse_constant=_refuse,
            parse_float=_real,
            parse_int=_whole,
        )
        if not isinstance(content, dict):
            raise ValueError("it is not a JSON object")
        json.dumps(content, ensure_ascii=False).encode()  # refuse unpaired surrogates
        recorded = content.pop(DIGEST, None)
        if recorded is None:
            raise ValueError("it has no digest")
        matches = recorded == checksum(content)
    except UnicodeError:
        raise ValueError("it contains invalid Unicode") from None
    if not matches:
        raise ValueError("the digest does not match the content")
    return content


def refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Hook for ``json.loads`` that refuses duplicate keys."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key occurs twice")
    return content


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a finite number")


def _real(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _whole(text: str) -> int:
    if len(text) > _LONGEST:
        raise ValueError("a number has too many digits")
    return int(text)


ATTRIBUTE = "dp_ledger"


def read_ledger(booster: Any) -> Ledger:
    """Read the ledger of a booster, and check that it accounts for all trees."""
    try:
        text = booster.attr(ATTRIBUTE)
    except UnicodeError:
        raise _unreadable("it is not valid Unicode") from None
    except AssertionError:  # XGBoost asserts that attributes are not empty
        text = ""
    ledger = parse_ledger(text)
    check_trees(ledger, _model_json(booster))
    return ledger


def parse_ledger(text: Any) -> Ledger:
    """Parse the ledger attribute of a model."""
    if text is None:
        raise LedgerError(
            "This model carries no privacy ledger: it was not trained with tree_method='dp_hist', "
            "or its attributes were removed. Its privacy is unknown."
        )
    if not isinstance(text, str):
        raise _unreadable("it is not a string")
    try:
        record = load_checksummed(text)
    except ValueError as error:
        raise _unreadable(str(error) if text else "it is empty") from None
    return Ledger.from_json(record)


def _unreadable(reason: str) -> LedgerError:
    return LedgerError(
        f"The privacy ledger of this model is damaged ({reason}), so the privacy cost of the model "
        "is unknown. Use an undamaged copy of the model, or train a new one."
    )


def check_trees(ledger: Ledger, model: ModelJson) -> None:
    """Refuse trees that the ledger does not list; the ledger of a checkpoint lists no trees."""
    digests, total = _tree_digests(model)
    if not ledger.is_complete:
        return
    public_rounds = ledger.start.rounds if ledger.start is not None else 0
    named = iter(ledger.tree_names)  # slices keep the order of the trees
    if not all(name in named for name in digests) or total > public_rounds + ledger.rounds:
        raise LedgerError(
            "This model contains trees that its privacy ledger does not account for: it was "
            "changed after training. Continue a model only with "
            "xgboost.train(..., xgb_model=...)."
        )


def _model_json(booster: Any) -> ModelJson:
    """Parse a model as JSON; an unreadable model is empty, so that no ledger matches it."""
    try:
        return ModelJson.from_booster(booster)
    except (ValueError, RecursionError):
        return ModelJson({})


def _tree_digests(model: ModelJson) -> tuple[list[str], int]:
    """Tree names and the number of rounds. A tree name is a digest of all numbers in the tree."""
    try:
        model.check_trees()
        return model.tree_names(), model.rounds
    except (ArithmeticError, LookupError, AttributeError, RecursionError, TypeError, ValueError):
        raise LedgerError(
            "The trees of this model cannot be read: the model is damaged, or its booster is not "
            "gbtree."
        ) from None


def tree_names(booster: Any) -> list[str]:
    """Names of the trees of a model: short digests of all numbers in a tree."""
    return _tree_digests(_model_json(booster))[0]


def with_evaluation(
    booster: Any,
    changed: Any,
    ledger: Ledger,
    events: Sequence[Event],
    evaluation: Mapping[str, Any],
    entry: str | None,
) -> Ledger:
    """Add an evaluation to the ledger of a model that contains its results.

    The evaluation counts as a release of the last training, so its cost is added even if it used
    disjoint rows.
    """
    before = tree_names(booster)
    evaluation = {**evaluation, "events": len(events), "evaluated": checksum({"trees": before})}
    evaluation |= {} if entry is None else {"entry": entry}
    names = dict(zip(before, tree_names(changed), strict=True))
    trainings = [
        replace(
            t,
            trees=None if t.trees is None else tuple(names.get(n, n) for n in t.trees),
            start=None if t.start is None else t.start.renamed(names),
        )
        for t in ledger.trainings
    ]
    last = trainings[-1]
    public = {**last.public, "evaluations": [*last.evaluations, evaluation]}
    drawn = None if last.drawn is None else (*last.drawn, *events)
    trainings[-1] = replace(last, events=(*last.events, *events), public=public, drawn=drawn)
    return replace(ledger, trainings=tuple(trainings))


def not_continued(error: LedgerError) -> PrivacyRefusal:
    """Create the error for continuing a model with an unreadable ledger."""
    return PrivacyRefusal(
        f"`xgb_model` is refused: {error} Adding private trees would not make it private. Train a "
        "new model or, if no private row was used for `xgb_model`, set "
        f"{alias('dp_public_model')}=True."
    )


def earlier_ledger(
    booster: Any, *, private: bool, names: list[str] | None, types: list[str] | None
) -> Ledger:
    """Return the ledger of the model to continue, after checking that it can be continued."""
    try:
        ledger = read_ledger(booster)
    except LedgerError as error:
        raise not_continued(error) from None
    if not ledger.is_complete:
        raise PrivacyRefusal(
            "`xgb_model` is refused: its training was interrupted, so its ledger does not list its "
            "trees. Its budget is spent. Train a new model."
        )
    if private and not ledger.private:
        raise PrivacyRefusal(
            "`xgb_model` is refused: its trees were grown without noise or with fixed noise, so "
            "the result could not be private. Train a new model."
        )
    if (booster.feature_names, booster.feature_types) != (names, types):
        raise PrivacyParameterError(
            "`xgb_model` was trained on different columns. The training data must have the same "
            "column names in the same order, and the same categorical columns."
        )
    model = _model_json(booster)
    parallel = model.parallel_trees
    if any(t.hyperparameters["num_parallel_tree"] != parallel for t in ledger.trainings):
        raise PrivacyRefusal(
            "`xgb_model` is refused: its `num_parallel_tree` differs from its ledger, so it was "
            "changed after training. Use the model as it was saved, or train a new one."
        )
    return ledger


def claim(earlier: Ledger | None, plan: TrainingRecord, *, private: bool, noise: str) -> Ledger:
    """Create the ledger of a training in progress, which claims the whole plan as spent.

    A checkpoint keeps this ledger, and so does a training that an exception ends. The ledger
    therefore never shows less than what may have been released.
    """
    if earlier is None:
        return Ledger(private, noise, (plan,))
    noise = earlier.noise if noise == "os" else noise
    return Ledger(private and earlier.private, noise, (*earlier.trainings, plan))


def store(booster: Any, ledger: Ledger) -> None:
    """Store the ledger with its digest as an attribute of the booster."""
    try:
        text = dump_checksummed(ledger.to_json())
    except ValueError as error:
        raise PrivacyParameterError(
            f"The privacy ledger of this model would be unreadable: {error}. Use valid Unicode in "
            "the names of columns and pipeline steps."
        ) from None
    booster.set_attr(**{ATTRIBUTE: text})
