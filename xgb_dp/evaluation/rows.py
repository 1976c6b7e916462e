"""What is evaluated, read row by row: predictions, labels, groups and persons.

Whether anything here raises is decided by public inputs or by one row alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from ..data.cells import plain, read_data
from ..data.frames import columns_of
from ..data.ids import persons_of
from ..data.labels import codes_of, label_array
from ..data.matrices import private_matrix
from ..data.parts import Part
from ..data.rows import check_base_margin, check_intervals, check_labels
from ..engine import native
from ..engine.curve import Curve
from ..engine.models import intercept_margin
from ..engine.predictions import levels_of_model, objective_of, probabilities
from ..errors import LedgerError, PrivacyParameterError, PrivacyRefusal
from ..record.ledger import read_ledger
from ..record.report import as_booster
from ..request.features import check_source
from ..request.names import read_one
from ..request.objectives import OBJECTIVES
from ..request.parse import listed, mapped

__all__ = ["Groups", "Judged", "Persons", "Rows", "judged", "read_groups", "read_rows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_GROUPS = 64


@dataclass(frozen=True, eq=False)
class Judged:
    """A model whose predictions are judged; public.

    Attributes:
        booster: The xgboost.Booster.
        model: What the caller gave.
        kind: "binary", "multiclass" or "regression".
        classes: Number of classes; 0 for regression.
        public: What its last training took as public; empty without a ledger.
        parts: The part that each of its trainings has read, None where that is not known, or where
            it was calibrated by an evaluation, of other rows; empty without a ledger.
        private: Whether it has the ledger of a private model.
        curve: By which its probabilities are calibrated; None without.
        objective: XGBoost's name of its loss.
        levels: Of the quantiles that it predicts; empty for other models.
    """

    booster: Any
    model: Any
    kind: str
    classes: int
    public: Mapping[str, Any]
    parts: tuple[Part | None, ...]
    private: bool
    curve: Curve | None = None
    objective: str = ""
    levels: tuple[float, ...] = ()

    @property
    def intervals(self) -> bool:
        """Whether labels are the ends of times."""
        return bool(self.objective) and OBJECTIVES[self.objective].intervals

    @property
    def margins(self) -> tuple[float, float]:
        """Range in which the logit of a prediction lies whatever the row, from the model alone."""
        if self.curve is not None:
            low, high = logit(np.array(self.curve.probabilities)[[0, -1]]).tolist()
            return low, high
        model = json.loads(self.booster.save_raw("json"))["learner"]
        trees = model["gradient_booster"].get("model", {}).get("trees")
        if trees is None or model["gradient_booster"]["name"] != "gbtree":
            return -math.inf, math.inf
        low = high = intercept_margin(model, objective_of(self.booster))
        for tree in trees:
            ends = [i for i, left in enumerate(tree["left_children"]) if left == -1]
            leaves = [tree["split_conditions"][i] for i in ends]
            low, high = low + min(leaves), high + max(leaves)
        return low, high


@dataclass(frozen=True, eq=False)
class Groups:
    """A declared division of the rows; public.

    Attributes:
        column: Name or index of the column.
        levels: Its values; whatever else a row has is in a group of its own, the last one.
    """

    column: Any
    levels: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return (*(str(level) for level in self.levels), "other")


@dataclass(frozen=True, eq=False)
class Persons:
    """Weights by which the rows of a person count one at most.

    Attributes:
        weights: Whole numbers, one for each row.
        shift: A person counts 2**shift at most.
    """

    weights: Ints
    shift: int

    @classmethod
    def of(cls, ids: Any, rows: int, shift: int) -> Persons:
        """Weights of rows from the ids of their persons.

        Raises:
            PrivacyParameterError: No column of ids, or not one for each row.
            RowDomainError: A row has no id.
        """
        codes = np.asarray(persons_of(ids, rows).codes, dtype=np.int64)
        count = np.bincount(codes) if rows else np.zeros(0, dtype=np.int64)
        return cls((1 << shift) // np.maximum(count[codes], 1), shift)


@dataclass(frozen=True, eq=False)
class Rows:
    """What is counted of each row; as private as the rows.

    Attributes:
        predictions: For each model margins (rows,), probabilities (rows, classes) or values.
        labels: Codes of classes, or values, (rows,); of times both ends, (rows, 2).
        groups: Number of the group of each row; None without groups.
    """

    predictions: tuple[Floats, ...]
    labels: Floats
    groups: Ints | None


def judged(model: Any) -> Judged:
    """The model, checked.

    Args:
        model: xgboost.Booster, fitted estimator or path of a saved model.

    Raises:
        PrivacyParameterError: Not a model, or one whose predictions cannot be judged.
        LedgerError: The file is damaged.
    """
    booster = as_booster(model)
    objective = objective_of(booster)
    if objective not in OBJECTIVES:
        raise PrivacyParameterError(
            f"A model of the objective {objective!r} cannot be evaluated. Evaluate one of the "
            f"objectives {', '.join(map(repr, OBJECTIVES))}."
        )
    kind = OBJECTIVES[objective].kind
    config = json.loads(booster.save_config())["learner"]["learner_model_param"]
    if int(config.get("num_target", 1)) > 1 and objective != "reg:quantileerror":
        raise PrivacyParameterError(
            "A model of several targets cannot be evaluated. Train and evaluate one model for "
            "each target."
        )
    classes = {"binary": 2, "regression": 0}.get(kind, max(2, int(config["num_class"])))
    public: Mapping[str, Any] = {}
    private = False
    parts: tuple[Part | None, ...] = ()
    try:
        ledger = read_ledger(booster)
        public, private = ledger.trainings[-1].public, ledger.private
        parts = tuple(_part(training.public) for training in ledger.trainings)
    except LedgerError:
        pass
    curve = Curve.of(booster) if kind == "binary" else None
    levels = tuple(levels_of_model(booster) or ())
    return Judged(booster, model, kind, classes, public, parts, private, curve, objective, levels)


def _part(public: Mapping[str, Any]) -> Part | None:
    if public.get("evaluations"):  # whose noisy sums are in the model, too
        return None
    try:
        return Part.from_json(public.get("part"))
    except ValueError:
        return None


def read_groups(by: Any, model: Judged) -> Groups | None:
    """The declared groups. No row is looked at.

    Args:
        by: A column whose categories the model has declared, or ``{column: values}``.
        model: The model.

    Raises:
        PrivacyParameterError: The values are not declared, or too many.
    """
    if by is None:
        return None
    given = mapped(by)
    if given is None:
        if not isinstance(by, (str, int, np.integer)) or isinstance(by, bool):
            raise PrivacyParameterError(
                "`by` must be a column, or a mapping of one column to its values, e.g. "
                "by={'sex': ['female', 'male']}."
            )
        column, values = by, _declared_levels(by, model)
    elif len(given) == 1:
        ((column, values),) = given.items()
        values = listed(values)
    else:
        raise PrivacyParameterError("`by` names several columns. Give one column at a time.")
    try:
        distinct = values is not None and len(set(values)) == len(values)
    except TypeError:
        distinct = False
    if not values or not distinct or len(values) > _MOST_GROUPS:
        raise PrivacyParameterError(
            f"`by` must declare 1 to {_MOST_GROUPS} different values of its column, from knowledge "
            "of the domain and not from the rows: by={'sex': ['female', 'male']}. Rows with "
            "another value are in a group of their own, 'other'."
        )
    return Groups(column, tuple(values))


def _declared_levels(column: Any, model: Judged) -> list[Any] | None:
    """The categories that an estimator or the training of a model has declared for a column."""
    read = getattr(model.model, "get_xgb_params", None)
    found = read_one(read(), "dp_categories") if read is not None else None
    levels = (mapped(found) or {}).get(column)
    if levels is None:
        levels = dict(model.public.get("categories", {})).get(str(column))
    if isinstance(levels, (int, np.integer)) and not isinstance(levels, bool):
        return list(range(int(levels)))
    return listed(levels)


def read_rows(models: tuple[Judged, ...], data: Any, groups: Groups | None) -> Rows:
    """Predictions, labels and groups of the rows.

    Args:
        models: What is judged; all of one kind.
        data: An xgboost.DMatrix with labels, or (X, y).
        groups: Declared groups.

    Raises:
        PrivacyParameterError: Not such data, or of other columns than the model's.
        PrivacyRefusal: Rows have weights or margins of their own.
        RowDomainError: A row lies outside the declared domain.
    """
    first = models[0]
    matrix, labels, table = _matrix(first, data)
    if matrix.get_weight().size:
        raise PrivacyRefusal(
            "Rows with weights are refused in an evaluation, where every row counts one. Leave "
            "out the weights. Give `privacy_id` for people with several rows."
        )
    margins = matrix.get_base_margin()
    if margins.size and not all(m.public.get("exposure_bounds") for m in models):
        raise PrivacyRefusal(
            "Rows with a `base_margin` are refused in an evaluation: it judges what the trees and "
            "the intercept of the model say. Leave out the margins. Models that were trained with "
            "dp_exposure_bounds take the margins of their exposures."
        )
    for model in models:
        names = model.booster.feature_names
        if model.booster.num_features() != matrix.num_col() or names != matrix.feature_names:
            raise PrivacyParameterError(
                "The columns of `data` are not those of the model. Give the same columns, with "
                "the same names in the same order."
            )
    n = matrix.num_row()
    if margins.size:
        check_base_margin(margins, n, 1, declared=True)
    values = np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if first.intervals:
        check_intervals(values[:, 0], values[:, 1], n)
    elif values.ndim != 1 or len(values) != n:
        raise PrivacyParameterError("The data must have one label for each row.")
    else:
        check_labels(values, first.kind, first.classes)
    codes = None if groups is None else _group_codes(groups, matrix, table)
    predictions = tuple(_predictions(model, matrix) for model in models)
    return Rows(predictions, values.astype(np.float64), codes)


def _matrix(model: Judged, data: Any) -> tuple[Any, Any, Any]:
    """A plain DMatrix, the labels, and the table of features where there is one."""
    from xgboost import DMatrix

    if type(data) is DMatrix:
        check_source(data, "`data`")
        native.check_rows(data)
    if model.intervals:
        if type(data) is not DMatrix:
            raise PrivacyParameterError(
                "`data` must be an xgboost.DMatrix for survival:aft. Give it a "
                "`label_lower_bound` and a `label_upper_bound` for each row; a pair (X, y) has "
                "no place for them."
            )
        ends = [data.get_float_info(f"label_{end}_bound") for end in ("lower", "upper")]
        if any(len(end) != data.num_row() for end in ends):
            ends = [np.empty(0)] * 2
        return data, np.stack(ends, axis=1), None
    if type(data) is DMatrix:
        labels = data.get_label()
        if labels.size == 0 and data.num_row():
            raise PrivacyParameterError("`data` has no labels: make it with DMatrix(X, label=y).")
        return data, labels, None
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise PrivacyParameterError(
            "`data` must be an xgboost.DMatrix with labels, a pair (X, y), or a part of "
            "xgb_dp.split. A QuantileDMatrix does not contain the rows: build an xgboost.DMatrix."
        )
    table, y = data
    estimator = model.model
    read = getattr(estimator, "get_xgb_params", None)
    categories = read_one(read(), "dp_categories") if read is not None else None
    matrix = private_matrix(
        table,
        categories=categories,
        missing=getattr(estimator, "missing", math.nan),
        enable_categorical=True,
    )
    labels = label_array(y)
    if model.kind != "regression" and hasattr(estimator, "classes_"):
        labels = codes_of(labels, np.asarray(estimator.classes_))
    elif not isinstance(labels, np.ndarray) or labels.dtype.kind == "O":
        labels = plain(labels, "label")
    return matrix, labels, table


def _predictions(model: Judged, matrix: Any) -> Floats:
    if matrix.num_row() == 0:
        columns = model.classes if model.kind == "multiclass" else len(model.levels)
        return np.zeros((0, columns) if columns > 1 else 0)
    if model.kind == "binary":
        found = model.booster.predict(matrix, output_margin=True)
        if model.curve is not None:
            found = logit(model.curve(found))
    else:
        found = probabilities(model.booster, matrix)
    return np.asarray(found, dtype=np.float64)


def _group_codes(groups: Groups, matrix: Any, table: Any) -> Ints:
    """The group of each row; the last one for values that were not declared."""
    values = _column_of_matrix(groups, matrix) if table is None else _column(groups, table)
    code = {level: i for i, level in enumerate(groups.levels)}
    other = len(groups.levels)

    def of(value: Any) -> int:
        try:
            return code.get(value, other)
        except TypeError:  # a value that is no value of anything
            return other

    return np.array([of(value) for value in values.tolist()], dtype=np.int64)


def _no_column(column: Any) -> PrivacyParameterError:
    return PrivacyParameterError(
        f"`by` names {column!r}, which is not a column of the data. Check the name."
    )


def _column(groups: Groups, table: Any) -> np.ndarray:
    """A column of a table as it was handed in."""
    column = groups.column
    if hasattr(table, "collect"):
        table = read_data(table.collect)
    if hasattr(table, "columns") or hasattr(table, "column_names"):
        names = columns_of(table)
        if column not in names and isinstance(column, (int, np.integer)) and column < len(names):
            column = names[int(column)]
        if column not in names:
            raise _no_column(column)
        found = table.column(column) if hasattr(table, "column_names") else table[column]
        if hasattr(found, "astype"):
            found = found.astype(object)
        return plain(found, "feature")
    values = plain(table, "feature") if not hasattr(table, "tocsc") else None
    known = isinstance(column, (int, np.integer)) and column >= 0
    if not known or (values is not None and (values.ndim != 2 or column >= values.shape[1])):
        raise _no_column(column)
    if values is None:
        return np.asarray(table.tocsc()[:, int(column)].toarray()).ravel()
    return np.asarray(values[:, int(column)])


def _column_of_matrix(groups: Groups, matrix: Any) -> np.ndarray:
    """A column of a DMatrix; categories by name, or by code where the matrix has no names."""
    names = list(matrix.feature_names or [])
    column = groups.column
    if column in names:
        column = names.index(column)
    if not isinstance(column, (int, np.integer)) or not 0 <= column < matrix.num_col():
        raise _no_column(groups.column)
    data = matrix.get_data()
    found = np.full(matrix.num_row(), np.nan)
    row = np.repeat(np.arange(matrix.num_row()), np.diff(data.indptr))
    own = data.indices == column
    found[row[own]] = data.data[own]
    if (matrix.feature_types or [])[column : column + 1] != ["c"]:
        return found
    # What a code stands for may follow from all rows together; what a name says does not.
    (_, listed_names) = matrix.get_categories(export_to_arrow=True).to_arrow()[column]
    if listed_names is None:
        return found
    known = dict(enumerate(listed_names.to_pylist()))
    return np.array([known.get(code) for code in found.tolist()], dtype=object)
