"""Check the arguments of ``xgboost.train`` other than its parameters.

Data sets, callbacks and metrics must not publish exact statistics of the training rows
(``docs/leaks.md``), and must not fail after budget has been spent. Every row must lie in the
declared domain and is checked independently.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xgboost.callback import (
    CallbackContainer,
    EarlyStopping,
    EvaluationMonitor,
    LearningRateScheduler,
    TrainingCallback,
    TrainingCheckPoint,
)
from xgboost.core import DMatrix, ExtMemQuantileDMatrix, QuantileDMatrix

from ..data import row_checks
from ..data.arrays import as_cells
from ..data.frames import has_column, without_column
from ..data.ids import encode_persons
from ..data.matrices import MATRICES, SplitMatrix, id_column, private_matrix, split_matrix
from ..data.row_checks import check_class_labels
from ..engine import native
from ..errors import PrivacyParameterError, PrivacyRefusal, alias, named
from ..parameters.config import Config
from ..record.authorization import check_here
from ..request.names import Request, read_flat, read_one
from ..request.objectives import OBJECTIVES
from ..request.params import DEFAULT_ROUNDS
from ..request.schema import Schema, read_schema

_METRICS = "its exact metrics would be published in every round. Remove it."
_QUANTILES = (
    "{} is a {}. Its bins are exact quantiles of its own rows or, with `ref`, of the training "
    "rows. Pass an {}; private training computes its own bins."
)


def read_matrix(dtrain: Any) -> Schema:
    """Read the schema of a training matrix; refuse matrices without plain, independent rows."""
    if not isinstance(dtrain, DMatrix):
        raise PrivacyParameterError(
            f"`dtrain` must be an xgboost.DMatrix; got {type(dtrain).__name__}. Create it with "
            "xgboost.DMatrix(X, label=y)."
        )
    _check_plain(dtrain, "`dtrain`")
    if len(dtrain.get_uint_info("group_ptr")):
        raise PrivacyRefusal(
            "Query groups (`group`, `qid`) are refused: rows of a group depend on each "
            "other, and weights would apply to groups. Remove them from the DMatrix. To protect "
            f"all rows of a person together, pass one id per row as {named.dp_privacy_id}."
        )
    return read_schema(dtrain)


def _check_plain(matrix: Any, name: str) -> None:
    """Accept only an ``xgboost.DMatrix`` that stores the rows unchanged."""
    # The type alone is not sufficient: DMatrix(other.handle) can alias any matrix.
    if type(matrix) in MATRICES and native.is_plain(matrix):
        return
    quantiles = isinstance(matrix, (QuantileDMatrix, ExtMemQuantileDMatrix))
    if quantiles or type(matrix) in MATRICES:
        kind = type(matrix).__name__ if quantiles else "binned matrix"
        raise PrivacyRefusal(_QUANTILES.format(name, kind, "xgboost.DMatrix"))
    raise PrivacyRefusal(
        f"{name} is a {type(matrix).__name__}; private training accepts only xgboost.DMatrix "
        "itself, to be sure that each row depends on its own data alone. Build an xgboost.DMatrix."
    )


def read_public_rows(
    request: Request, evals: Sequence[Any], dtrain: Any, schema: Schema
) -> DMatrix | None:
    """Check all public rows, and return the ``dp_public_data`` as a matrix.

    Evaluation sets and public rows must not contain statistics of the training rows. The user
    declares that the rows of a set are public (``dp_public_evals``). The rows are not compared with
    the training rows, because the result would reveal which rows were used.
    """
    for pair in evals:
        if not _is_list(pair) or len(pair) != 2 or not isinstance(pair[1], str):
            raise PrivacyParameterError(
                "`evals` must be a list of pairs (xgboost.DMatrix, name). Names must be strings."
            )
        if not isinstance(pair[0], DMatrix):
            raise PrivacyParameterError(
                f"`evals` must contain xgboost.DMatrix objects; got {type(pair[0]).__name__}."
            )
        _check_public(dtrain, schema, pair[0], "A set in `evals`", _METRICS)
    given, name = request.public_rows, "`dp_public_data`"
    if given is None:
        return None
    if isinstance(given, (tuple, list)) and len(given) == 2:
        X, y = given
        given = private_matrix(X, categories=request.categories, label=y, enable_categorical=True)
    if not isinstance(given, DMatrix):
        raise PrivacyParameterError(
            f"{name} must be an xgboost.DMatrix with labels or a pair (X, y) of public rows; "
            f"got {type(given).__name__}."
        )
    leak = "its exact quantiles would be thresholds of the model. Pass rows from another source."
    other = _check_public(dtrain, schema, given, name, leak).dictionaries
    if other and other != schema.dictionaries:
        raise PrivacyParameterError(
            f"{name} has different category names than the training data, or a different order. "
            f"Use the same {named.dp_categories} for both."
        )
    if not given.num_row():
        raise PrivacyParameterError(f"{name} has no rows. Pass public rows, or leave it out.")
    return given


def _check_public(dtrain: Any, schema: Schema, data: Any, name: str, leak: str) -> Schema:
    """Refuse public rows that contain statistics of the training rows or differ in schema.

    The number of labels must match too, since XGBoost also infers the number of targets from
    evaluation sets.
    """
    if data is dtrain or data.handle.value == getattr(dtrain.handle, "value", None):
        raise PrivacyRefusal(f"{name} contains the training data: {leak}")
    if isinstance(data, SplitMatrix):
        raise PrivacyRefusal(
            f"{name} is a part of an xgb_dp.split, so its rows are private, and exact statistics "
            "would be published. Use xgb_dp.evaluate to evaluate the model, or pass public rows."
        )
    _check_plain(data, name)
    other = read_schema(data, name)
    times = data.get_float_info("label_lower_bound").size  # labels of survival:aft are intervals
    if data.get_label().size != data.num_row() * other.labels and times != data.num_row():
        raise PrivacyParameterError(f"{name} must have labels for each of its rows.")
    # A worker without rows of this set cannot tell the number of labels.
    counted = data.num_row() > 0 or other.labels > 1
    if counted and other.labels != schema.labels:
        raise PrivacyParameterError(
            f"{name} must have as many labels per row as the training data, one for each target."
        )
    same_names = not (schema.named and other.named) or schema.names == other.names
    same_kinds = schema.categorical == other.categorical
    alike = schema.width == other.width and same_kinds and same_names
    if schema.width and other.width and not alike:  # a worker without rows has no columns
        raise PrivacyParameterError(
            f"{name} has different columns than the training data. Number, names and order of the "
            "columns, and the categorical columns, must be the same."
        )
    native.check_rows(data)
    return other


def check_eval_set(X: Any, eval_set: Sequence[Any]) -> None:
    """Refuse the training table of an estimator, or a view of it, as an evaluation set."""
    if not _is_list(eval_set) or not all(_is_list(pair) and len(pair) == 2 for pair in eval_set):
        raise PrivacyParameterError("`eval_set` must be a list of pairs (X, y).")
    if any(_is_part_of(table, X) for table, _ in eval_set):
        raise PrivacyRefusal(
            "`eval_set` (`evals`) contains training rows: their exact metrics would be published "
            "in every round. Pass other rows, which must be public."
        )


def check_sample(X: Any, sample: Any) -> None:
    """Refuse the training table of an estimator, or a view of it, as ``dp_public_data``."""
    if _is_list(sample) and len(sample) == 2 and _is_part_of(sample[0], X):
        raise PrivacyRefusal(
            "`dp_public_data` contains training rows: their exact quantiles would be published as "
            "thresholds of the model. Pass public rows from another source."
        )


def _is_list(values: Any) -> bool:
    return isinstance(values, (list, tuple))


def _is_part_of(table: Any, X: Any) -> bool:
    """Whether a table is `X` or shares its memory. Rows are not compared, for privacy."""
    arrays = isinstance(table, np.ndarray) and isinstance(X, np.ndarray)
    return table is X or (arrays and bool(np.shares_memory(table, X)))


def check_dask(dtrain: Any, evals: Sequence[Any] | None) -> None:
    """Refuse matrices that are not Dask's own, and budgets that cannot see the workers."""
    from xgboost.dask import DaskDMatrix

    check_here()
    sets = [pair[0] for pair in evals or []]
    if any(data is dtrain for data in sets):
        raise PrivacyRefusal(f"`evals` contains the training data: {_METRICS}")
    for name, data in [("`dtrain`", dtrain), *(("A set in `evals`", data) for data in sets)]:
        if not isinstance(data, DaskDMatrix):
            raise PrivacyParameterError(
                f"{name} must be an xgboost.dask.DaskDMatrix; got {type(data).__name__}. Create it "
                "with xgboost.dask.DaskDMatrix(client, X, y)."
            )
        if type(data) is not DaskDMatrix:
            kind = type(data).__name__
            raise PrivacyRefusal(_QUANTILES.format(name, kind, "xgboost.dask.DaskDMatrix"))


@dataclass(frozen=True)
class CallSite:
    """Arguments of ``xgboost.train`` other than parameters, data, rounds and earlier model."""

    evals: Sequence[Any] = ()
    obj: Any = None
    maximize: Any = None
    early_stopping_rounds: Any = None
    evals_result: Any = None
    verbose_eval: Any = False
    custom_metric: Any = None
    callbacks: Sequence[Any] = field(default_factory=list)

    def refuse_leaks(self, *, public_evals: bool) -> None:
        """Refuse arguments that would release statistics or break the privacy bound."""
        if self.obj is not None:
            raise PrivacyRefusal(
                "`obj` is refused in private training: there is no bound on how much one row "
                "changes the gradients of other rows. Use one of the objectives "
                f"{', '.join(OBJECTIVES)}, or declare the formulas of your loss in dp_objective."
            )
        if self.evals and not public_evals:
            raise PrivacyRefusal(
                "`evals` is refused: metrics of private rows are exact statistics. Remove it, or "
                f"if all of its rows are public, set {alias('dp_public_evals')}=True."
            )
        stops = self.early_stopping_rounds or any(
            isinstance(c, EarlyStopping) for c in self.callbacks
        )
        if stops and not self.evals:
            raise PrivacyRefusal(
                "`early_stopping_rounds` is refused without public `evals`, because the stopping "
                "time would depend on exact metrics of private rows. Remove it, or pass public "
                f"evaluation sets with {alias('dp_public_evals')}=True."
            )
        if any(isinstance(c, LearningRateScheduler) for c in self.callbacks):
            raise PrivacyRefusal(
                "`LearningRateScheduler` is refused: the learning rate is part of the calibrated "
                "plan. Set `eta`."
            )
        if any(_is_used(c) for c in self.callbacks):
            raise PrivacyRefusal(
                "A callback in `callbacks` still contains metrics of another training. They may "
                "be exact metrics of private rows, and the callback would print them or use them "
                "for early stopping. Create a new callback for every training."
            )

    def rehearse(self, booster: Any, dtrain: Any) -> None:
        """Run metrics, early stopping and printing of one round, without growing a tree."""
        try:
            CallbackContainer(self.callbacks, metric=self.custom_metric)
            container = CallbackContainer(
                self._stand_ins(), metric=self.custom_metric, output_margin=False
            )
            container.after_iteration(booster, 0, dtrain, self.evals)
            for callback in container.callbacks:
                callback.after_iteration(booster, 1, container.history)
            if self.evals_result is not None and not isinstance(self.evals_result, MutableMapping):
                raise TypeError("`evals_result` must be a dict.")
            for callback in self.callbacks:
                _check_folder(callback)
        except Exception as error:
            text = str(error).strip() or type(error).__name__
            raise PrivacyParameterError(
                "Training would fail in its first round. Check `evals`, `eval_metric`, "
                "`custom_metric`, `callbacks`, `early_stopping_rounds`, `maximize`, `verbose_eval` "
                f"and `evals_result`: {text} Nothing was released."
            ) from error

    def _stand_ins(self) -> list[TrainingCallback]:
        """Copies of XGBoost's own callbacks that print nothing."""
        stand_ins: list[TrainingCallback] = []
        for c in self.callbacks:
            if type(c) is EarlyStopping:
                stand_ins.append(deepcopy(c))
            elif type(c) is EvaluationMonitor:
                stand_ins.append(EvaluationMonitor(c.printer_rank, c.period, logger=_say_nothing))
        # `xgboost.train` adds these callbacks.
        if self.verbose_eval:
            period = 1 if self.verbose_eval is True else self.verbose_eval
            stand_ins.append(EvaluationMonitor(period=period, logger=_say_nothing))
        if self.early_stopping_rounds:
            rounds = self.early_stopping_rounds
            stand_ins.append(EarlyStopping(rounds=rounds, maximize=self.maximize))
        return stand_ins


def _say_nothing(text: str) -> None:
    del text


def _is_used(callback: Any) -> bool:
    """Whether a callback still has metrics from an earlier training."""
    if isinstance(callback, EarlyStopping):
        return bool(callback.stopping_history or callback.best_scores)
    return isinstance(callback, EvaluationMonitor) and callback._latest is not None


def _check_folder(callback: Any) -> None:
    """Raise if the folder of a checkpoint does not exist, which would abort the training later."""
    local = type(callback) is TrainingCheckPoint and "://" not in callback._path
    if local and not os.path.isdir(callback._path):
        raise FileNotFoundError("The directory of `TrainingCheckPoint` does not exist. Create it.")


def check_rows(dtrain: Any, s: Config, plan_text: str) -> None:
    """Refuse rows outside the declared domain."""
    labels, n = dtrain.get_label(), dtrain.num_row()
    lower, upper = (dtrain.get_float_info(f"label_{side}_bound") for side in ("lower", "upper"))
    if s.objective.intervals:
        row_checks.check_intervals(lower, upper, n)
    else:
        if n and not labels.size:
            raise PrivacyParameterError("`dtrain` has no labels. Pass xgboost.DMatrix(X, label=y).")
        if labels.size != n * s.labels or s.schema.labels != s.labels:
            raise PrivacyParameterError(
                f"`dtrain` must have {s.labels} label{'s' if s.labels > 1 else ''} per row, one "
                f"for each target (see {named.dp_target_bounds}). Without rows, pass labels as "
                f"np.empty((0, {s.labels}))."
            )
        row_checks.check_labels(labels, s.kind, s.classes)
        if s.kind == "regression":
            known = s.objective
            row_checks.check_range(labels, known.lowest, known.highest, above=known.above)
        row_checks.check_unused(lower, upper)
    margins = dtrain.get_base_margin()
    row_checks.check_base_margin(margins, n, s.trees_per_round, declared=s["dp_base_margin"])
    heavier = "dp_max_weight" in s.given
    row_checks.check_weights(dtrain.get_weight(), n, s.kind, unit=s.unit_weights, declared=heavier)
    native.check_rows(dtrain, plan_text)


def default_rounds() -> int:
    """Default number of boosting rounds of a private training."""
    return DEFAULT_ROUNDS


def declared_classes(estimator: Any, y: Any = None) -> np.ndarray:
    """Return the declared classes of a private classifier, independent of the classes in `y`."""
    params = estimator if isinstance(estimator, dict) else estimator.get_xgb_params()
    refuse_margins(params)
    k = read_one(params, "dp_classes")
    if k is None:
        raise PrivacyParameterError(
            f"{named.dp_classes} is missing: a private classifier cannot read the classes from the "
            "training labels, because this would reveal which classes occur. Declare them, for "
            f"example XGBClassifier(..., {alias('dp_classes')}=[0, 1])."
        )
    if y is not None:
        check_class_labels(as_cells(y, "label"), k)
    return np.arange(k)


def estimator_matrix(estimator: Any, ref: Any, *, data: Any, **kwargs: Any) -> Any:
    """Build the matrix of an estimator; replaces XGBoost's own function."""
    params = estimator.get_xgb_params()  # call once: it draws a seed from `random_state`
    column, persons = id_column(params), None
    if column is not None and (ref is None or has_column(data, column)):
        data, ids = without_column(data, column)
        persons = encode_persons(ids, column=column) if ref is None else None
    categories = read_flat(params, "dp_categories")
    matrix = private_matrix(data, categories=categories, persons=persons, **kwargs)
    return split_matrix(matrix, getattr(estimator, "_part", None) if ref is None else None)


def refuse_margins(params: Mapping[str, Any]) -> None:
    """Refuse binary:logitraw, since a classifier would use its margins as probabilities."""
    if read_one(params, "objective") == "binary:logitraw":
        raise PrivacyParameterError(
            "`objective`='binary:logitraw' predicts margins, which a classifier would treat as "
            "probabilities. Use 'binary:logistic'; for margins, call predict(X, "
            "output_margin=True)."
        )
