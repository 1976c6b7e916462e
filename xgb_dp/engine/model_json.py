"""XGBoost's JSON model format, read from untrusted files with a limit on the nesting depth.

Only this module and ``saved_model.py`` know the keys of the format. Each part is looked up on
access, so accessing a damaged part raises KeyError, TypeError or ValueError. No compiled library is
needed. This module also refuses strings that the format cannot store.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ..errors import PrivacyParameterError

_DEEPEST = 100  # nesting levels; a model has about ten, and recursive parsers crash on deep input
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# XGBoost escapes other control characters, and a backslash before a "u", in a way it cannot read.
_LOST = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]|\\u")


def check_depth(text: str | bytes | bytearray) -> None:
    """Raise ValueError if JSON is nested deeper than any model; does not recurse itself."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    brackets = np.frombuffer(_STRING.sub(b"", data).translate(None, _NO_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1)
    if np.cumsum(steps).max(initial=0) > _DEEPEST:
        raise ValueError("nested too deeply")


def loads(text: str | bytes | bytearray, **hooks: Any) -> Any:
    """Call ``json.loads`` after checking the nesting depth."""
    check_depth(text)
    return json.loads(text, **hooks)


def check_carried(value: Any, what: str) -> None:
    """Refuse strings that XGBoost's JSON would lose, or that would make a model unreadable.

    Args:
        value: Strings in nested lists, arrays and mappings; other objects are ignored.
        what: Description of the strings for the error message.
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
                "does not support control characters or a backslash before a 'u'. Nothing was "
                "released. Rename it."
            )


NUMBERS = ("learner", "learner_model_param")
BOOSTER = ("learner", "gradient_booster")
TREES = (*BOOSTER, "model")


def _at(*path: str, read: Callable[[Any], Any] = lambda part: part) -> Any:
    """Return a property that reads the value at a path of nested keys."""
    return property(lambda model: read(model.part(path)))


AnyModel = TypeVar("AnyModel", bound="ModelJson")


class ModelJson:
    """A model, or the configuration of a booster, in XGBoost's JSON format."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    @classmethod
    def from_booster(cls: type[AnyModel], booster: Any) -> AnyModel:
        """Read the complete model."""
        return cls(json.loads(booster.save_raw("json")))

    @classmethod
    def from_config(cls: type[AnyModel], booster: Any) -> AnyModel:
        """Read the configuration, which contains the state of the updaters but no trees."""
        return cls(json.loads(booster.save_config()))

    def to_bytes(self) -> bytearray:
        """Return the content of a model file that a Booster can load."""
        return bytearray(json.dumps(self.content, ensure_ascii=False).encode())

    def part(self, path: Sequence[str]) -> Any:
        """Return the value at a path of nested keys."""
        part: Any = self.content
        for key in path:
            part = part[key]
        return part

    _objective: dict[str, Any] = _at("learner", "objective")
    _numbers: dict[str, Any] = _at(*NUMBERS)
    _trees: dict[str, Any] = _at(*TREES)

    objective: str = _at("learner", "objective", "name")
    columns: int = _at(*NUMBERS, "num_feature", read=int)
    classes: int = _at(*NUMBERS, "num_class", read=int)  # 0 or 1 if the objective has no classes
    targets: int = _at(*NUMBERS, "num_target", read=int)
    # intercept of the first output, on the scale of the predictions
    base_score: float = _at(
        *NUMBERS, "base_score", read=lambda text: float(np.atleast_1d(json.loads(text))[0])
    )
    feature_names: list[str] = _at("learner", "feature_names")  # empty if there are no names
    feature_types: list[str] = _at("learner", "feature_types")
    attributes: dict[str, str] = _at("learner", "attributes")
    booster: str = _at(*BOOSTER, "name")  # for example "gbtree"
    # state of each updater, in a configuration
    updaters: list[dict[str, Any]] = _at(*BOOSTER, read=lambda kept: kept.get("updater", []))
    rounds: int = _at(*TREES, "iteration_indptr", read=lambda ends: len(ends) - 1)
    # trees per output and round
    parallel_trees: int = _at(*TREES, "gbtree_model_param", "num_parallel_tree", read=int)
    tree_count: int = _at(*TREES, "trees", read=len)

    def tree_names(self) -> list[str]:
        """Return a digest of all numbers of each tree, as in `plugin_cpp/release/digests.cc`."""
        parts = ({k: v for k, v in tree.items() if k != "id"} for tree in self._trees["trees"])
        with np.errstate(over="ignore"):
            return [hashlib.sha256(_to_bytes(part)).hexdigest()[:32] for part in parts]

    def check_trees(self) -> None:
        """Refuse inconsistent trees, which would crash XGBoost during prediction."""
        trees = self._trees
        groups = max(1, self.classes, self.targets)
        features = {tree["tree_param"]["num_feature"] for tree in trees["trees"]}
        if not features <= {self._numbers["num_feature"]}:
            raise ValueError("its trees have a different number of features")
        if not all(type(group) is int and 0 <= group < groups for group in trees["tree_info"]):
            raise ValueError("a tree belongs to an unknown class")
        if not _ascends(trees["iteration_indptr"], len(trees["trees"])):
            raise ValueError("its rounds are out of order")
        _check_categories(trees["cats"])


def _to_bytes(value: Any) -> bytes:
    """Serialize a part of a tree: strings as they are, numbers as doubles after their count."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return b"".join(f"{name}=".encode() + _to_bytes(value[name]) for name in sorted(value))
    kinds = set(map(type, value))
    if kinds - {int} and kinds - {float}:
        raise ValueError("a tree has numbers of mixed types")
    numbers = np.asarray(value, dtype="<f4" if kinds == {float} else "<f8").astype("<f8")
    return len(value).to_bytes(8, "little") + numbers.tobytes()


def _ascends(ends: list[int], last: int) -> bool:
    """Return whether the integers start at 0, end at `last` and never decrease."""
    known = ends[:1] == [0] and ends[-1] == last and all(type(end) is int for end in ends)
    return known and all(a <= b for a, b in pairwise(ends))


def _check_categories(stored: dict[str, Any]) -> None:
    """Check that the stored categories of each column are complete and sorted consistently."""
    columns, ends, order = stored["enc"], stored["feature_segments"], stored["sorted_idx"]
    if columns == ends == order == []:
        return
    if len(ends) != len(columns) + 1 or not _ascends(ends, len(order)):
        raise ValueError("its categories do not match its features")
    for column, (first, end) in zip(columns, pairwise(ends), strict=True):
        strings = column.get("offsets")  # ends of category names; numbers have none
        count = len(column["values"]) if strings is None else max(len(strings) - 1, 0)
        if strings and not _ascends(strings, len(column["values"])):
            raise ValueError("a category name has no end")
        if count != end - first or sorted(order[first:end]) != list(range(count)):
            raise ValueError("its categories are out of order")
