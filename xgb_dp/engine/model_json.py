"""XGBoost's JSON of a model, read from untrusted files to a limited depth.

With ``saved_model.py`` this is all that knows its keys. A part is looked up when it is asked for,
so a damaged model raises KeyError, TypeError or ValueError where it is damaged. Nothing here needs
a compiled library. Strings that this JSON cannot store are refused here too.
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


NUMBERS = ("learner", "learner_model_param")
BOOSTER = ("learner", "gradient_booster")
TREES = (*BOOSTER, "model")


def _at(*path: str, read: Callable[[Any], Any] = lambda part: part) -> Any:
    """A property that reads the part at a place."""
    return property(lambda model: read(model.part(path)))


AnyModel = TypeVar("AnyModel", bound="ModelJson")


class ModelJson:
    """A model or the configuration of a booster, as XGBoost writes them in JSON."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    @classmethod
    def from_booster(cls: type[AnyModel], booster: Any) -> AnyModel:
        """The whole model."""
        return cls(json.loads(booster.save_raw("json")))

    @classmethod
    def from_config(cls: type[AnyModel], booster: Any) -> AnyModel:
        """The configuration, which has no trees, and what its updaters keep."""
        return cls(json.loads(booster.save_config()))

    def to_bytes(self) -> bytearray:
        """The file of the model, as a Booster reads it."""
        return bytearray(json.dumps(self.content).encode())

    def part(self, path: Sequence[str]) -> Any:
        """What is stored at a place."""
        part: Any = self.content
        for key in path:
            part = part[key]
        return part

    _objective: dict[str, Any] = _at("learner", "objective")
    _numbers: dict[str, Any] = _at(*NUMBERS)
    _trees: dict[str, Any] = _at(*TREES)

    objective: str = _at("learner", "objective", "name")
    columns: int = _at(*NUMBERS, "num_feature", read=int)
    classes: int = _at(*NUMBERS, "num_class", read=int)  # 0 or 1 for objectives without
    targets: int = _at(*NUMBERS, "num_target", read=int)
    # intercept of the first output, in the units of predictions
    base_score: float = _at(
        *NUMBERS, "base_score", read=lambda text: float(np.atleast_1d(json.loads(text))[0])
    )
    feature_names: list[str] = _at("learner", "feature_names")  # empty if they have none
    feature_types: list[str] = _at("learner", "feature_types")
    attributes: dict[str, str] = _at("learner", "attributes")
    booster: str = _at(*BOOSTER, "name")  # its kind, for example "gbtree"
    # what each updater keeps, in a configuration
    updaters: list[dict[str, Any]] = _at(*BOOSTER, read=lambda kept: kept.get("updater", []))
    rounds: int = _at(*TREES, "iteration_indptr", read=lambda ends: len(ends) - 1)
    # trees of each output in a round
    parallel_trees: int = _at(*TREES, "gbtree_model_param", "num_parallel_tree", read=int)
    tree_count: int = _at(*TREES, "trees", read=len)

    def tree_names(self) -> list[str]:
        """Digests of all numbers of each tree, as in `plugin_cpp/release/digests.cc`."""
        return [
            hashlib.sha256(_to_bytes({k: v for k, v in tree.items() if k != "id"})).hexdigest()[:32]
            for tree in self._trees["trees"]
        ]

    def check_trees(self) -> None:
        """Refuse trees whose parts do not fit each other; XGBoost would crash as it predicts."""
        trees = self._trees
        groups = max(1, self.classes, self.targets)
        features = {tree["tree_param"]["num_feature"] for tree in trees["trees"]}
        if not features <= {self._numbers["num_feature"]}:
            raise ValueError("its trees are of another number of features")
        if not all(type(group) is int and 0 <= group < groups for group in trees["tree_info"]):
            raise ValueError("a tree is of an unknown class")
        if not _ascends(trees["iteration_indptr"], len(trees["trees"])):
            raise ValueError("its rounds are in no order")
        _check_categories(trees["cats"])


def _to_bytes(value: Any) -> bytes:
    """A part of a tree: texts, and numbers as doubles after how many there are."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return b"".join(f"{name}=".encode() + _to_bytes(value[name]) for name in sorted(value))
    kinds = set(map(type, value))
    if kinds - {int} and kinds - {float}:
        raise ValueError("numbers of a tree are not of one kind")
    with np.errstate(over="ignore"):
        numbers = np.asarray(value, dtype="<f4" if kinds == {float} else "<f8").astype("<f8")
    return len(value).to_bytes(8, "little") + numbers.tobytes()


def _ascends(ends: list[int], last: int) -> bool:
    """Whether whole numbers go from 0 to the last, and none is smaller than the one before."""
    known = ends[:1] == [0] and ends[-1] == last and all(type(end) is int for end in ends)
    return known and all(a <= b for a, b in pairwise(ends))


def _check_categories(stored: dict[str, Any]) -> None:
    """Where the categories of each column end, and the order in which they are sorted."""
    columns, ends, order = stored["enc"], stored["feature_segments"], stored["sorted_idx"]
    if columns == ends == order == []:
        return
    if len(ends) != len(columns) + 1 or not _ascends(ends, len(order)):
        raise ValueError("its categories are not those of its features")
    for column, (first, end) in zip(columns, pairwise(ends), strict=True):
        strings = column.get("offsets")  # of names; numbers have none
        count = len(column["values"]) if strings is None else max(len(strings) - 1, 0)
        if strings and not _ascends(strings, len(column["values"])):
            raise ValueError("a name of a category has no end")
        if count != end - first or sorted(order[first:end]) != list(range(count)):
            raise ValueError("its categories are in no order")
