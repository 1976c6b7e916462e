"""Saved models for clients: files, trees, changed models, and predictions as probabilities.

Errors name the file. Trees can be put into a model, and its margins scaled. A model may carry a
rising curve from margins to probabilities as an attribute. XGBoost keeps the attribute and ignores
it when it predicts; calibrated probabilities are read off the curve here.

Nothing here decides what a model has cost: that is read in ``model_json.py``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LedgerError, PrivacyParameterError
from . import model_json, ubjson
from .model_json import BOOSTER, NUMBERS, TREES, ModelJson, check_depth


def load_booster(model: Any) -> Any:
    """The xgboost.Booster of a model, saved or not."""
    from xgboost import Booster
    from xgboost.core import XGBoostError

    if isinstance(model, Booster):
        return model
    if not isinstance(model, (bytes, bytearray)):
        if not isinstance(model, (str, os.PathLike)):
            raise PrivacyParameterError(
                "A model must be an xgboost.Booster, the path of a saved one, or its bytes; got a "
                f"{type(model).__name__}."
            )
        model = ModelFile(model)
    name = repr(model.path) if isinstance(model, ModelFile) else "`model`"
    try:
        check_form(model)
        return Booster(model_file=bytearray(model))
    except (XGBoostError, ValueError, TypeError, KeyError):
        raise LedgerError(
            f"{name} is not a model that XGBoost can read: it is damaged, incomplete, or another "
            "kind of file. Models are saved as .json or .ubj."
        ) from None


def check_form(model: bytes | bytearray) -> None:
    """Raise ValueError for what would end the process while XGBoost reads it.

    It follows JSON to any depth, and reads UBJSON beyond the end of what was cut off.
    """
    if is_json(model):
        check_depth(model)
    else:
        ubjson.check(bytes(model))


class ModelFile(bytearray):
    """The content of a model file, read once, with its path for errors."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(file_bytes(path))
        self.path = os.fspath(path)


def file_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a model file."""
    name = repr(os.fspath(path))
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise PrivacyParameterError(f"There is no model file {name}. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a path"
        raise PrivacyParameterError(
            f"{name} cannot be read: {reason}. Give the path of a saved model that you may read."
        ) from None


def is_json(model: bytes | bytearray) -> bool:
    """Whether a saved model is JSON; otherwise it should be UBJSON."""
    return model[1:2] == b'"' or model[1:2].isspace()


Floats = npt.NDArray[np.float64]

LEAF = -1
"""Child of a node that has none."""


@dataclass(frozen=True)
class StoredTree:
    """One tree; each sequence has an entry for each node, and node 0 is the root."""

    left: Sequence[int]  # left child; -1 at a leaf
    right: Sequence[int]  # right child; -1 at a leaf
    features: Sequence[int]  # column of a split
    # threshold of a split, below which values go left; at a leaf its value
    conditions: Sequence[float]
    default_left: Sequence[int]  # whether missing values go left
    covers: Sequence[float]  # sum of Hessians
    # the categories that go right, of each split by category
    right_categories: Mapping[int, list[int]]
    gains: Sequence[float] = ()  # of splits; 0 at a leaf
    leaf_size: int = 1  # length of the value of a leaf; 0 or 1 if it is a number

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StoredTree:
        """A tree from its JSON."""
        names = ("categories_nodes", "categories_segments", "categories_sizes")
        segments = zip(*(stored[name] for name in names), strict=True)
        categories = stored["categories"]
        return cls(
            stored["left_children"],
            stored["right_children"],
            stored["split_indices"],
            stored["split_conditions"],
            stored["default_left"],
            stored.get("sum_hessian", ()),
            {node: categories[begin : begin + size] for node, begin, size in segments},
            stored.get("loss_changes", ()),
            int(stored["tree_param"]["size_leaf_vector"]),
        )

    @property
    def leaves(self) -> list[int]:
        """The nodes without children."""
        return [node for node, child in enumerate(self.left) if child == LEAF]

    @property
    def splits(self) -> list[int]:
        """The nodes with children."""
        return [node for node, child in enumerate(self.left) if child != LEAF]

    @property
    def leaf_values(self) -> list[float]:
        """The values of the leaves."""
        return [self.conditions[node] for node in self.leaves]

    def find_leaf(self, row: Sequence[float] | Mapping[int, float]) -> int:
        """The leaf of a row, given by its values of the columns on the way."""
        node = 0
        while self.left[node] != LEAF:
            value = row[self.features[node]]
            if math.isnan(value):
                goes_left = bool(self.default_left[node])
            elif node in self.right_categories:
                goes_left = int(value) not in self.right_categories[node]
            else:
                goes_left = bool(value < np.float32(self.conditions[node]))
            node = self.left[node] if goes_left else self.right[node]
        return int(node)


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
    def trees(self) -> list[StoredTree]:
        """The trees, in their order; none if the booster is not gbtree."""
        return (
            [StoredTree.from_json(tree) for tree in self._trees["trees"]]
            if self.booster == "gbtree"
            else []
        )

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

    def strings_without_trees(self) -> dict[str, str]:
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
        json.dumps(self.content, ensure_ascii=False).encode()  # refuse unpaired surrogates

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
    for i, stored in SavedModel.from_booster(booster).categories.items():
        with suppress(UnicodeDecodeError):
            names[columns[i] if columns else i] = [
                name.decode() if isinstance(name, bytes) else name for name in stored
            ]
    return names


_PARENT_OF_ROOT = 2**31 - 1


class ChangedModel(SavedModel):
    """A model whose trees are replaced or scaled; everything else stays as XGBoost wrote it."""

    def set_trees(self, trees: list[dict[str, Any]]) -> None:
        """Put in trees of one output, each a round of its own."""
        self._trees["trees"] = trees
        self._trees["tree_info"] = [0] * len(trees)
        self._trees["iteration_indptr"] = list(range(len(trees) + 1))
        self._trees["gbtree_model_param"]["num_trees"] = str(len(trees))

    def scale_margins(self, offset: float, slope: float) -> None:
        """Make the margins of a model of two classes offset + slope times what they were."""
        for tree in self._trees["trees"]:
            tree["base_weights"] = _scaled(tree["base_weights"], slope)
            leaf = np.array(tree["left_children"]) == LEAF
            ends = np.array(tree["split_conditions"], dtype=np.float32)
            ends[leaf] = np.array(_scaled(ends[leaf], slope), dtype=np.float32)
            tree["split_conditions"] = ends.astype(np.float64).tolist()
        score = offset + slope * self.intercept_margin
        if self.objective == "binary:logistic":
            score = 1.0 / (1.0 + math.exp(-score))
        listed = isinstance(json.loads(self._numbers["base_score"]), list)
        self._numbers["base_score"] = json.dumps([score] if listed else score)


def _scaled(values: Any, slope: float) -> list[float]:
    return (slope * np.array(values, dtype=np.float64)).astype(np.float32).tolist()


def complete_tree(
    number: int,
    width: int,
    splits: Sequence[tuple[int, float]],
    weights: Floats,
    covers: Floats,
    gains: Floats,
) -> dict[str, Any]:
    """The JSON of a tree whose splits of one depth are the same; its nodes level by level."""
    inner = (1 << len(splits)) - 1
    nodes, leaves = np.arange(2 * inner + 1), inner + 1
    depths = 1 << np.arange(len(splits))
    columns = np.repeat([column for column, _ in splits], depths).tolist()
    thresholds = np.repeat([threshold for _, threshold in splits], depths)
    none = [LEAF] * leaves
    return {
        "base_weights": _shortest(weights),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [1] * inner + [0] * leaves,
        "id": number,
        "left_children": (2 * nodes[:inner] + 1).tolist() + none,
        "loss_changes": _shortest(gains),
        "parents": [_PARENT_OF_ROOT, *((nodes[1:] - 1) // 2).tolist()],
        "right_children": (2 * nodes[:inner] + 2).tolist() + none,
        "split_conditions": _shortest(np.concatenate([thresholds, weights[inner:]])),
        "split_indices": columns + [0] * leaves,
        "split_type": [0] * len(nodes),
        "sum_hessian": _shortest(covers),
        "tree_param": _param(width, len(nodes)),
    }


def _param(width: int, nodes: int) -> dict[str, str]:
    return {
        "num_deleted": "0",
        "num_feature": str(width),
        "num_nodes": str(nodes),
        "size_leaf_vector": "1",
    }


def _shortest(values: Floats) -> list[float]:
    """The shortest decimals that parse to the same 32-bit floats."""
    return [float(str(v)) for v in values.astype(np.float32)]


CURVE = "dp_calibration"
"""Attribute of the model that holds it."""
CLASSES = "dp_classes"
"""Attribute of the model with the names of its classes, in the order of their codes."""
_MOST = 4096


@dataclass(frozen=True)
class MarginCurve:
    """Probabilities at some margins; between them a straight line, beyond them the nearest."""

    margins: tuple[float, ...]  # ascending, finite
    probabilities: tuple[float, ...]  # as many, in (0, 1), not falling
    rounds: int  # of the model that it is for

    def __post_init__(self) -> None:
        sound = 1 <= len(self.margins) == len(self.probabilities) <= _MOST
        sound = sound and all(math.isfinite(m) for m in self.margins)
        sound = sound and all(a < b for a, b in pairwise(self.margins))
        sound = sound and all(0.0 < p < 1.0 for p in self.probabilities)
        sound = sound and all(a <= b for a, b in pairwise(self.probabilities))
        if not sound or type(self.rounds) is not int or self.rounds < 0:
            raise ValueError("a curve has ascending margins, and probabilities that do not fall")

    def __call__(self, margins: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability at each margin."""
        return np.asarray(np.interp(np.asarray(margins), self.margins, self.probabilities))

    def to_json(self) -> str:
        """The text of the attribute."""
        return json.dumps({"form": 1, **vars(self)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> MarginCurve:
        """The inverse of :meth:`to_json`."""
        data = model_json.loads(text)
        names = {"form", "margins", "probabilities", "rounds"}
        if not isinstance(data, Mapping) or set(data) != names or data["form"] != 1:
            raise ValueError("a curve of another form")
        try:
            margins, probabilities = map(float, data["margins"]), map(float, data["probabilities"])
            return cls(tuple(margins), tuple(probabilities), data["rounds"])
        except TypeError:
            raise ValueError("a curve is made of numbers") from None

    @classmethod
    def from_booster(cls, booster: Any) -> MarginCurve | None:
        """The curve that a model carries; None without."""
        text = booster.attr(CURVE)
        if text is None:
            return None
        try:
            curve = cls.from_json(text)
        except ValueError:
            raise LedgerError(
                f"The attribute {CURVE!r} of the model is damaged. Calibrate the model again, or "
                f"drop the curve: booster.set_attr({CURVE}=None)."
            ) from None
        if curve.rounds != booster.num_boosted_rounds():
            raise LedgerError(
                f"The probabilities of this model were calibrated after {curve.rounds} rounds, "
                f"and the model has {booster.num_boosted_rounds()} now. Calibrate it again, or "
                f"drop the curve: booster.set_attr({CURVE}=None)."
            )
        return curve


def class_names(text: str, count: int) -> list[Any]:
    """The names of a number of classes, from the attribute of a model."""
    names = json.loads(text)
    kinds = {type(name) for name in names} if isinstance(names, list) else set()
    if not (kinds == {str} or (kinds and kinds <= {bool, int, float})):
        raise ValueError("names of classes are all texts or all numbers")
    if not count == len(names) == len(set(names)):
        raise ValueError("each class has a name of its own")
    return list(names)


def clip_to_bounds(bounds: Sequence[Any], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Predictions of a regression, moved into the declared range of the target.

    Privacy: free, the range is public.
    """
    if isinstance(bounds[0], (tuple, list)):
        return np.stack(
            [clip_to_bounds(b, v) for b, v in zip(bounds, values.T, strict=True)], axis=1
        )
    bounds = float(bounds[0]), float(bounds[1])
    low, high = (np.float32(b) for b in bounds)
    if float(low) < bounds[0]:
        low = np.nextafter(low, np.float32(np.inf))
    if float(high) > bounds[1]:
        high = np.nextafter(high, np.float32(-np.inf))
    return np.clip(values, low, max(low, high))


def read_objective(booster: Any) -> str:
    """XGBoost's name of the loss that a model was trained with."""
    return SavedModel.from_config(booster).objective


def read_quantile_levels(booster: Any) -> list[float] | None:
    """Levels of the quantiles that a model predicts, in their order; None for other models."""
    text = SavedModel.from_config(booster).objective_parameter("quantile_alpha")
    return None if text is None else [float(v) for v in np.atleast_1d(json.loads(text))]


def probabilities(booster: Any, matrix: Any) -> npt.NDArray[Any]:
    """Predicted probabilities, or values of a regression.

    Privacy: free post-processing of the model.

    A model that carries a :class:`MarginCurve` has the probabilities of that.
    """
    objective, curve = read_objective(booster), MarginCurve.from_booster(booster)
    if curve is not None:
        return curve(booster.predict(matrix, output_margin=True))
    if objective not in ("binary:logitraw", "multi:softmax"):
        return np.asarray(booster.predict(matrix))
    margin = np.asarray(booster.predict(matrix, output_margin=True), dtype=np.float64)
    if objective == "binary:logitraw":
        # Without overflow: both exponents are at most 0.
        return np.asarray(np.exp(np.minimum(margin, 0.0)) / (1.0 + np.exp(-np.abs(margin))))
    odds = np.exp(margin - margin.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
