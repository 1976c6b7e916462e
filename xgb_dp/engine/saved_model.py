"""What clients ask of a saved model: its trees, its categories, and parts that are not known.

Nothing here decides what a model has cost: that is read in ``model_json.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .model_json import BOOSTER, NUMBERS, TREES, ModelJson
from .tree_json import Tree

_KNOWN_PARTS = {
    (): {"learner", "version"},
    ("learner",): {
        "attributes", "feature_names", "feature_types", "gradient_booster",
        "learner_model_param", "objective",
    },
    BOOSTER: {"model", "name"},
    TREES: {"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees"},
    (*TREES, "cats"): {"enc", "feature_segments", "sorted_idx"},
    (*TREES, "gbtree_model_param"): {"num_parallel_tree", "num_trees"},
    NUMBERS: {"base_score", "boost_from_average", "num_class", "num_feature", "num_target"},
}  # fmt: skip
"""The parts of a model of trees, by their place."""
_OTHER_PARTS = (("learner", "attributes"), ("learner", "objective"))
_TYPES = ("c", "float", "i", "int", "q")
"""Types of columns that XGBoost knows."""
_LOGARITHMS = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:aft")


class SavedModel(ModelJson):
    """A model or a configuration, and what clients read in it."""

    @property
    def trees(self) -> list[Tree]:
        """The trees, in their order; none if the booster is not gbtree."""
        return [Tree.of(tree) for tree in self._trees["trees"]] if self.booster == "gbtree" else []

    @property
    def has_dropout(self) -> bool:
        """Whether trees have weights, as XGBoost 3.4 writes them for gbtree."""
        return "weight_drop" in self._trees

    def objective_parameter(self, name: str) -> Any:
        """A parameter of the objective as it is stored; None if it has none of this name."""
        parts = [part for part in self._objective.values() if isinstance(part, Mapping)]
        return next((part[name] for part in parts if name in part), None)

    def has_parameter(self, name: str, value: Any) -> bool:
        """Whether the objective has a parameter of this value, as a name or in 32-bit floats."""
        return _is_stored_as(self.objective_parameter(name), value)

    @property
    def has_order(self) -> bool:
        """Whether each round has the trees of the outputs in turn, and no others."""
        groups, rounds = max(1, self.classes, self.targets), self.rounds
        if groups * self.parallel_trees * rounds != self.tree_count:  # or lists without an end
            return False
        of_round = [output for output in range(groups) for _ in range(self.parallel_trees)]
        ends = [i * len(of_round) for i in range(rounds + 1)]
        return (self._trees["tree_info"], self._trees["iteration_indptr"]) == (
            of_round * rounds,
            ends,
        )

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
        model = self.part(BOOSTER).get("model", {})
        listed = map(_categories, model.get("cats", {}).get("enc", []))
        return {i: categories for i, categories in enumerate(listed) if categories}

    def texts_without_trees(self) -> dict[str, str]:
        """All that predictions depend on besides the trees, by name.

        A slice of a model has the same, or no categories.
        """
        learner = self.part(("learner",))
        rest = {name: learner[name] for name in ("feature_names", "feature_types")}
        rest |= {"numbers": self._numbers, "objective": self._objective}
        rest |= {"booster": self.booster, "parallel_trees": self.parallel_trees}
        parts = {"model": rest}
        if self._trees["cats"]["enc"]:
            parts["categories"] = self._trees["cats"]
        return {name: json.dumps(part, sort_keys=True) for name, part in parts.items()}

    def check_form(self) -> None:
        """Refuse what has not the parts of a model of trees."""
        parts = [self.part(path) for path in (*_KNOWN_PARTS, *_OTHER_PARTS)]
        if not all(isinstance(part, dict) for part in parts):
            raise ValueError("a part of it is not a mapping")
        if not isinstance(self.feature_names, list):
            raise ValueError("its columns are not a list")
        json.dumps(self.content, ensure_ascii=False).encode()  # no half of a pair of surrogates

    def unknown_parts(self, parameters: Mapping[str, Any]) -> Iterator[str]:
        """Names of what a model of trees does not need, or holds as text, other than attributes.

        Parameters of the objective that are known may be texts.
        """
        for path, known in _KNOWN_PARTS.items():
            yield from (".".join((*path, name)) for name in set(self.part(path)) - known)
        version = self.content.get("version", [])
        if (
            not isinstance(version, list)
            or len(version) != 3
            or not all(type(number) is int and 0 <= number < 100 for number in version)
        ):
            yield "version"
        parallel = self._trees["gbtree_model_param"].get("num_parallel_tree", "")
        if type(parallel) is not str or not parallel.isdecimal() or parallel != str(int(parallel)):
            yield "learner.gradient_booster.model.gbtree_model_param.num_parallel_tree"
        if self.part(BOOSTER).get("name") != "gbtree":
            yield "learner.gradient_booster.name"
        types = self.part(("learner",)).get("feature_types", [])
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
                if key in seen or (not named and not is_number(stored)):
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
    actual, expected = _floats(stored), _floats(value)
    if actual is None or expected is None:
        return str(stored) == str(value)
    return actual.shape == expected.shape and np.allclose(actual, expected, rtol=2e-7, atol=0.0)


def _floats(value: Any) -> npt.NDArray[np.float64] | None:
    """A number or several numbers, also as text; None for anything else."""
    try:
        numbers = json.loads(value) if isinstance(value, str) else value
        return np.atleast_1d(np.asarray(numbers, dtype=np.float64))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


def is_number(text: Any) -> bool:
    """Whether a text is a number, infinities among them."""
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


def stored_categories(model: SavedModel) -> dict[int, list[bytes]]:
    """Names of the categories that a model stores, by index of the column."""
    return {
        i: [name if isinstance(name, bytes) else str(name).encode() for name in names]
        for i, names in model.categories.items()
    }


def names_of_categories(booster: Any) -> dict[Any, list[Any]]:
    """Categories that a model stores, by the names of the columns or else their indices; public."""
    columns = booster.feature_names
    names: dict[Any, list[Any]] = {}
    for i, stored in SavedModel.of(booster).categories.items():
        with suppress(UnicodeDecodeError):
            names[columns[i] if columns else i] = [
                name.decode() if isinstance(name, bytes) else name for name in stored
            ]
    return names
