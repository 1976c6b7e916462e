"""Saved models: read files and trees, change models, and predict probabilities.

Error messages name the file. The trees of a model can be replaced and its margins scaled.

Nothing here determines the privacy cost of a model; see ``model_json.py``.
"""

from __future__ import annotations

import ctypes
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
from . import ubjson
from .model_json import BOOSTER, NUMBERS, TREES, ModelJson, check_depth


def load_booster(model: Any) -> Any:
    """Return the xgboost.Booster of a model in memory, a file or bytes."""
    from xgboost import Booster
    from xgboost.core import XGBoostError

    if isinstance(model, Booster):
        return model
    if not isinstance(model, (bytes, bytearray)):
        if not isinstance(model, (str, os.PathLike)):
            raise PrivacyParameterError(
                "A model must be an xgboost.Booster, the path of a saved model, or its bytes; got "
                f"a {type(model).__name__}."
            )
        model = ModelFile(model)
    name = repr(model.path) if isinstance(model, ModelFile) else "`model`"
    try:
        check_form(model)
        return Booster(model_file=bytearray(model))
    except (XGBoostError, ValueError, TypeError, KeyError):
        raise LedgerError(
            f"{name} is not a model that XGBoost can read: it is damaged, incomplete, or another "
            "kind of file. Pass a model saved as .json or .ubj."
        ) from None


def check_form(model: bytes | bytearray) -> None:
    """Raise ValueError for files that would crash XGBoost's parsers.

    XGBoost parses JSON to any depth, and reads past the end of truncated UBJSON.
    """
    if is_json(model):
        check_depth(model)
    else:
        ubjson.check(bytes(model))


class ModelFile(bytearray):
    """The content of a model file, read once, with its path for error messages."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(read_model_bytes(path))
        self.path = os.fspath(path)


def read_model_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a model file."""
    name = repr(os.fspath(path))
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise PrivacyParameterError(f"There is no model file {name}. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a valid path"
        raise PrivacyParameterError(
            f"{name} cannot be read: {reason}. Pass the path of a readable model file."
        ) from None


def is_json(model: bytes | bytearray) -> bool:
    """Return whether a saved model is in JSON; otherwise it should be in UBJSON."""
    return model[1:2] == b'"' or model[1:2].isspace()


Floats = npt.NDArray[np.float64]

LEAF = -1
"""Child index of a leaf."""


@dataclass(frozen=True)
class StoredTree:
    """One tree; each sequence has one entry per node, and node 0 is the root."""

    left: Sequence[int]  # left child; -1 at a leaf
    right: Sequence[int]  # right child; -1 at a leaf
    features: Sequence[int]  # column of a split
    # at a split: threshold, below which values go left; at a leaf: its value
    conditions: Sequence[float]
    default_left: Sequence[int]  # whether missing values go left
    covers: Sequence[float]  # sum of hessians
    # for each categorical split, the categories that go right
    right_categories: Mapping[int, list[int]]
    gains: Sequence[float] = ()  # of splits; 0 at a leaf
    leaf_size: int = 1  # length of the value of a leaf; 0 or 1 if it is a scalar

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StoredTree:
        """Read a tree from its JSON."""
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
        """Indices of the leaves."""
        return [node for node, child in enumerate(self.left) if child == LEAF]

    @property
    def splits(self) -> list[int]:
        """Indices of the inner nodes."""
        return [node for node, child in enumerate(self.left) if child != LEAF]

    @property
    def leaf_values(self) -> list[float]:
        """Values of the leaves."""
        return [self.conditions[node] for node in self.leaves]

    def find_leaf(self, row: Sequence[float] | Mapping[int, float]) -> int:
        """Return the leaf of a row; `row` needs values only for the columns on its path."""
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
"""Known parts of a tree model, by their path."""
_OTHER_PARTS = (("learner", "attributes"), ("learner", "objective"))
_TYPES = ("c", "float", "i", "int", "q")
"""Column types of XGBoost."""
_LOGARITHMS = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:aft")


class SavedModel(ModelJson):
    """A model or a configuration, with accessors for clients."""

    @property
    def trees(self) -> list[StoredTree]:
        """The trees in order; empty if the booster is not gbtree."""
        if self.booster != "gbtree":
            return []
        return [StoredTree.from_json(tree) for tree in self._trees["trees"]]

    @property
    def has_dropout(self) -> bool:
        """Whether trees have dropout weights, which XGBoost 3.4 stores for gbtree."""
        return "weight_drop" in self._trees

    def objective_parameter(self, name: str) -> Any:
        """Return a parameter of the objective as stored, or None if there is no such parameter."""
        parts = [part for part in self._objective.values() if isinstance(part, Mapping)]
        return next((part[name] for part in parts if name in part), None)

    def has_parameter(self, name: str, value: Any) -> bool:
        """Return whether the objective stores this value, compared as a string or 32-bit floats."""
        return _is_stored_as(self.objective_parameter(name), value)

    @property
    def has_order(self) -> bool:
        """Whether each round has exactly the trees of all outputs, in order."""
        groups, rounds = max(1, self.classes, self.targets), self.rounds
        if groups * self.parallel_trees * rounds != self.tree_count:  # avoids building huge lists
            return False
        of_round = [output for output in range(groups) for _ in range(self.parallel_trees)]
        ends = [i * len(of_round) for i in range(rounds + 1)]
        order = self._trees["tree_info"], self._trees["iteration_indptr"]
        return order == (of_round * rounds, ends)

    @property
    def intercept_margin(self) -> float:
        """The initial margin of the predictions of a model with one output."""
        start, objective = self.base_score, self.objective
        if objective in _LOGARITHMS:
            return math.log(max(start, 1e-38))
        if objective in ("binary:logistic", "reg:logistic"):
            start = min(max(start, 1e-7), 1.0 - 1e-7)
            start = math.log(start) - math.log1p(-start)
        return start

    def strings_without_trees(self) -> dict[str, str]:
        """Return everything except the trees that affects predictions, as strings by name.

        The result for a slice of a model is the same, or lacks the categories.
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
        """Raise an error if the content does not have the structure of a tree model."""
        parts = [self.part(path) for path in (*_KNOWN_PARTS, *_OTHER_PARTS)]
        if not all(isinstance(part, dict) for part in parts):
            raise ValueError("a part of the model is not a mapping")
        if not isinstance(self.feature_names, list):
            raise ValueError("its feature names are not a list")
        json.dumps(self.content, ensure_ascii=False).encode()  # raises for unpaired surrogates

    def unknown_parts(self, parameters: Mapping[str, Any]) -> Iterator[str]:
        """Yield names of unexpected parts of a tree model, other than its attributes.

        Text is expected only in known parameters of the objective.
        """
        for path, known in _KNOWN_PARTS.items():
            yield from (".".join((*path, name)) for name in set(self.part(path)) - known)
        version = self.content.get("version", [])
        three = isinstance(version, list) and len(version) == 3
        if not three or not all(type(number) is int and 0 <= number < 100 for number in version):
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
        """Yield names of numbers that contradict the trees or columns."""
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
    """Return whether stored content equals `value`; numbers to the precision of 32-bit floats."""
    if stored is None:
        return False
    actual, expected = _floats(stored), _floats(value)
    if actual is None or expected is None:
        return str(stored) == str(value)
    return actual.shape == expected.shape and np.allclose(actual, expected, rtol=2e-7, atol=0.0)


def _floats(value: Any) -> npt.NDArray[np.float64] | None:
    """Convert a number, several numbers, or JSON of these to an array; None for anything else."""
    try:
        numbers = json.loads(value) if isinstance(value, str) else value
        return np.atleast_1d(np.asarray(numbers, dtype=np.float64))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


def is_number(text: Any) -> bool:
    """Return whether a value can be converted to a float, including infinities."""
    try:
        float(text)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def as_bytes(categories: Mapping[int, Sequence[Any]]) -> dict[int, list[bytes]]:
    """Return stored categories as bytes, by column index."""
    return {
        i: [name if isinstance(name, bytes) else str(name).encode() for name in names]
        for i, names in categories.items()
    }


def category_names(owner: Any) -> dict[int, tuple[Any, ...]]:
    """Return the categories in a Booster or DMatrix by column index: names as bytes, or numbers."""
    from xgboost import DMatrix
    from xgboost.core import _LIB, XGBoostError, _check_call

    kind = "DMatrix" if isinstance(owner, DMatrix) else "Booster"
    if kind == "Booster":
        owner.num_features()  # completes a model that was loaded or copied
    export = getattr(_LIB, f"XG{kind}GetCategoriesExportToArrow")
    handle, text = ctypes.c_void_p(), ctypes.c_char_p()
    try:
        _check_call(export(owner.handle, None, ctypes.byref(handle), ctypes.byref(text)))
    except XGBoostError:
        if kind == "Booster" and ModelJson.from_config(owner).booster == "gblinear":
            return {}
        raise
    try:
        names: dict[int, tuple[Any, ...]] = {}
        for index, column in enumerate(json.loads(text.value or b"[]")):
            if column is None:
                continue
            if "offsets" not in column:
                names[index] = tuple(_array(column).tolist())
                continue
            ends, raw = _array(column["offsets"]).tolist(), _array(column["values"]).tobytes()
            names[index] = tuple(raw[a:b] for a, b in pairwise(ends))
        return names
    finally:
        if handle.value is not None:
            _check_call(_LIB.XGBCategoriesFree(handle))


def _array(interface: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Copy the array that an array interface describes.

    XGBoost's own helper takes 30 times as long, which every prediction would pay for each column.
    """
    kind, [size] = np.dtype(interface["typestr"]), interface["shape"]
    content = ctypes.string_at(interface["data"][0], size * kind.itemsize) if size else b""
    return np.frombuffer(content, kind)


def read_category_names(booster: Any) -> dict[Any, list[Any]]:
    """Return the stored categories by column name, or by index without names; public."""
    columns = booster.feature_names
    names: dict[Any, list[Any]] = {}
    for i, stored in category_names(booster).items():
        with suppress(UnicodeDecodeError):
            names[columns[i] if columns else i] = [
                name.decode() if isinstance(name, bytes) else name for name in stored
            ]
    return names


_PARENT_OF_ROOT = 2**31 - 1


class ChangedModel(SavedModel):
    """A model with replaced or scaled trees; everything else stays as XGBoost wrote it."""

    def set_trees(self, trees: list[dict[str, Any]]) -> None:
        """Set new trees for a model with one output and one tree per round."""
        self._trees["trees"] = trees
        self._trees["tree_info"] = [0] * len(trees)
        self._trees["iteration_indptr"] = list(range(len(trees) + 1))
        self._trees["gbtree_model_param"]["num_trees"] = str(len(trees))

    def scale_margins(self, offset: float, slope: float) -> None:
        """Replace each margin m of a binary model by offset + slope * m."""
        for tree in self._trees["trees"]:
            _change_leaves(tree, slope, 0.0)
        score = offset + slope * self.intercept_margin
        if self.objective == "binary:logistic":
            score = 1.0 / (1.0 + math.exp(-score))
        listed = isinstance(json.loads(self._numbers["base_score"]), list)
        self._numbers["base_score"] = json.dumps([score] if listed else score)

    def add_to_margins(self, offset: float) -> None:
        """Add a number to all margins: to the first tree, because rows can have own intercepts."""
        _change_leaves(self._trees["trees"][0], 1.0, offset)


def _change_leaves(tree: dict[str, Any], slope: float, offset: float) -> None:
    """Replace each leaf value v by offset + slope * v."""

    def changed(values: Any) -> Any:
        return (offset + slope * np.array(values, dtype=np.float64)).astype(np.float32)

    tree["base_weights"] = changed(tree["base_weights"]).tolist()
    leaf = np.array(tree["left_children"]) == LEAF
    ends = np.array(tree["split_conditions"], dtype=np.float32)
    ends[leaf] = changed(ends[leaf])
    tree["split_conditions"] = ends.astype(np.float64).tolist()


def complete_tree(
    number: int,
    width: int,
    splits: Sequence[tuple[int, float]],
    weights: Floats,
    covers: Floats,
    gains: Floats,
) -> dict[str, Any]:
    """Return the JSON of a complete tree, in level order, with one split for each depth."""
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
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(width),
            "num_nodes": str(len(nodes)),
            "size_leaf_vector": "1",
        },
    }


def _shortest(values: Floats) -> list[float]:
    """Return the shortest decimals that parse to the same 32-bit floats."""
    return [float(str(v)) for v in values.astype(np.float32)]


CLASSES = "dp_classes"
"""Model attribute that stores the class names, in the order of their codes."""


def class_names(text: str, count: int) -> list[Any]:
    """Read `count` class names from a model attribute."""
    names = json.loads(text)
    kinds = {type(name) for name in names} if isinstance(names, list) else set()
    if not (kinds == {str} or (kinds and kinds <= {bool, int, float})):
        raise ValueError("class names must be all strings or all numbers")
    if not count == len(names) == len(set(names)):
        raise ValueError("class names must be distinct, one per class")
    return list(names)


def clip_to_bounds(bounds: Sequence[Any], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Clip the predictions of a regression to the declared range of the target.

    Privacy: free, because the range is public.
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
    """Return the XGBoost name of a model's objective."""
    return SavedModel.from_config(booster).objective


def read_quantile_levels(booster: Any) -> list[float] | None:
    """Return the quantile levels that a model predicts, in order; None for other models."""
    text = SavedModel.from_config(booster).objective_parameter("quantile_alpha")
    return None if text is None else [float(v) for v in np.atleast_1d(json.loads(text))]


def probabilities(booster: Any, matrix: Any) -> npt.NDArray[Any]:
    """Predict probabilities, or the values of a regression.

    Privacy: free post-processing of the model.
    """
    objective = read_objective(booster)
    if objective not in ("binary:logitraw", "multi:softmax"):
        return np.asarray(booster.predict(matrix))
    margin = np.asarray(booster.predict(matrix, output_margin=True), dtype=np.float64)
    if objective == "binary:logitraw":
        # Avoids overflow: both exponents are at most 0.
        return np.asarray(np.exp(np.minimum(margin, 0.0)) / (1.0 + np.exp(-np.abs(margin))))
    odds = np.exp(margin - margin.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
