"""XGBoost's JSON of a model: the one place, with ``tree_json.py``, that knows its keys.

A part is looked up when it is asked for, so a damaged model raises KeyError, TypeError or
ValueError where it is damaged. Nothing here needs a compiled library.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .tree_json import Tree

_NUMBERS = ("learner", "learner_model_param")
_BOOSTER = ("learner", "gradient_booster")
_TREES = (*_BOOSTER, "model")
_KNOWN_PARTS = {
    (): {"learner", "version"},
    ("learner",): {
        "attributes", "feature_names", "feature_types", "gradient_booster",
        "learner_model_param", "objective",
    },
    _BOOSTER: {"model", "name"},
    _TREES: {"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees"},
    (*_TREES, "cats"): {"enc", "feature_segments", "sorted_idx"},
    (*_TREES, "gbtree_model_param"): {"num_parallel_tree", "num_trees"},
    _NUMBERS: {"base_score", "boost_from_average", "num_class", "num_feature", "num_target"},
}  # fmt: skip
"""The parts of a model of trees, by their place."""
_OTHER_PARTS = (("learner", "attributes"), ("learner", "objective"))
_TYPES = ("c", "float", "i", "int", "q")
"""Types of columns that XGBoost knows."""
_LOGARITHMS = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:aft")


def _at(*path: str, read: Callable[[Any], Any] = lambda part: part) -> Any:
    """A property that reads the part at a place."""
    return property(lambda model: read(model._part(path)))


AnyModel = TypeVar("AnyModel", bound="ModelJson")


class ModelJson:
    """A model or the configuration of a booster, as XGBoost writes them in JSON."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    @classmethod
    def of(cls: type[AnyModel], booster: Any) -> AnyModel:
        """The whole model."""
        return cls(json.loads(booster.save_raw("json")))

    @classmethod
    def config_of(cls, booster: Any) -> ModelJson:
        """The configuration, which has no trees, and what its updaters keep."""
        return cls(json.loads(booster.save_config()))

    def to_bytes(self) -> bytearray:
        """The file of the model, as a Booster reads it."""
        return bytearray(json.dumps(self.content).encode())

    def _part(self, path: Sequence[str]) -> Any:
        part: Any = self.content
        for key in path:
            part = part[key]
        return part

    _objective: dict[str, Any] = _at("learner", "objective")
    _numbers: dict[str, Any] = _at(*_NUMBERS)
    _trees: dict[str, Any] = _at(*_TREES)

    objective: str = _at("learner", "objective", "name")
    columns: int = _at(*_NUMBERS, "num_feature", read=int)
    classes: int = _at(*_NUMBERS, "num_class", read=int)  # 0 or 1 for objectives without
    targets: int = _at(*_NUMBERS, "num_target", read=int)
    # intercept of the first output, in the units of predictions
    base_score: float = _at(
        *_NUMBERS, "base_score", read=lambda text: float(np.atleast_1d(json.loads(text))[0])
    )
    feature_names: list[str] = _at("learner", "feature_names")  # empty if they have none
    feature_types: list[str] = _at("learner", "feature_types")
    attributes: dict[str, str] = _at("learner", "attributes")
    booster: str = _at(*_BOOSTER, "name")  # its kind, for example "gbtree"
    # what each updater keeps, in a configuration
    updaters: list[dict[str, Any]] = _at(*_BOOSTER, read=lambda kept: kept.get("updater", []))
    rounds: int = _at(*_TREES, "iteration_indptr", read=lambda ends: len(ends) - 1)
    # trees of each output in a round
    parallel_trees: int = _at(*_TREES, "gbtree_model_param", "num_parallel_tree", read=int)
    tree_count: int = _at(*_TREES, "trees", read=len)
    # whether trees have weights, as XGBoost 3.4 writes them for gbtree
    has_dropout: bool = _at(*_TREES, read=lambda model: "weight_drop" in model)

    @property
    def trees(self) -> list[Tree]:
        """The trees, in their order; none if the booster is not gbtree."""
        return [Tree.of(tree) for tree in self._trees["trees"]] if self.booster == "gbtree" else []

    def objective_parameter(self, name: str) -> Any:
        """A parameter of the objective as it is stored; None if it has none of this name."""
        parts = [part for part in self._objective.values() if isinstance(part, Mapping)]
        return next((part[name] for part in parts if name in part), None)

    def has_parameter(self, name: str, value: Any) -> bool:
        """Whether the objective has a parameter of this value, as a name or in 32-bit floats."""
        return _is_stored_as(self.objective_parameter(name), value)

    @property
    def has_order(self) -> bool:
        """Whether the trees of each round are those of the outputs in turn."""
        outputs = range(max(1, self.classes, self.targets))
        of_round = [output for output in outputs for _ in range(self.parallel_trees)]
        return bool(self._trees["tree_info"] == of_round * self.rounds)

    @property
    def intercept_margin(self) -> float:
        """The margin that all predictions of a model with one output start from."""
        start, objective = self.base_score, self.objective
        if objective in _LOGARITHMS:
            return math.log(max(start, 1e-38))
        if objective in ("binary:logistic", "reg:logistic"):
            start = min(max(start, 1e-7), 1.0 - 1e-7)
            start = math.log(start) - math.log1p(-start)
        return start

    @property
    def categories(self) -> dict[int, list[Any]]:
        """The categories that it stores, by index of the column: names in bytes, or numbers."""
        model = self._part(_BOOSTER).get("model", {})
        listed = map(_categories, model.get("cats", {}).get("enc", []))
        return {i: categories for i, categories in enumerate(listed) if categories}

    def tree_texts(self) -> Iterator[str]:
        """Each tree with all its numbers and the intercept.

        `plugin_cpp/tree_text.cc` writes the same text for models in memory.
        """
        score = self._numbers["base_score"]
        for tree in self._trees["trees"]:
            numbers = {name: value for name, value in tree.items() if name != "id"}
            yield json.dumps([score, numbers], sort_keys=True)

    def check_form(self) -> None:
        """Refuse what has not the parts of a model of trees."""
        parts = [self._part(path) for path in (*_KNOWN_PARTS, *_OTHER_PARTS)]
        if not all(isinstance(part, dict) for part in parts):
            raise ValueError("a part of it is not a mapping")
        if not isinstance(self.feature_names, list):
            raise ValueError("its columns are not a list")
        json.dumps(self.content, ensure_ascii=False).encode()  # no half of a pair of surrogates

    def check_trees(self) -> None:
        """Refuse trees whose parts do not fit each other; XGBoost would crash as it predicts."""
        trees = self._trees
        groups = max(1, self.classes, self.targets)
        features = {tree["tree_param"]["num_feature"] for tree in trees["trees"]}
        if not features <= {self._numbers["num_feature"]}:
            raise ValueError("its trees are of another number of features")
        if not all(0 <= group < groups for group in trees["tree_info"]):
            raise ValueError("a tree is of an unknown class")
        if not _ascends(trees["iteration_indptr"], len(trees["trees"])):
            raise ValueError("its rounds are in no order")
        _check_categories(trees["cats"])

    def unknown_parts(self, parameters: Mapping[str, Any]) -> Iterator[str]:
        """Names of what a model of trees does not need, or holds as text, other than attributes.

        Parameters of the objective that are known may be texts.
        """
        for path, known in _KNOWN_PARTS.items():
            yield from (".".join((*path, name)) for name in set(self._part(path)) - known)
        version = self.content.get("version", [])
        if not isinstance(version, list) or not all(type(number) is int for number in version):
            yield "version"
        if self._part(_BOOSTER).get("name") != "gbtree":
            yield "learner.gradient_booster.name"
        types = self._part(("learner",)).get("feature_types", [])
        if not isinstance(types, list) or not all(kind in _TYPES for kind in types):
            yield "learner.feature_types"
        seen: set[str] = set()
        for name, value in self._objective.items():
            place = f"learner.objective.{name}"
            if name == "name":
                continue
            if not name.endswith("_param") or not isinstance(value, Mapping):
                yield place
                continue
            for key, stored in value.items():
                named = key in parameters and _is_stored_as(stored, parameters[key])
                if key in seen or (not named and not _is_number(stored)):
                    yield f"{place}.{key}"
            seen |= set(value)
        yield from self._wrong_counts()

    def _wrong_counts(self) -> Iterator[str]:
        """Names of numbers that follow from the trees and columns, and do not."""
        trees = self._trees["trees"]
        if [tree.get("id") for tree in trees] != list(range(len(trees))):
            yield "learner.gradient_booster.model.trees.id"
        if self._trees["gbtree_model_param"].get("num_trees") != str(len(trees)):
            yield "learner.gradient_booster.model.gbtree_model_param.num_trees"
        if self._numbers.get("boost_from_average") not in ("0", "1"):
            yield "learner.learner_model_param.boost_from_average"
        if self.feature_names and len(self.feature_names) != self.columns:
            yield "learner.feature_names"


def _is_stored_as(stored: Any, value: Any) -> bool:
    """Whether a name, or numbers up to the rounding to 32-bit floats, are these."""
    if stored is None:
        return False
    found, expected = _floats(stored), _floats(value)
    if found is None or expected is None:
        return str(stored) == str(value)
    return found.shape == expected.shape and np.allclose(found, expected, rtol=2e-7, atol=0.0)


def _floats(value: Any) -> npt.NDArray[np.float64] | None:
    """A number or several numbers, also as text; None for anything else."""
    try:
        numbers = json.loads(value) if isinstance(value, str) else value
        return np.atleast_1d(np.asarray(numbers, dtype=np.float64))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _categories(column: Mapping[str, Any]) -> list[Any]:
    values, ends = column["values"], column.get("offsets")
    if ends is None:
        return list(values)
    text = bytes(v & 0xFF for v in values)
    return [text[a:b] for a, b in pairwise(ends)]


def _ascends(ends: list[int], last: int) -> bool:
    return ends[:1] == [0] and ends[-1] == last and all(a <= b for a, b in pairwise(ends))


def _check_categories(stored: dict[str, Any]) -> None:
    """Where the categories of each column end, and the order in which they are sorted."""
    columns, ends, order = stored["enc"], stored["feature_segments"], stored["sorted_idx"]
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
