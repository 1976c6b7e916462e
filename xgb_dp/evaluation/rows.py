"""The rows of an evaluation: predictions, labels, groups and persons, each row read alone.

Whether anything here raises an error depends on public inputs or on one row alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from ..data.arrays import as_cells, as_numbers, collected, encode, is_table
from ..data.cells import Names, read_data
from ..data.frames import encode_labels, has_column, list_columns, without_column
from ..data.ids import SplitPart, are_disjoint
from ..data.matrices import MATRICES, private_matrix
from ..data.row_checks import check_base_margin, check_intervals, check_labels
from ..domain.domain import stored_classes, stored_domain
from ..engine import native
from ..engine.saved_model import (
    MarginCurve,
    SavedModel,
    names_of_categories,
    probabilities,
    read_objective,
    read_quantile_levels,
    stored_categories,
)
from ..errors import LedgerError, PrivacyParameterError, PrivacyRefusal, RowDomainError
from ..noisy_sums import Floats, Ints
from ..parameters.parse import listed, mapped
from ..record.ledger import read_ledger, tree_names
from ..record.ledger_model import DISCOVERY, Ledger, TrainingRecord
from ..record.pipelines import steps_of, taken_apart, transformed
from ..record.privacy_report import as_booster
from ..request.names import read_one
from ..request.objectives import OBJECTIVES
from ..request.schema import check_source, dictionaries_of


@dataclass(frozen=True, eq=False)
class Judged:
    """A model whose predictions are judged; public."""

    booster: Any
    model: Any  # what the caller gave, or its last step
    kind: str  # "binary", "multiclass" or "regression"
    classes: int  # number of classes; 0 for regression
    public: Mapping[str, Any]  # what its last training took as public; empty without a ledger
    # The part that each of its trainings has read, None where that is not known, or where it was
    # calibrated by an evaluation, of other rows; empty without a ledger.
    parts: tuple[SplitPart | None, ...]
    private: bool  # whether it has the ledger of a private model
    record: Ledger | None = None  # of its trainings
    curve: MarginCurve | None = None  # by which its probabilities are calibrated
    objective: str = ""
    levels: tuple[float, ...] = ()  # of the quantiles that it predicts
    pipeline: Any = None  # that it is the last step of; None without

    @property
    def trees(self) -> tuple[str, ...] | None:
        """Names of its trees; None where it has none."""
        with suppress(LedgerError):
            return tuple(tree_names(self.booster))
        return None

    def is_apart(self, part: SplitPart | None, unit: str) -> bool:
        """Whether each of its trainings has read the other part of the same division."""
        return bool(self.parts) and all(are_disjoint(one, part, unit) for one in self.parts)

    @property
    def names(self) -> Any:
        """Of its classes, if it is an estimator or file; None where labels are codes."""
        if isinstance(self.model, (str, os.PathLike)):
            return stored_classes(self.booster)
        return getattr(self.model, "classes_", None)

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
        model = SavedModel.from_booster(self.booster)
        if model.booster != "gbtree":
            return -math.inf, math.inf
        low = high = model.intercept_margin
        for tree in model.trees:
            low, high = low + min(tree.leaf_values), high + max(tree.leaf_values)
        return low, high


@dataclass(frozen=True, eq=False)
class Rows:
    """What is counted of each row; as private as the rows."""

    predictions: tuple[Floats, ...]  # of each model margins, probabilities or values
    labels: Floats  # codes of classes, or values, (rows,); of times both ends, (rows, 2)
    groups: Ints | None


def judged(model: Any) -> Judged:
    """The model, checked."""
    booster = as_booster(model)
    objective = read_objective(booster)
    if objective not in OBJECTIVES:
        raise PrivacyParameterError(
            f"A model of the objective {objective!r} cannot be evaluated. Evaluate one of the "
            f"objectives {', '.join(map(repr, OBJECTIVES))}."
        )
    kind = OBJECTIVES[objective].kind
    config = SavedModel.from_config(booster)
    if config.targets > 1 and objective != "reg:quantileerror":
        raise PrivacyParameterError(
            "A model of several targets cannot be evaluated. Train and evaluate one model for "
            "each target."
        )
    classes = {"binary": 2, "regression": 0}.get(kind, max(2, config.classes))
    record: Ledger | None = None
    with suppress(LedgerError):
        record = read_ledger(booster)
    public: Mapping[str, Any] = record.trainings[-1].public if record else {}
    private = record is not None and record.is_private
    parts = tuple(map(_training_part, record.trainings)) if record else ()
    curve = MarginCurve.from_booster(booster) if kind == "binary" else None
    levels = tuple(read_quantile_levels(booster) or ())
    known = (public, parts, private, record)
    return Judged(booster, taken_apart(model)[1], kind, classes, *known, curve, objective, levels,
                  model if steps_of(model) else None)  # fmt: skip


def _training_part(training: TrainingRecord) -> SplitPart | None:
    """The part that a training has read, whatever a look at the columns before it has read.

    None where that is not known, or where the model has noisy sums of an evaluation besides.
    """
    if any(e.get("method") != DISCOVERY for e in training.evaluations):
        return None
    try:
        return SplitPart.from_json(training.public.get("part"))
    except ValueError:
        return None


def read_rows(models: tuple[Judged, ...], data: Any, groups: Groups | None) -> Rows:
    """Predictions, labels and groups of the rows."""
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
        _check_dictionary(model, matrix)
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
    codes = None if groups is None else group_codes(groups, matrix, table)
    predictions = tuple(_predictions(model, matrix) for model in models)
    return Rows(predictions, values.astype(np.float64), codes)


def _matrix(model: Judged, data: Any) -> tuple[Any, Any, Any]:
    """A plain DMatrix, the labels, and the table of features where there is one."""
    if model.pipeline is not None and type(data) in MATRICES:
        raise PrivacyParameterError(
            "`data` must be a pair (X, y) of the table that the pipeline takes; an xgboost.DMatrix "
            "is for a model alone."
        )
    if type(data) in MATRICES:
        check_source(data, "`data`")
        native.check_rows(data)
    if model.intervals:
        if type(data) not in MATRICES:
            raise PrivacyParameterError(
                "`data` must be an xgboost.DMatrix for survival:aft. Give it a "
                "`label_lower_bound` and a `label_upper_bound` for each row; a pair (X, y) has "
                "no place for them."
            )
        ends = [data.get_float_info(f"label_{end}_bound") for end in ("lower", "upper")]
        if any(len(end) != data.num_row() for end in ends):
            ends = [np.empty(0)] * 2
        return data, np.stack(ends, axis=1), None
    if type(data) in MATRICES:
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
    named = table  # whose columns groups name
    if model.pipeline is not None:
        table = transformed(model.pipeline, table)
    estimator = model.model
    column = getattr(estimator, "_id_column", None)
    if column is not None and has_column(table, column):
        table, _ = without_column(table, column)
    domain = stored_domain(model.booster)
    if domain is not None and is_table(table):
        table = domain.applied(table)
        named = table if model.pipeline is None else named
    read = getattr(estimator, "get_xgb_params", None)
    declared = read_one(read(), "dp_categories") if read is not None else None
    categories = declared or names_of_categories(model.booster)
    missing = getattr(estimator, "missing", math.nan)
    matrix = private_matrix(table, categories=categories, missing=missing, enable_categorical=True)
    if y is None:
        raise PrivacyParameterError("`data` has no labels. Give a pair (X, y).")
    names = None if model.kind == "regression" else model.names
    return matrix, as_numbers(y, "label") if names is None else encode_labels(y, names), named


def _check_dictionary(model: Judged, matrix: Any) -> None:
    """Categories of a matrix are those of the model, by name.

    XGBoost takes a name that it does not know for the next one in the alphabet, and where the model
    stores no names the codes of a data frame's own dictionary, which one row may change for all.
    """
    dictionaries = dictionaries_of(matrix)
    if not dictionaries:
        return
    stored = stored_categories(SavedModel.from_booster(model.booster))
    for i, names in dictionaries.items():
        if i not in stored:
            raise PrivacyParameterError(
                f"Column {(matrix.feature_names or range(i + 1))[i]!r} of `data` has names of "
                "categories, and the model stores none, so nobody knows which name has which "
                "code. Give the codes that the model was trained on, as numbers: "
                "xgboost.DMatrix(codes, feature_types=[..., 'c'], enable_categorical=True)."
            )
        if not set(names) <= set(stored[i]):
            raise RowDomainError(
                "A row has a category that the model does not know. Drop or replace such "
                "categories row by row."
            )


def _predictions(model: Judged, matrix: Any) -> Floats:
    if matrix.num_row() == 0:
        columns = model.classes if model.kind == "multiclass" else len(model.levels)
        return np.zeros((0, columns) if columns > 1 else 0)
    if model.kind != "binary":
        predictions = probabilities(model.booster, matrix)
    else:
        predictions = model.booster.predict(matrix, output_margin=True)
        if model.curve is not None:
            predictions = logit(model.curve(predictions))
    return np.asarray(predictions, dtype=np.float64)


_MOST_GROUPS = 64


@dataclass(frozen=True, eq=False)
class Groups:
    """A declared division of the rows; public."""

    column: Any  # name or index
    levels: tuple[Any, ...]  # other values of a row are in a group of their own, the last one

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return (*(str(level) for level in self.levels), "other")

    @property
    def table(self) -> Names:
        """The levels by value."""
        return Names(self.levels, "`by` must declare different values: it", missing=True)


def read_groups(by: Any, model: Judged) -> Groups | None:
    """The declared groups. No row is looked at."""
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
    if not values or len(values) > _MOST_GROUPS:
        raise PrivacyParameterError(
            f"`by` must declare 1 to {_MOST_GROUPS} different values of its column, from knowledge "
            "of the domain and not from the rows: by={'sex': ['female', 'male']}. Rows with "
            "another value are in a group of their own, 'other'."
        )
    groups = Groups(column, tuple(values))
    _ = groups.table  # refuses what is not a value, and what is one twice
    return groups


def _declared_levels(column: Any, model: Judged) -> list[Any] | None:
    """The categories that an estimator or the training of a model has declared for a column."""
    read = getattr(model.model, "get_xgb_params", None)
    declared = read_one(read(), "dp_categories") if read is not None else None
    levels = (mapped(declared) or {}).get(column)
    if levels is None:
        levels = dict(model.public.get("categories", {})).get(str(column))
    if isinstance(levels, (int, np.integer)) and not isinstance(levels, bool):
        return list(range(int(levels)))
    return listed(levels)


def group_codes(groups: Groups, matrix: Any, table: Any) -> Ints:
    """The group of each row; the last one for values that were not declared."""
    of = _codes_of_matrix if table is None else _codes_of_column
    codes = of(groups, matrix if table is None else table)
    return np.where(codes < 0, len(groups.levels), codes)


def _no_column(column: Any) -> PrivacyParameterError:
    return PrivacyParameterError(
        f"`by` names {column!r}, which is not a column of the data. Check the name."
    )


def _codes_of_column(groups: Groups, table: Any) -> Ints:
    """The codes of a column of a table as it was handed in."""
    column = groups.column
    table = collected(table)
    if hasattr(table, "columns") or hasattr(table, "column_names"):
        names = list_columns(table)
        if column not in names and isinstance(column, (int, np.integer)) and column < len(names):
            column = names[int(column)]
        if column not in names:
            raise _no_column(column)
        return read_data(encode, table[column], groups.table.codes, "feature")
    values = as_cells(table, "feature") if not hasattr(table, "tocsc") else None
    known = isinstance(column, (int, np.integer)) and column >= 0
    if not known or (values is not None and (values.ndim != 2 or column >= values.shape[1])):
        raise _no_column(column)
    if values is None:
        values = table.tocsc()[:, [int(column)]].toarray()
        column = 0
    return groups.table.codes(values[:, int(column)])


def _codes_of_matrix(groups: Groups, matrix: Any) -> Ints:
    """The codes of a column of a DMatrix; of categories by name, where it has names."""
    names = list(matrix.feature_names or [])
    column = groups.column
    if column in names:
        column = names.index(column)
    if not isinstance(column, (int, np.integer)) or not 0 <= column < matrix.num_col():
        raise _no_column(groups.column)
    data = matrix.get_data()
    values = np.full(matrix.num_row(), np.nan)
    row = np.repeat(np.arange(matrix.num_row()), np.diff(data.indptr))
    inside = data.indices == column
    values[row[inside]] = data.data[inside]
    listed_names = None
    if (matrix.feature_types or [])[column : column + 1] == ["c"]:
        (_, listed_names) = matrix.get_categories(export_to_arrow=True).to_arrow()[column]
    if listed_names is None:
        return groups.table.codes(values)
    # What a code stands for may follow from all rows together; what a name says does not.
    known = groups.table.codes(np.array([*listed_names.to_pylist(), None], dtype=object))
    codes = np.where(np.isnan(values), -1, values).astype(np.int64)
    return np.asarray(known[np.where(codes < len(known) - 1, codes, -1)])
