"""Read the models and rows of an evaluation, and plan its noisy release.

For each row the prediction, label, group and person are read independently of all other rows.
Reading raises errors only because of public inputs or of one row alone, so an error reveals no more
about the data than rejecting that row does. The base class of all evaluations adds groups and
calibrates the noise to the target (epsilon, delta).
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..accounting import GaussianEvent, make_accountant
from ..accounting.curve import doubled, narrow
from ..accounting.gaussian import gaussian_mu
from ..data.arrays import as_cells, as_numbers, collect_table, encode, is_table
from ..data.cells import Names, read_data
from ..data.frames import encode_labels, has_column, list_columns, without_column
from ..data.ids import SplitPart, are_disjoint
from ..data.matrices import MATRICES, private_matrix
from ..data.row_checks import check_base_margin, check_columns, check_intervals, check_labels
from ..domain.domain import stored_classes, stored_domain
from ..engine import native
from ..engine.saved_model import (
    SavedModel,
    as_bytes,
    category_names,
    probabilities,
    read_category_names,
    read_objective,
    read_quantile_levels,
)
from ..errors import BudgetError, LedgerError, PrivacyParameterError, PrivacyRefusal, RowDomainError
from ..noisy_sums import MOST_SIGMA2, Block, Floats, Ints, Later, Layout, NoisySums
from ..parameters.parse import listed, mapped
from ..record.content import needs_margins
from ..record.ledger import read_ledger, tree_names
from ..record.ledger_model import DISCOVERY, Ledger, TrainingRecord
from ..record.pipelines import split_pipeline, steps_of, transformed
from ..record.privacy_report import as_booster
from ..request.names import read_one
from ..request.objectives import OBJECTIVES
from ..request.schema import check_source, dictionaries_of
from .report import EvaluationReport


@dataclass(frozen=True, eq=False)
class EvaluatedModel:
    """A model to evaluate; public."""

    booster: Any
    model: Any  # the argument of the caller, or the last step if it is a pipeline
    kind: str  # "binary", "multiclass" or "regression"
    classes: int  # number of classes; 0 for regression
    public: Mapping[str, Any]  # public inputs of the last training; empty without a ledger
    # The split part read by each training; None if it is unknown or if the model was calibrated by
    # an evaluation, which read other rows. Empty without a ledger.
    parts: tuple[SplitPart | None, ...]
    private: bool  # the model has the ledger of a private training
    record: Ledger | None = None  # the ledger
    objective: str = ""
    levels: tuple[float, ...] = ()  # levels of the predicted quantiles
    pipeline: Any = None  # the pipeline that ends in `model`, if any

    @property
    def trees(self) -> tuple[str, ...] | None:
        """Names of the trees; None if they have no names."""
        with suppress(LedgerError):
            return tuple(tree_names(self.booster))
        return None

    def is_apart(self, part: SplitPart | None, unit: str) -> bool:
        """Return whether every training read only the other part of the same split."""
        return bool(self.parts) and all(are_disjoint(one, part, unit) for one in self.parts)

    @property
    def names(self) -> Any:
        """Class names of an estimator or saved model; None if labels are codes."""
        if isinstance(self.model, (str, os.PathLike)):
            return stored_classes(self.booster)
        return getattr(self.model, "classes_", None)

    @property
    def intervals(self) -> bool:
        """Whether labels are intervals of survival times."""
        return bool(self.objective) and OBJECTIVES[self.objective].intervals

    @property
    def ranks_rates(self) -> bool:
        """Whether rows are sorted by predicted count per exposure, whose bounds are public."""
        return self.objective == "count:poisson" and bool(self.public.get("exposure_bounds"))

    @property
    def needs_margins(self) -> bool:
        """Whether predictions start from a base margin of each row."""
        return needs_margins(self.booster)

    @property
    def margins(self) -> tuple[float, float]:
        """Bounds on the logit of any prediction, computed from the model alone.

        Exposures, whose bounds are public, are not part of it; other base margins are unbounded.
        """
        model = SavedModel.from_booster(self.booster)
        unbounded = self.needs_margins and not self.public.get("exposure_bounds")
        if model.booster != "gbtree" or unbounded:
            return -math.inf, math.inf
        low = high = model.intercept_margin
        for tree in model.trees:
            low, high = low + min(tree.leaf_values), high + max(tree.leaf_values)
        return low, high


@dataclass(frozen=True, eq=False)
class Rows:
    """Predictions, labels and groups per row; private."""

    predictions: Any  # margins, probabilities or values of a model; of two models, a pair of them
    labels: Floats  # class codes or values, (rows,); bounds of survival times, (rows, 2)
    groups: Ints | None = None  # group codes
    exposures: Floats | None = None  # for a single model that ranks rates


def read_evaluated_model(model: Any) -> EvaluatedModel:
    """Read a model and check that it can be evaluated."""
    booster = as_booster(model)
    objective = read_objective(booster)
    if objective not in OBJECTIVES:
        raise PrivacyParameterError(
            f"Models with objective {objective!r} cannot be evaluated. Supported objectives: "
            f"{', '.join(map(repr, OBJECTIVES))}."
        )
    kind = OBJECTIVES[objective].kind
    config = SavedModel.from_config(booster)
    if config.targets > 1 and objective != "reg:quantileerror":
        raise PrivacyParameterError(
            "Models with several targets cannot be evaluated. Train and evaluate one model per "
            "target."
        )
    classes = {"binary": 2, "regression": 0}.get(kind, max(2, config.classes))
    record: Ledger | None = None
    with suppress(LedgerError):
        record = read_ledger(booster)
    public: Mapping[str, Any] = record.trainings[-1].public if record else {}
    private = record is not None and record.is_private
    parts = tuple(map(_training_part, record.trainings)) if record else ()
    levels = tuple(read_quantile_levels(booster) or ())
    return EvaluatedModel(
        booster=booster,
        model=split_pipeline(model)[1],
        kind=kind,
        classes=classes,
        public=public,
        parts=parts,
        private=private,
        record=record,
        objective=objective,
        levels=levels,
        pipeline=model if steps_of(model) else None,
    )


def _training_part(training: TrainingRecord) -> SplitPart | None:
    """Return the split part that a training read; a column discovery before it is ignored.

    Returns None if the part is unknown, or if the model also contains results of an evaluation.
    """
    if any(e.get("method") != DISCOVERY for e in training.evaluations):
        return None
    try:
        return SplitPart.from_json(training.public.get("part"))
    except ValueError:
        return None


def read_rows(
    models: tuple[EvaluatedModel, ...], data: Any, groups: Groups | None, base_margin: Any = None
) -> Rows:
    """Read the predictions, labels and groups of all rows."""
    first = models[0]
    if base_margin is not None and type(data) in MATRICES:
        raise PrivacyParameterError(
            "`base_margin` belongs to a pair (X, y). For an xgboost.DMatrix, set it when you "
            "create the matrix."
        )
    matrix, labels, table = _matrix(first, data, base_margin)
    if matrix.get_weight().size:
        raise PrivacyRefusal(
            "`data` has row weights, but evaluations count every row once. Remove the weights. If "
            "people have several rows, pass `privacy_id`."
        )
    n = matrix.num_row()
    margins = matrix.get_base_margin()
    needed = [m.needs_margins for m in models]
    if n and not margins.size and any(needed):
        raise RowDomainError(
            "A row has no `base_margin`, but the model was trained with base margins. Pass those "
            "of the rows as `base_margin`, for example the logs of their exposures."
        )
    if margins.size and not all(needed):
        raise PrivacyRefusal(
            "`data` has a `base_margin`, but the model was trained without base margins, so its "
            "intercept would be lost. Remove the base margins."
        )
    dictionaries = dictionaries_of(matrix)
    for model in models:
        check_columns(model.booster, matrix)
        if model.booster.num_features() != matrix.num_col():
            raise PrivacyParameterError(
                "The columns of `data` do not match the model in number. Pass the columns used in "
                "training."
            )
        _check_dictionary(model, dictionaries)
    if margins.size:
        width = first.classes if first.kind == "multiclass" else max(1, len(first.levels))
        check_base_margin(margins, n, width, declared=True)
    values = np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if first.intervals:
        check_intervals(values[:, 0], values[:, 1], n)
    elif values.ndim != 1 or len(values) != n:
        raise PrivacyParameterError("`data` must have exactly one label per row.")
    else:
        check_labels(values, first.kind, first.classes)
    codes = None if groups is None else group_codes(groups, matrix, table)
    values = values.astype(np.float64)
    if len(models) > 1:
        return Rows(tuple(_predictions(model, matrix) for model in models), values, codes)
    exposures = np.exp(margins.astype(np.float64)) if first.ranks_rates else None
    return Rows(_predictions(first, matrix), values, codes, exposures)


def _matrix(model: EvaluatedModel, data: Any, base_margin: Any) -> tuple[Any, Any, Any]:
    """Return a plain DMatrix, the labels, and the feature table if `data` has one."""
    if model.pipeline is not None and type(data) in MATRICES:
        raise PrivacyParameterError(
            "`data` must be a pair (X, y) for a pipeline, with the table X that the pipeline "
            "expects. An xgboost.DMatrix is accepted only for a model without pipeline."
        )
    if type(data) in MATRICES:
        check_source(data, "`data`")
        native.check_rows(data)
    if model.intervals:
        if type(data) not in MATRICES:
            raise PrivacyParameterError(
                "`data` must be an xgboost.DMatrix for survival:aft, with `label_lower_bound` and "
                "`label_upper_bound` set for each row. A pair (X, y) cannot represent interval "
                "labels."
            )
        ends = [data.get_float_info(f"label_{end}_bound") for end in ("lower", "upper")]
        if any(len(end) != data.num_row() for end in ends):
            ends = [np.empty(0)] * 2
        return data, np.stack(ends, axis=1), None
    if type(data) in MATRICES:
        labels = data.get_label()
        if labels.size == 0 and data.num_row():
            raise PrivacyParameterError(
                "`data` has no labels. Pass labels: xgboost.DMatrix(X, label=y)."
            )
        return data, labels, None
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise PrivacyParameterError(
            "`data` must be an xgboost.DMatrix with labels, a pair (X, y), or a part of "
            "xgb_dp.split. A QuantileDMatrix does not contain the original values: build an "
            "xgboost.DMatrix instead."
        )
    table, y = data
    named = table  # `by` names columns of the original table
    if model.pipeline is not None:
        table = transformed(model.pipeline, table)
    estimator = model.model
    column = getattr(estimator, "_id_column", None)
    if column is not None and has_column(table, column):
        table, _ = without_column(table, column)
    domain = stored_domain(model.booster)
    if domain is not None and is_table(table):
        table = domain.read_table(table)
        named = table if model.pipeline is None else named
    read = getattr(estimator, "get_xgb_params", None)
    declared = read_one(read(), "dp_categories") if read is not None else None
    categories = declared or read_category_names(model.booster)
    missing = getattr(estimator, "missing", math.nan)
    matrix = private_matrix(
        table,
        categories=categories,
        base_margin=base_margin,
        missing=missing,
        enable_categorical=True,
    )
    if y is None:
        raise PrivacyParameterError("`data` has no labels. Pass a pair (X, y).")
    names = None if model.kind == "regression" else model.names
    return matrix, as_numbers(y, "label") if names is None else encode_labels(y, names), named


def _check_dictionary(model: EvaluatedModel, dictionaries: Mapping[int, list[bytes]]) -> None:
    """Raise if a matrix has category names that the model does not store."""
    stored = as_bytes(category_names(model.booster))
    if any(not set(names) <= set(stored[i]) for i, names in dictionaries.items()):
        raise RowDomainError(
            "A row has a category that is unknown to the model. Drop or replace unknown categories "
            "row by row."
        )


def _predictions(model: EvaluatedModel, matrix: Any) -> Floats:
    if matrix.num_row() == 0:
        columns = model.classes if model.kind == "multiclass" else len(model.levels)
        return np.zeros((0, columns) if columns > 1 else 0)
    if model.kind != "binary":
        predictions = probabilities(model.booster, matrix)
    else:
        predictions = model.booster.predict(matrix, output_margin=True)
    return np.asarray(predictions, dtype=np.float64)


_MOST_GROUPS = 64


@dataclass(frozen=True, eq=False)
class Groups:
    """Declared groups of rows; public."""

    column: Any  # name or index
    levels: tuple[Any, ...]  # one group each; a last group takes all other values

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups, ending with "other"."""
        return (*(str(level) for level in self.levels), "other")

    @property
    def table(self) -> Names:
        """Mapping from declared values to group codes."""
        return Names(self.levels, "`by`", missing=True)


def read_groups(by: Any, model: EvaluatedModel) -> Groups | None:
    """Parse `by`, without reading any row."""
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
        raise PrivacyParameterError("`by` names several columns. Pass one column per evaluation.")
    if not values or len(values) > _MOST_GROUPS:
        raise PrivacyParameterError(
            f"`by` must declare 1 to {_MOST_GROUPS} distinct values of its column, from public "
            "knowledge and not from the data, e.g. by={'sex': ['female', 'male']}. Rows with "
            "any other value form the group 'other'."
        )
    groups = Groups(column, tuple(values))
    _ = groups.table  # raises for invalid or repeated values
    return groups


def _declared_levels(column: Any, model: EvaluatedModel) -> list[Any] | None:
    """Return the categories of a column declared in an estimator or in the model's training."""
    read = getattr(model.model, "get_xgb_params", None)
    declared = read_one(read(), "dp_categories") if read is not None else None
    levels = (mapped(declared) or {}).get(column)
    if levels is None:
        levels = dict(model.public.get("categories", {})).get(str(column))
    if isinstance(levels, (int, np.integer)) and not isinstance(levels, bool):
        return list(range(int(levels)))
    return listed(levels)


def group_codes(groups: Groups, matrix: Any, table: Any) -> Ints:
    """Return the group code of each row; undeclared values get the last code."""
    of = _codes_of_matrix if table is None else _codes_of_column
    codes = of(groups, matrix if table is None else table)
    return np.where(codes < 0, len(groups.levels), codes)


def _no_column(column: Any) -> PrivacyParameterError:
    return PrivacyParameterError(
        f"`by` names {column!r}, which is not a column of `data`. Check the name."
    )


def _codes_of_column(groups: Groups, table: Any) -> Ints:
    """Return the group codes of a table's column; -1 for undeclared values."""
    column = groups.column
    table = collect_table(table)
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
    """Return the group codes of a DMatrix's column; categories match by name if it has names."""
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
    # Match by name: the codes of a data frame's dictionary may depend on all rows together.
    known = groups.table.codes(np.array([*listed_names.to_pylist(), None], dtype=object))
    codes = np.where(np.isnan(values), -1, values).astype(np.int64)
    return np.asarray(known[np.where(codes < len(known) - 1, codes, -1)])


_LEAST_SHIFT, _MOST_SHIFT = 8, 16
_LARGEST_MU = 2.0**32  # above this, the variance is 1 for any sensitivity
_STEPS = 12  # bisection steps of the noise calibration: relative precision of about 1e-4


def scaled(matrix: Ints | Floats, share: float) -> Ints:
    """Scale a block's matrix to a share of the squared norm of a row."""
    return np.asarray(np.rint(matrix * math.sqrt(share)), dtype=np.int64)


class ModelKind(ABC):
    """Base class of the evaluation of one kind of model: released blocks and their figures.

    With groups, the squared norm of a row is divided equally between the blocks for all rows and
    the blocks per group.
    """

    groups: Groups | None
    plan_second_step: Any = None  # builds the blocks of a second step from the release of the first

    @property
    def later(self) -> Later | None:
        """Limits of a second release step; None if there is only one step."""
        return None

    @property
    def share(self) -> float:
        """Share of a row's squared norm that goes to the blocks for all rows."""
        return 1.0 if self.groups is None else 0.5

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks for all rows, followed by the same blocks with a copy per group."""
        blocks = tuple(map(Block, self._matrices()))
        if self.groups is None:
            return blocks
        return (*blocks, *(Block(b.matrix, len(self.groups.names)) for b in blocks))

    @abstractmethod
    def _matrices(self) -> list[Ints]:
        """Return the matrices of the blocks for all rows."""

    def cells(self, rows: Rows) -> list[Ints]:
        """Return the cell of each row in each block."""
        cells = self._cells(rows)
        if rows.groups is None:
            return cells
        widths = (block.matrix.shape[1] for block in self.blocks)
        return cells + [c + width * rows.groups for c, width in zip(cells, widths, strict=False)]

    @abstractmethod
    def _cells(self, rows: Rows) -> list[Ints]:
        """Return the cell of each row in each block for all rows, ignoring groups."""

    def later_cells(self, rows: Rows) -> list[Ints] | None:
        """Return the cells of a second step; None if they equal the cells of the first."""
        return None

    def views(self, released: NoisySums, level: float) -> tuple[Any, Mapping[str, Any]]:
        """Return the figures for all rows, and for each group by name."""
        scale = float(released.layout.max_rows)
        overall, *by_group = (replace(v, scale=scale) for v in self._each(released, level))
        names = () if self.groups is None else self.groups.names
        return overall, dict(zip(names, by_group, strict=True))

    def _each(self, released: NoisySums, level: float) -> list[Any]:
        """Return the figures for all rows, followed by those for each group."""
        return [self._view(s, released.noise * part, level) for s, part in self._sets(released)]

    def _view(self, sums: list[Floats], noise: float, level: float) -> Any:
        """Compute the figures for one set of rows from the sums of all blocks."""
        raise NotImplementedError

    def report(self, released: NoisySums, cost: Any, level: float, model: EvaluatedModel) -> Any:
        """Build the report: figures for all rows and for each group, with their cost."""
        overall, by_group = self.views(released, level)
        return EvaluationReport(model.kind, overall, by_group, cost, level, model.trees)

    def _sets(self, released: NoisySums) -> list[tuple[list[Floats], float]]:
        """Return (sums, noise factor) for all rows and for each group."""
        if self.groups is None:
            return [([sums[0] for sums in released.sums], 1.0)]
        copies, per = len(self.groups.names), len(self.blocks) // 2
        every, parts = released.sums[:per], released.sums[per:]
        # Two estimates for all rows: the direct one, and the noisier sum over groups. Weight both
        # by inverse variance.
        both = [
            (copies * a[0] + b.sum(axis=0)) / (copies + 1)
            for a, b in zip(every, parts, strict=True)
        ]
        by_group = [([sums[i] for sums in parts], 1.0) for i in range(copies)]
        return [(both, math.sqrt(copies / (copies + 1.0))), *by_group]

    def layout(
        self, epsilon: float, delta: float, group_size: int, *, persons: bool, max_rows: int = 1
    ) -> Layout:
        """Return the layout of the release, with the weights of persons if they are the unit."""
        layout = Layout(self.blocks, max_rows=max_rows, later=self.later)
        if not persons:
            return layout
        return replace(layout, shift=shift_for(layout, epsilon, delta, group_size), unit="person")


def events_for(
    layout: Layout, epsilon: float, delta: float, group_size: int = 1
) -> tuple[GaussianEvent, ...]:
    """Return the events of all steps, with the least noise that meets (epsilon, delta)."""

    def events(mu: float) -> tuple[GaussianEvent, ...]:
        norm2 = sum(event.sensitivity2 for event in unit_noise)
        sigma2 = max(1, math.ceil(norm2 / min(mu, _LARGEST_MU) ** 2))
        return tuple(replace(event, sigma2=sigma2) for event in unit_noise)

    def fits(factor: float) -> bool:
        accountant = make_accountant("exact", events(factor / 4.0 * guess))
        return accountant.get_epsilon(delta, group_size) <= epsilon

    unit_noise = layout.events(1)
    guess = gaussian_mu(epsilon, delta) / group_size
    if not guess > 0.0 or events(guess)[0].sigma2 > MOST_SIGMA2 // 4:
        raise BudgetError(
            "Epsilon is too small for an evaluation: the noise would exceed 2^14 rows. Nothing was "
            "released. Pass a larger epsilon or delta."
        )
    factor, _ = narrow(fits, *doubled(fits), _STEPS)
    if factor <= 0.0:
        raise BudgetError(
            f"No noise level meets epsilon={epsilon:g}, delta={delta:g} for this evaluation. "
            "Nothing was released. Pass a larger epsilon or delta."
        )
    return events(factor / 4.0 * guess)


def shift_for(layout: Layout, epsilon: float, delta: float, group_size: int = 1) -> int:
    """Return the bits of a person's weight: 8 to 16, fewer if the noise must fit the sampler."""
    mu = gaussian_mu(epsilon, delta) / group_size
    norm2 = sum(event.sensitivity2 for event in layout.events(1))
    room = math.log2(MOST_SIGMA2 // 4) - math.log2(norm2 / min(mu, _LARGEST_MU) ** 2)
    return min(_MOST_SHIFT, max(_LEAST_SHIFT, math.floor(room / 2.0)))
