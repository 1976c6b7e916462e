"""A private evaluation, step by step: one noisy table of counts, and the report of its figures.

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
from .classification import MOST_CLASSES, Binary, MultipleClasses, PairedModels
from .counts import one_thread
from .regression import Regression
from .report import Cost
from .row_split import Split, rows_and_ids
from .rows import Groups, Judged, ModelKind, events_for, judged, read_groups, read_rows
from .survival import Survival

_ONE_MACHINE = (
    "An evaluation runs on one machine: every worker of a cluster would release a table of its "
    "own. Evaluate on one machine."
)
_FOR_ROWS = (
    "The model is for persons, and its figures will be for rows: a person with several rows is "
    "protected less by them than by the model. Give the ids: evaluate(..., privacy_id=ids)."
)


def evaluate(
    model: Any,
    data: Any,
    *,
    epsilon: float,
    delta: float,
    by: Any = None,
    error_bound: float | None = None,
    target_bounds: tuple[float, float] | None = None,
    privacy_id: Any = None,
    group: int | None = None,
    budget: Budget | str | os.PathLike[str] | None = None,
    note: str = "evaluation",
    level: float = 0.95,
) -> Any:
    """Judge a model on private rows.

    One noisy table of counts is released, of rows by score, class and group; everything that the
    report gives follows from it.

    Privacy: spends epsilon and delta, on the rows of `data`. A row of the hold-out of a split whose
    other part trained the model pays for one of both; otherwise the costs add up.

    Args:
        model: A booster, a fitted estimator, a pipeline that ends in one, or the path of a saved
            model; or a list of two of them, of two classes each, to compare.
        data: A DMatrix with labels and without weights, (X, y), or a (part of a) split. The labels
            `y` of an estimator or a file are names of classes, those of a booster their codes.
        epsilon: Budget in nats, > 0.
        delta: Its delta, 0 < delta < 1.
        by: Groups with figures of their own: ``{column: values}``, or a column whose categories the
            model has declared. Public, as are the two bounds.
        error_bound: For regressions, from which size on errors count as this; by default the width
            of the target, which clips none. With less there is less noise, and no R².
        target_bounds: For regressions, lowest and highest target; by default those of training,
            or far narrower ones that follow from where it saw labels; figures are then "clipped".
        privacy_id: One id for each row, or the name of a column of X. The unit of privacy is then
            a person, who counts one.
        group: Rows of one person, or persons, who are meant together; by default as the budget.
        budget: A budget, or the path of one, on which the evaluation draws.
        note: What it is, for the book of the budget; public.
        level: Probability with which an interval is to cover, in (0, 1).

    Returns:
        EvaluationReport: The figures; of two models a ComparisonReport, with the differences.

    Raises:
        PrivacyParameterError: An argument is missing, unknown or out of range.
        PrivacyRefusal: Something that would not be private.
        BudgetError: No noise meets the target, or the budget has no room. Nothing was released.
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
        table, ids = rows_and_ids(part_rows, privacy_id)
        unit = choose_unit(ids is not None, read_id_column(ids), group, budget)
        plan = plan_evaluation(models, groups, error_bound, target_bounds)
        part = find_part(part_rows, ids)
        for_persons = any(m.public.get("unit") == PERSON for m in models)
        only_rows = for_persons and not unit.of_persons
        warn([*concerns(*target, None, unit), *([_FOR_ROWS] if only_rows else ())])

        with progress("evaluate: predict"):
            rows = read_rows(models, table, groups)
        persons = None if ids is None else encode_persons(ids, len(rows.labels)).codes
        layout = plan.layout(*target, unit.group, persons=persons is not None)
        events = events_for(layout, *target, unit.group)
        predictions = rows.predictions if isinstance(plan, PairedModels) else rows.predictions[0]
        cells = plan.cells(predictions, rows.labels, rows.groups)
        later = plan.later_cells(predictions, rows.labels)
        native.lib()
        draw = partial(release, layout, events, cells, persons, plan.aimed, later)
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
            parallel=unit.group == 1 and all(m.is_apart(part, unit.name) for m in models),
            model_private=all(m.private for m in models),
            entry=entry,
            for_persons=for_persons,
            discovered=any(t.evaluations for t in trainings),
        )
        with progress("evaluate: figures"), one_thread():
            return plan.report(released, cost, level, models[0])


def _models(model: Any, by: Any) -> tuple[Judged, ...]:
    """The model, or two models of two classes, which are compared on all rows."""
    if not isinstance(model, (list, tuple)):
        return (judged(model),)
    models = tuple(map(judged, model))
    if len(models) != 2 or any(m.kind != "binary" for m in models):
        raise PrivacyParameterError(
            "`model` must be one model, or a list of two models of two classes to compare."
        )
    if any(m.pipeline is not None for m in models):
        raise PrivacyParameterError(
            "Pipelines are evaluated one at a time: two of them may make other columns of a row. "
            "Compare their last steps, pipeline[-1], on the rows as both see them."
        )
    if by is not None:
        raise PrivacyParameterError(
            "`by` cannot be given where two models are compared. Leave it out, or evaluate one "
            "model."
        )
    return models


def plan_evaluation(
    models: tuple[Judged, ...],
    groups: Groups | None = None,
    error_bound: Any = None,
    target_bounds: Any = None,
) -> ModelKind:
    """What an evaluation releases. No row is looked at."""
    model = models[0]
    if model.kind == "regression":
        target = None
        if target_bounds is not None:
            target = parse.parse_range("target_bounds", target_bounds)
        if not model.intervals:
            return Regression.from_model(model, groups, error_bound, target)
        if error_bound is not None:
            raise PrivacyParameterError(
                "`error_bound` is for regressions other than survival:aft. Leave it out."
            )
        return Survival.from_model(model, groups, target)
    for name, value in (("error_bound", error_bound), ("target_bounds", target_bounds)):
        if value is not None:
            raise PrivacyParameterError(
                f"`{name}` is for regressions, and this model predicts classes. Leave it out."
            )
    if len(models) == 2:
        return PairedModels.from_models(*models)
    if model.kind == "binary":
        return Binary.from_model(model, groups)
    if model.classes > MOST_CLASSES:
        raise PrivacyParameterError(
            f"A model of more than {MOST_CLASSES} classes cannot be evaluated, because the noise "
            "of each class grows with their number. Put rare classes together and train again."
        )
    return MultipleClasses.from_model(model, groups)
