"""A private selection: secret repetitions of training and scoring, of which the best is kept.

The rows are divided into those that the models are trained on and those that score them.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import itertools
import os
import secrets
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xgboost as xgb

from ..accounting import Event, Repetitions
from ..budget.budget import Budget, as_budget, check_single_process, record_release
from ..data.ids import Persons, SplitPart, are_disjoint, encode_persons
from ..data.matrices import find_part, hold, take_ids
from ..engine import native
from ..engine.progress import progress
from ..engine.saved_model import probabilities
from ..errors import BudgetError, PrivacyParameterError, PrivacyRefusal, PrivacyWarning, spelling
from ..evaluation.row_split import Split, halves
from ..parameters import parse
from ..record import ledger
from ..record.authorization import ReleaseRequest, authorized_by, check_free
from ..record.privacy_report import PrivacyReport, privacy_report
from ..record.privacy_warnings import concerns, warn
from ..record.selection_record import Run, best_of, complete
from ..request.default_plans import settings_of_sizes
from ..request.names import flatten
from ..request.params import DEFAULT_ROUNDS
from ..request.schema import Schema, read_schema
from ..training.input_checks import CallSite, check_rows, read_matrix
from ..training.prepare import prepare
from ..training.run import Training, released_by, with_discovery
from . import SCORES
from .plans import ACCOUNTANT, Trial, TuningPlan, plan_runs, trials
from .scores import Predicted, Score, ScoreValue, choose_score, predicted_kind

_ONE_MACHINE = (
    "A selection runs on one machine: every worker of a cluster would make a choice of its own "
    "among the same trainings, and more than the best of them would be released. Select on one "
    "machine, then train on the cluster with the setting found."
)
# Up to so many expected runs Poisson's law leaves most to a run for the rank that the best reaches.
_FEW_RUNS = 4.0

_IDS = "dp_privacy_id"


@dataclass(frozen=True)
class RowsWithPersons:
    """Some of the rows, and whose they are where the unit of privacy is a person."""

    matrix: Any
    persons: Persons | None


@dataclass(frozen=True, eq=False)
class SelectionRows:
    """The rows of a selection: a matrix that it divides itself, or both parts of a division."""

    matrices: tuple[Any, ...]
    ids: tuple[Any, ...]  # of the rows of each matrix; None where every row counts for itself
    part: SplitPart | None  # of another division that the rows are; None for all rows

    @classmethod
    def from_data(
        cls, params: Mapping[str, Any], data: Any
    ) -> tuple[dict[str, Any], SelectionRows]:
        """The rows, and parameters that say of ids only that there are some."""
        if not isinstance(data, Split):
            read_matrix(data)
            flat, ids = take_ids(flatten(params), data)
            return flat, cls((data,), (ids,), find_part(data, ids))
        matrices = (data.train, data.test)
        for matrix in matrices:
            read_matrix(matrix)
        if not are_disjoint(find_part(data.train), find_part(data.test), data.unit):
            raise PrivacyRefusal(
                "A selection takes the two parts of one xgb_dp.split: a part was put in by hand, "
                "so that a row may be in both, and cost more than the selection counts. Nothing "
                "was released."
            )
        flat = flatten(params)
        given = flat.get(_IDS)
        if given is not None and not (isinstance(given, str) or given is True):
            raise PrivacyParameterError(
                "The rows of a split belong to the persons by whom it was made: give the ids to "
                f"xgb_dp.split(..., privacy_id=ids), and here {_IDS}=True, or the name of their "
                "column."
            )
        flat, train_ids = take_ids(flat, data.train)
        return flat, cls(matrices, (train_ids, train_ids and data.test.persons), None)

    def with_persons(self, column: str | None) -> tuple[RowsWithPersons, ...]:
        """Each matrix with its persons."""
        pairs = zip(self.matrices, self.ids, strict=True)
        return tuple(
            RowsWithPersons(
                m, None if ids is None else encode_persons(ids, m.num_row(), column=column)
            )
            for m, ids in pairs
        )

    def divide(
        self, sides: tuple[RowsWithPersons, ...], share: float
    ) -> tuple[RowsWithPersons, RowsWithPersons]:
        """Rows to train on, and rows to score on."""
        if len(sides) == 2:
            return sides[0], sides[1]
        whole = sides[0]
        persons = whole.persons
        parts = halves(whole.matrix, share, None if persons is None else persons.codes)
        first, second = (
            RowsWithPersons(taken, persons and persons.select(rows)) for rows, taken in parts
        )
        return first, second


@dataclass(frozen=True)
class Selection:
    """The best of a secret number of private models.

    Attributes:
        booster: The model. Its ledger and report tell the cost of the whole selection.
        setting: The changes that won, as given.
        params: The common parameters with these changes, and what the default made of epsilon and
            of the number of rows.
        num_boost_round: Its boosting rounds.
        score: Its noisy score on the rows set aside. Smaller is better for losses ("log_loss",
            "brier" and the errors of regression), larger for "accuracy" and "auc". It is the best
            of several, so the model's true score is rather worse.
        score_noise: About the standard deviation of the noise in `score`.
        score_name: What the score is.

    Examples:
        >>> common = {"tree_method": "dp_hist", "objective": "binary:logistic"}
        >>> depths = {"max_depth": [2, 4]}
        >>> best = xgb_dp.select(common, data, depths, epsilon=2.0, delta=1e-6, num_boost_round=5)
        >>> best.report.epsilon <= 2.0
        True
    """

    booster: xgb.Booster
    setting: dict[str, Any]
    params: dict[str, Any]
    num_boost_round: int
    score: float
    score_noise: float
    score_name: str

    @property
    def report(self) -> PrivacyReport:
        """What the whole selection cost; see :func:`xgb_dp.privacy_report`."""
        return privacy_report(self.booster)


def select(
    params: Mapping[str, Any],
    dtrain: Any,
    settings: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]],
    *,
    epsilon: float,
    delta: float,
    num_boost_round: int = DEFAULT_ROUNDS,
    score: Score | str | None = None,
    mean_runs: float | None = None,
    repetitions: str | None = None,
    validation: float = 0.2,
    privacy_id: Any = None,
    group: int | None = None,
    budget: Budget | str | os.PathLike[str] | None = None,
    note: str = "selection",
    **unknown: Any,
) -> Selection:
    """Choose among settings on private rows, with one (epsilon, delta) for all of it.

    Each of a secret number of runs draws one of the settings, trains a private model, and scores it
    with noise on rows, or persons, that coins have set aside. The best model is returned.

    Privacy: spends epsilon and delta, for the model, its setting and its score. How many runs there
    were, and what the others gave, is not released; the time that it takes tells about that.

    Args:
        params: Common parameters of ``xgboost.train``, without ``dp_epsilon`` and ``dp_delta``.
        dtrain: A DMatrix; or a split, whose first part is trained on and whose second is scored on.
        settings: A list of changes of `params`, or a grid ``{name: [values]}``. Public.
        epsilon: Of the whole selection, in nats, > 0; for ``dp_group_size`` rows or persons.
        delta: Its delta, in (0, 1).
        num_boost_round: Boosting rounds where a setting has no ``num_boost_round``.
        score: What models are judged by, see :class:`Score`.
        mean_runs: Expected number of runs, in (1, 1000]; by default as many as settings, 2 to 4.
        repetitions: Their distribution: "poisson" (by default up to 4), "geometric" (beyond),
            "logarithmic" or "negative_binomial" (shape -1/2), each with more for every run.
        validation: Share of the rows, or persons, that are set aside, in (0, 1); not of a split.
        privacy_id: One id for each row, if the unit is a person; of a split True, or the name of
            the column that divided it. As ``dp_privacy_id`` of `params`.
        group: Rows of one person, or persons, together. As ``dp_group_size`` of `params`.
        budget: A budget, or its path, on which the selection draws.
        note: What it is, for the book of the budget.

    Returns:
        Selection: The model with its report.

    Raises:
        PrivacyParameterError: An argument or parameter is missing, unknown or out of range.
        PrivacyRefusal: Something that would not be private.
        BudgetError: No noise meets the target, or the budget has no room. Nothing was released.
        RowDomainError: A row lies outside the declared domain.

    Examples:
        >>> common = {"tree_method": "dp_hist", "objective": "binary:logistic"}
        >>> best = xgb_dp.select(common, data, {"max_depth": [2, 4]}, epsilon=2.0, delta=1e-6)
        >>> best.setting["max_depth"] in (2, 4), best.score_name
        (True, 'log_loss')
    """
    _refuse(unknown)
    target = parse.parse_target(epsilon, delta)
    given = {"privacy_id": privacy_id, "group_size": group}
    unit_params = {f"dp_{name}": value for name, value in given.items() if value is not None}
    params = flatten([*flatten(params).items(), *unit_params.items()])
    with spelling({name: name.removeprefix("dp_") for name in unit_params}):
        params, rows = SelectionRows.from_data(params, dtrain)
        check_free(booked=budget is not None)
        check_single_process(
            "a selection", "the number of runs and the noise of scores are", _ONE_MACHINE
        )
        schema = read_schema(rows.matrices[0])
        candidates = trials(params, _listed(settings), num_boost_round, schema, target[0])
        s = candidates[0].settings
        judge = choose_score(score, predicted_kind([trial.settings for trial in candidates]))
        unit, discovery = s.privacy_unit, s["dp_discovered"]
        warn(concerns(*target, s["dp_public_num_rows"], unit), stacklevel=3)
        runs = _repetitions(repetitions, mean_runs, len(candidates))
        share = parse.parse_probability("validation", validation)
        with progress("select: calibrate"):
            plan = plan_runs(candidates, runs, judge, *target)
        native.lib()
        parts = rows.with_persons(unit.column)
        with progress("select: check"):
            for part_rows in parts:
                _rehearse(candidates, plan, part_rows, schema)
        fit, valid = rows.divide(parts, share)
        entry = None
        if budget is not None:
            release = ReleaseRequest((plan.event,), True, unit, rows.part, released_by(discovery))
            *discovery_entry, entry = record_release(as_budget(budget), release, note, target[1])
            discovery = {**discovery, "entry": discovery_entry[0]} if discovery_entry else discovery
        with progress("select: train and score"):  # how many runs there are is secret
            best = _best_run(candidates, plan, judge, fit, valid)
        return _result(best, judge, target, rows.part, entry, discovery)


def _refuse(unknown: Mapping[str, Any]) -> None:
    """Arguments that there are not, with what to use instead."""
    for name in unknown:
        hint = "`score`" if name in ("scoring", "metric", "eval_metric") else "`params`"
        raise PrivacyParameterError(
            f"`{name}` is not an argument of a selection. A selection judges by a noisy `score` "
            f"(one of {', '.join(SCORES)}) and takes parameters of the model in `params` and "
            f"`settings`. Use {hint}."
        )


def _repetitions(family: str | None, mean_runs: float | None, settings: int) -> Repetitions:
    """How the number of runs is drawn."""
    try:
        mean = min(max(2.0, settings), _FEW_RUNS) if mean_runs is None else float(mean_runs)
        usual = "poisson" if mean <= _FEW_RUNS else "geometric"
        return Repetitions.of(usual if family is None else family, mean)
    except (TypeError, ValueError, OverflowError) as error:
        raise PrivacyParameterError(f"`mean_runs` or `repetitions`: {error}") from None


@dataclass(frozen=True)
class _SelectionRun(Run):
    trial: Trial
    score: ScoreValue


def _rehearse(
    candidates: Sequence[Trial], plan: TuningPlan, rows: RowsWithPersons, schema: Schema
) -> None:
    """Find whatever would end a run, of any setting and on all rows, before anything is booked.

    Otherwise the secret coins would decide whether a row outside its domain raises an error: those
    that set rows aside, and those that draw settings.
    """
    for trial in candidates:
        training = Training.of(prepare(_training_params(trial, plan), schema, trial.rounds), None)
        training.check_sums(rows.matrix)
        held = hold(rows.matrix, rows.persons)
        try:
            check_rows(rows.matrix, training.settings, training.widest)
            training.rehearse(rows.matrix, None, CallSite())
        finally:
            held.release(rows.matrix)


def _training_params(trial: Trial, plan: TuningPlan) -> dict[str, Any]:
    """The parameters of one training."""
    return {
        **trial.params,
        "verbosity": 0,  # every line of output would count a run
        "dp_epsilon": plan.epsilon,
        "dp_delta": plan.delta,
        "dp_accountant": ACCOUNTANT,  # also where a preset has another one
        "dp_discovered": None,  # it is charged once, and not with every run
    }


def _best_run(
    candidates: Sequence[Trial],
    plan: TuningPlan,
    judge: Score,
    fit: RowsWithPersons,
    valid: RowsWithPersons,
) -> _SelectionRun:
    """The best of a secret number of runs. Everything else about them is forgotten."""

    def run() -> _SelectionRun:
        position = secrets.randbelow(len(candidates))
        trial = candidates[position]
        booster = _train(trial, plan, plan.runs[position], fit)
        value = judge.release(
            _predict(booster, valid.matrix),
            _labels(trial, valid.matrix),
            trial.settings.target,
            plan.score,
            None if valid.persons is None else valid.persons.codes,
            Predicted.from_settings(trial.settings),
        )
        return _SelectionRun(booster, value.rank, value.events, trial, value)

    return best_of(plan.event, run)


def _train(trial: Trial, plan: TuningPlan, expected: Sequence[Event], fit: RowsWithPersons) -> Any:
    """One training, stopped before it releases anything but what is accounted for."""

    def check(release: ReleaseRequest) -> tuple[str, ...]:
        booked = tuple(expected) in plan.event.runs
        if not booked or not release.private or release.events != tuple(expected):
            raise BudgetError(
                "A training of the selection would release something else than was accounted for. "
                "This is a defect of xgb_dp: please report it."
            )
        return ()

    with authorized_by(check), warnings.catch_warnings():
        # Said once for the whole selection; said here, they would count the runs.
        warnings.simplefilter("ignore", PrivacyWarning)
        params = _training_params(trial, plan)
        if fit.persons is not None:
            params["dp_privacy_id"] = fit.persons
        return xgb.train(params, fit.matrix, trial.rounds)


def _predict(booster: Any, dvalid: Any) -> np.ndarray:
    if dvalid.num_row() == 0:
        return np.zeros(0)
    return probabilities(booster, dvalid)


def _labels(trial: Trial, dvalid: Any) -> np.ndarray:
    """Labels; of times both ends, (rows, 2)."""
    if not trial.settings.objective.intervals:
        return np.asarray(dvalid.get_label())
    ends = [dvalid.get_float_info(f"label_{end}_bound") for end in ("lower", "upper")]
    return np.stack(ends, axis=1)


def _listed(
    settings: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]],
) -> list[dict[str, Any]]:
    """The settings one by one; a grid as all its combinations."""
    if isinstance(settings, Mapping):
        values: Iterable[Any] = settings.values()
        if not all(isinstance(v, Sequence) and not isinstance(v, str) for v in values):
            raise PrivacyParameterError(
                "A grid of `settings` must map names to lists of values: {'max_depth': [2, 4]}."
            )
        grid = itertools.product(*settings.values())
        return [dict(zip(settings, combination, strict=True)) for combination in grid]
    if not isinstance(settings, Sequence) or not all(isinstance(s, Mapping) for s in settings):
        raise PrivacyParameterError(
            "`settings` must be a list of dicts of parameters, or a dict of lists."
        )
    if not settings:
        raise PrivacyParameterError("`settings` is empty: give at least one, e.g. [{}].")
    return [dict(s) for s in settings]


def _chosen(trial: Trial, taken: int | None) -> dict[str, Any]:
    """What the noisy number of rows has made of parameters that the setting leaves open."""
    if taken is None:
        return {}
    plan = settings_of_sizes(trial.settings)[1][taken]
    # Shares that pay for what decides among the plans are of no use to a training of this one.
    left = {*trial.settings.given, "dp_budget_shares"}
    return {name: v for name, v in plan.given.items() if name not in left}


def _result(
    best: _SelectionRun,
    judge: Score,
    target: tuple[float, float],
    part: SplitPart | None,
    entry: str | None,
    discovery: Mapping[str, Any] | None,
) -> Selection:
    """The model with the ledger of the whole selection in place of that of its own training.

    The selection has read the rows to score on, too, so its part is not that of the training.
    """
    [training] = ledger.read_ledger(best.booster).trainings
    public = {name: value for name, value in training.public.items() if name != "part"}
    if part is not None:
        public["part"] = part.to_json()
    complete(best.booster, target, public, entry)
    ledger.store(
        best.booster, with_discovery(best.booster, ledger.read_ledger(best.booster), discovery)
    )
    taken = public.get("plan_choice", {}).get("taken")
    return Selection(
        best.booster,
        best.trial.change,
        {**best.trial.params, **_chosen(best.trial, taken)},
        training.rounds,
        best.score.value,
        best.score.noise,
        judge.name,
    )
