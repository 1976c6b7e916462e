"""Saved models, opened with errors that name the file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import LedgerError, PrivacyParameterError
from . import ubjson

__all__ = [
    "check_parts",
    "intercept_margin",
    "load_booster",
    "names_of_categories",
    "stored_categories",
]


def load_booster(model: Any) -> Any:
    """The xgboost.Booster of a model, saved or not."""
    from xgboost import Booster
    from xgboost.core import XGBoostError

    if isinstance(model, Booster):
        return model
    name = "`model`"
    if not isinstance(model, (bytes, bytearray)):
        if not isinstance(model, (str, os.PathLike)):
            raise PrivacyParameterError(
                "A model must be an xgboost.Booster, the path of a saved one, or its bytes; got a "
                f"{type(model).__name__}."
            )
        name = repr(os.fspath(model))
        try:
            model = Path(model).read_bytes()
        except FileNotFoundError:
            raise PrivacyParameterError(f"There is no model file {name}. Check the path.") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "this is not a path"
            raise PrivacyParameterError(
                f"{name} cannot be read: {reason}. Give the path of a saved model that you may "
                "read."
            ) from None
    try:
        if model[1:2] != b'"' and not model[1:2].isspace():  # no JSON
            ubjson.check(bytes(model))  # XGBoost reads beyond the end of what was cut off
        return Booster(model_file=bytearray(model))
    except (XGBoostError, ValueError, TypeError, KeyError):
        raise LedgerError(
            f"{name} is not a model that XGBoost can read: it is damaged, incomplete, or another "
            "kind of file. Models are saved as .json or .ubj."
        ) from None


def check_parts(learner: Mapping[str, Any]) -> None:
    """Refuse a model whose parts do not fit each other; XGBoost would crash as it predicts."""
    numbers = learner["learner_model_param"]
    model = learner["gradient_booster"]["model"]
    groups = max(1, int(numbers["num_class"]), int(numbers["num_target"]))
    features = {tree["tree_param"]["num_feature"] for tree in model["trees"]}
    if not features <= {numbers["num_feature"]}:
        raise ValueError("its trees are of another number of features")
    if not all(0 <= group < groups for group in model["tree_info"]):
        raise ValueError("a tree is of an unknown class")
    if not _ascends(model["iteration_indptr"], len(model["trees"])):
        raise ValueError("its rounds are in no order")
    _check_names(model["cats"])


_LOGARITHMS = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:aft")


def intercept_margin(learner: Mapping[str, Any], objective: str) -> float:
    """The margin that all predictions of a model with one output start from."""
    numbers = learner["learner_model_param"]
    score = json.loads(numbers["base_score"])
    start = float(score[0] if isinstance(score, list) else score)
    if objective in _LOGARITHMS:
        return math.log(max(start, 1e-38))
    if objective in ("binary:logistic", "reg:logistic"):
        start = min(max(start, 1e-7), 1.0 - 1e-7)
        start = math.log(start) - math.log1p(-start)
    return start


def stored_categories(learner: Mapping[str, Any]) -> dict[int, list[bytes]]:
    """Names of the categories that a model stores, by index of the column."""
    columns = learner["gradient_booster"].get("model", {}).get("cats", {}).get("enc", [])
    named = {i: _names(column) for i, column in enumerate(columns)}
    return {i: [_bytes(name) for name in names] for i, names in named.items() if names}


def names_of_categories(booster: Any) -> dict[Any, list[Any]]:
    """The names that a model stores for its columns, by their names or else indices; public."""
    learner = json.loads(booster.save_raw("json"))["learner"]
    columns = learner["gradient_booster"].get("model", {}).get("cats", {}).get("enc", [])
    out: dict[Any, list[Any]] = {}
    for i, column in enumerate(columns):
        with suppress(UnicodeDecodeError):
            names = [n.decode() if isinstance(n, bytes) else n for n in _names(column)]
            if names:
                out[booster.feature_names[i] if booster.feature_names else i] = names
    return out


def _names(column: Mapping[str, Any]) -> list[Any]:
    values, ends = column["values"], column.get("offsets")
    if ends is None:
        return list(values)
    raw = bytes(v & 0xFF for v in values)
    return [raw[a:b] for a, b in pairwise(ends)]


def _bytes(name: Any) -> bytes:
    return name if isinstance(name, bytes) else str(name).encode()


def _ascends(ends: list[int], last: int) -> bool:
    return ends[:1] == [0] and ends[-1] == last and all(a <= b for a, b in pairwise(ends))


def _check_names(cats: dict[str, Any]) -> None:
    """The stored names of categories: ends of each feature's, and the order of each feature's."""
    columns, ends, order = cats["enc"], cats["feature_segments"], cats["sorted_idx"]
    if not columns and not ends and not order:
        return
    if len(ends) != len(columns) + 1 or not _ascends(ends, len(order)):
        raise ValueError("its categories are not those of its features")
    for column, (first, end) in zip(columns, pairwise(ends), strict=True):
        texts = column.get("offsets")  # of names; numbers have none
        count = len(column["values"]) if texts is None else max(len(texts) - 1, 0)
        if texts and not _ascends(texts, len(column["values"])):
            raise ValueError("a name of a category has no end")
        if count != end - first or sorted(order[first:end]) != list(range(count)):
            raise ValueError("its categories are in no order")
