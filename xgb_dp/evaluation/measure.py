"""The steps of a private evaluation: release one noisy table of counts, compute the report.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from ..accounting import PERSON
from ..budget.budget import Budget, check_single_process, choose_unit, claim_and_draw
from ..data.ids import encode_persons, read_id_column
from ..data.matrices import find_part
from ..engine import native
from ..engine.progress import progress
from ..errors import PrivacyParameterError, spelling
from ..noisy_sums import release
from ..parameters import parse
from ..record.authorization import check_free
from ..record.privacy_warnings import concerns, warn
from ..request.names import takes
from .amounts import OF_MEANS
from .classification import MOST_CLASSES, Binary, MultipleClasses, PairedModels
from .counts import ScoreGrid, one_thread
from .regression import PairedMeans, Regression
from .report import Cost
from .row_split import Split, row_arguments, separate_rows_and_ids
from .rows import (
    EvaluatedModel,
    Groups,
    ModelKind,
    events_for,
    read_evaluated_model,
    read_groups,
    read_rows,
)
from .survival import Survival

_ONE_MACHINE = (
    "An evaluation must run in a single process: in a cluster every worker would release its own "
    "table. Run the evaluation on one machine."
)
_FOR_ROWS = (
    "The model protects persons, but this evaluation protects single rows, so a person with "
    "several rows is protected less by the figures than by the model. Pass the ids: "
    "evaluate(..., privacy_id=ids)."
)
_NO_IDS = (
    "`max_rows_per_person` requires ids: without them, every row is its own privacy unit. Pass "
    "`privacy_id`, or remove it."
)
_MOST_ROWS = 256  # the least weight of a person is 2^8, and each of their rows must have a weight


@takes()
def evaluate(
    model: Any,
    data: Any,
    *,
    epsilon: float,
    delta: float,
    by: Any = None,
    error_bound: float | None = None,
    target_bounds: tuple[float, float] | None = None,
    base_margin: Any = None,
    privacy_id: Any = None,
    max_rows_per_person: int | None = None,
    group_size: int | None = None,
    budget: Budget | str | os.PathLike[str] | None = None,
    note: str = "evaluation",
    level: float = 0.95,
) -> Any:
    """Evaluate a model on private rows.

    Releases one noisy table of row counts by score, class and group. Every figure in the report is
    post-processing of this table.

    Privacy: spends epsilon and delta on the rows of `data`. If `data` is the test part of a split
    and the model was trained on the other part, each row contributes to only one of training and
    evaluation, so the larger cost counts. Otherwise the two costs add up.

    Args:
        model: A booster, a fitted estimator, a pipeline that ends in one, or the path of a saved
            model; or a list of two models to compare: binary classifiers, or counts or amounts.
        data: A DMatrix with labels and without weights, a pair (X, y), a split, or one part of a
            split. For an estimator or a file, `y` contains class names; for a booster, class codes.
        epsilon: Privacy budget in nats, > 0.
        delta: Failure probability, 0 < delta < 1.
        by: Report figures per group as well: ``{column: values}``, or a column with categories
            declared by the model. Public, like `error_bound` and `target_bounds`.
        error_bound: Regression only: larger errors are clipped to this size. Default: the width of
            `target_bounds`, which clips nothing. A smaller bound means less noise, but no R².
        target_bounds: Regression only: lowest and highest target. Default: the bounds declared in
            training, or a much narrower range if the training saw labels only there; the figures
            are then named "clipped".
        base_margin: Margins of the rows, such as log exposures; required if the model was trained
            with them. A DMatrix and a part of a split contain their own.
        privacy_id: One id per row, or the name of a column of X. The privacy unit is then a
            person, and every person has total weight 1.
        max_rows_per_person: Requires ids, 1 to 256. Figures are then per row, and all rows of a
            person count as at most this number of rows. The noise grows with it.
        group_size: Number of rows (with ids: persons) protected together. Default: as in the
        budget.
        budget: A budget, or the path of a budget file, to charge the evaluation to.
        note: Description recorded in the budget; public.
        level: Confidence level of the intervals, in (0, 1).

    Returns:
        EvaluationReport: The figures. For two models: their differences, or their double lift.

    Raises:
        PrivacyParameterError: An argument is missing, unknown or out of range.
        PrivacyRefusal: The request cannot be made private.
        BudgetError: No noise meets the target, or the budget is too small. Nothing was released.
        RowDomainError: A row lies outside the declared domain.

    Examples:
        >>> report = xgb_dp.evaluate(model, data, epsilon=0.5, delta=1e-6)
        >>> 0.5 < float(report.auc) < 1.0
        True
    """
    target, level = parse.parse_target(epsilon, delta), parse.parse_probability("level", level)
    with spelling({"dp_privacy_id": "privacy_id"}):
        if budget is not None:
            check_free()
        check_single_process("an evaluation", "its noise is", _ONE_MACHINE)
        models = _models(model, by)
        groups = read_groups(by, models[0])
        part_rows = data.test if isinstance(data, Split) else data
        table, ids = separate_rows_and_ids(part_rows, privacy_id)
        most = max_rows_per_person
        if most is not None:
            most = parse.parse_int("max_rows_per_person", most, 1, _MOST_ROWS)
            if ids is None:
                raise PrivacyParameterError(_NO_IDS)
        unit = choose_unit(ids is not None, read_id_column(ids), group_size, budget)
        plan = plan_evaluation(models, groups, error_bound, target_bounds)
        # Margins from elsewhere could come from other rows.
        part = find_part(part_rows, ids) if base_margin is None else None
        base_margin = row_arguments(part_rows, {"base_margin": base_margin})["base_margin"]
        for_persons = any(m.public.get("unit") == PERSON for m in models)
        only_rows = for_persons and not unit.of_persons
        warn([*concerns(*target, None, unit), *([_FOR_ROWS] if only_rows else ())])

        with progress("evaluate: predict"):
            rows = read_rows(models, table, groups, base_margin)
        persons = None if ids is None else encode_persons(ids, len(rows.labels)).codes
        layout = plan.layout(
            *target, unit.group_size, persons=persons is not None, max_rows=most or 1
        )
        events = events_for(layout, *target, unit.group_size)
        cells, later = plan.cells(rows), plan.later_cells(rows)
        native.lib()
        draw = partial(release, layout, events, cells, persons, plan.plan_second_step, later)
        with progress("evaluate: count"), one_thread():
            released, entry = claim_and_draw(
                draw, events, budget, note, delta=target[1], unit=unit, part=part
            )
        trainings = [t for m in models if m.record is not None for t in m.record.trainings]
        cost = Cost(
            events=released.events,
            epsilon=target[0],
            delta=target[1],
            unit=unit,
            parallel=unit.group_size == 1 and all(m.is_apart(part, unit.name) for m in models),
            model_private=all(m.private for m in models),
            entry=entry,
            for_persons=for_persons,
            max_rows=most,
            discovered=any(t.evaluations for t in trainings),
        )
        with progress("evaluate: figures"), one_thread():
            return plan.report(released, cost, level, models[0])


def _models(model: Any, by: Any) -> tuple[EvaluatedModel, ...]:
    """Load one model, or two models to compare on all rows."""
    if not isinstance(model, (list, tuple)):
        return (read_evaluated_model(model),)
    models = tuple(map(read_evaluated_model, model))
    means = all(m.objective in OF_MEANS for m in models)
    if len(models) != 2 or not (means or all(m.kind == "binary" for m in models)):
        raise PrivacyParameterError(
            "`model` must be one model, or a list of two to compare: binary classifiers, or models "
            f"with objectives {', '.join(OF_MEANS)}."
        )
    if any(m.pipeline is not None for m in models):
        raise PrivacyParameterError(
            "Pipelines cannot be compared, because they may transform the same row into different "
            "columns. Evaluate one pipeline at a time, or compare the final steps, pipeline[-1], "
            "on rows that are already transformed."
        )
    if by is not None:
        raise PrivacyParameterError(
            "`by` is not supported when two models are compared. Leave it out, or evaluate one "
            "model at a time."
        )
    return models


def plan_evaluation(
    models: tuple[EvaluatedModel, ...],
    groups: Groups | None = None,
    error_bound: Any = None,
    target_bounds: Any = None,
) -> ModelKind:
    """Build the blocks that an evaluation releases, without reading any row."""
    model = models[0]
    if model.kind == "regression":
        target = None
        if target_bounds is not None:
            target = parse.parse_range("target_bounds", target_bounds)
        if len(models) == 2:
            if error_bound is not None:
                raise PrivacyParameterError("`error_bound` does not apply to two models.")
            return PairedMeans.from_models(models, target)
        if not model.intervals:
            return Regression.from_model(model, groups, error_bound, target)
        if error_bound is not None:
            raise PrivacyParameterError(
                "`error_bound` does not apply to survival:aft. Leave it out."
            )
        return Survival.from_model(model, groups, target)
    for name, value in (("error_bound", error_bound), ("target_bounds", target_bounds)):
        if value is not None:
            raise PrivacyParameterError(
                f"`{name}` applies to regression only, but this model predicts classes. Leave it "
                "out."
            )
    if model.kind == "binary":
        grids = [ScoreGrid.within(*m.margins) for m in models]
        return Binary(grids[0], groups) if len(grids) == 1 else PairedModels((grids[0], grids[1]))
    if model.classes > MOST_CLASSES:
        raise PrivacyParameterError(
            f"Models with more than {MOST_CLASSES} classes cannot be evaluated, because the noise "
            "per class grows with the number of classes. Merge rare classes and train again."
        )
    return MultipleClasses(model.classes, groups)
