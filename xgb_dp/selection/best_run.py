"""Private selection: repeat training and scoring a secret number of times, and keep the best run.

The rows are divided at random into training rows and scoring rows.

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
from ..evaluation.row_split import Split, split_randomly
from ..parameters import parse
from ..record import ledger
from ..record.authorization import Context, ReleaseRequest, authorized_by, check_free
from ..record.privacy_report import PrivacyReport, privacy_report
from ..record.privacy_warnings import concerns, warn
from ..record.selection_record import Run, best_of, complete
from ..request.default_plans import settings_of_sizes
from ..request.names import flatten, takes
from ..request.params import DEFAULT_ROUNDS
from ..request.schema import Schema, read_schema
from ..training.hook import prepare
from ..training.input_checks import CallSite, check_rows, read_matrix
from ..training.run import Training, released_by, with_discovery
from .plans import ACCOUNTANT, Trial, TuningPlan, plan_runs, trials
from .scores import Predicted, Score, ScoreValue, choose_score, predicted_kind

_ONE_MACHINE = (
    "A selection cannot run on a cluster: every worker would make its own choice among the "
    "trainings, so more than the best model would be released. Select on one machine, then train "
    "on the cluster with the selected settings."
)
# Up to this mean, Poisson repetitions leave the largest budget per run for the same expected rank
# of the best run.
_FEW_RUNS = 4.0

_IDS = "dp_privacy_id"


@dataclass(frozen=True)
class RowsWithPersons:
    """A matrix of rows, and their privacy ids if the privacy unit is a person."""

    matrix: Any
    persons: Persons | None


@dataclass(frozen=True, eq=False)
class SelectionRows:
    """Rows of a selection: one matrix that the selection divides, or both parts of a split."""

    matrices: tuple[Any, ...]
    ids: tuple[Any, ...]  # privacy ids for each matrix; None if every row is its own privacy unit
    part: SplitPart | None  # the part of an outer split that the rows are; None for all rows

    @classmethod
    def from_data(
        cls, params: Mapping[str, Any], data: Any
    ) -> tuple[dict[str, Any], SelectionRows]:
        """Return the parameters without the privacy ids themselves, and the rows with them."""
        whole = not isinstance(data, Split)
        matrices = (data,) if whole else (data.train, data.test)
        for matrix in matrices:
            read_matrix(matrix)
        if not whole and not are_disjoint(find_part(data.train), find_part(data.test), data.unit):
            raise PrivacyRefusal(
                "The training part and the test part are not from the same xgb_dp.split, so a "
                "row could be in both and cost more than the selection accounts for. Nothing was "
                "released. Pass an unmodified xgb_dp.split."
            )
        flat = flatten(params)
        given = flat.get(_IDS)
        if not (whole or given is None or isinstance(given, str) or given is True):
            raise PrivacyParameterError(
                "The privacy ids of a split are fixed when it is made. Pass the ids to "
                f"xgb_dp.split(..., privacy_id=ids), and here pass {_IDS}=True or the name of "
                "their column."
            )
        mark, ids = take_ids(given, matrices[0])
        if ids is not None:
            flat[_IDS] = mark
        if whole:
            return flat, cls(matrices, (ids,), find_part(data, ids))
        return flat, cls(matrices, (ids, ids and data.test.persons), None)

    def with_persons(self, column: str | None) -> tuple[RowsWithPersons, ...]:
        """Return each matrix with its encoded privacy ids."""
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
        """Return the training rows and the scoring rows."""
        if len(sides) == 2:
            return sides[0], sides[1]
        whole = sides[0]
        persons = whole.persons
        parts = split_randomly(whole.matrix, share, None if persons is None else persons.codes)
        first, second = (
            RowsWithPersons(taken, persons and persons.select(rows)) for rows, taken in parts
        )
        return first, second


@dataclass(frozen=True)
class Selection:
    """Result of a private selection: the best of a secret number of private models.

    Attributes:
        booster: The model. Its ledger and report contain the cost of the whole selection.
        setting: The selected setting, as given.
        params: The common parameters with the selected setting, and with the defaults that depend
            on epsilon and the noisy number of rows.
        num_boost_round: Number of boosting rounds of the model.
        score: Noisy score of the model on the scoring rows. Smaller is better for losses
            ("log_loss", "brier" and the regression errors), larger for "accuracy" and "auc". As
            the best of several noisy scores, it is optimistic: the true score tends to be worse.
        score_noise: Approximate standard deviation of the noise in `score`.
        score_name: Name of the score.

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
        """Privacy report of the whole selection; see :func:`xgb_dp.privacy_report`."""
        return privacy_report(self.booster)


@takes()
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
    group_size: int | None = None,
    budget: Budget | str | os.PathLike[str] | None = None,
    note: str = "selection",
) -> Selection:
    """Select the best settings on private rows, for one (epsilon, delta) in total.

    Each of a secret number of runs draws one of the settings at random, trains a private model and
    computes a noisy score on held-out rows (or persons). The best model is returned.

    Privacy: spends epsilon and delta once; they cover the model, its setting and its score. The
    number of runs and the other models are not released. The running time reveals information
    about the number of runs and is not covered by the guarantee.

    Args:
        params: Common parameters of ``xgboost.train``, without ``dp_epsilon`` and ``dp_delta``.
        dtrain: A DMatrix; or an :func:`xgb_dp.split`, with the first part for training and the
            second for scoring.
        settings: List of changes to `params`, or a grid ``{name: [values]}``. Public.
        epsilon: Epsilon of the whole selection in nats, > 0; for ``dp_group_size`` rows or persons.
        delta: Delta of the whole selection, in (0, 1).
        num_boost_round: Number of boosting rounds of settings without ``num_boost_round``.
        score: The score to select by; see :class:`Score`.
        mean_runs: Expected number of runs, in (1, 1000]; by default the number of settings,
            clipped to [2, 4].
        repetitions: Distribution of the number of runs: "poisson" (default for ``mean_runs`` up to
            4), "geometric" (default above), "logarithmic" or "negative_binomial" (shape -1/2). In
            this order, they leave a larger budget for each run.
        validation: Share of the rows (or persons) held out for scoring, in (0, 1). Unused if
            `dtrain` is a split.
        privacy_id: One id per row, if the privacy unit is a person. For a split, True or the name
            of its privacy id column. Same as ``dp_privacy_id`` in `params`.
        group_size: Number of rows (or persons) protected together. Same as ``dp_group_size`` in
            `params`.
        budget: A budget, or the path of its file, to charge.
        note: Description stored with the budget entry; public.

    Returns:
        Selection: The selected model with its setting, score and report.

    Raises:
        PrivacyParameterError: An argument or parameter is missing, unknown or out of range.
        PrivacyRefusal: An argument or parameter would break the privacy guarantee.
        BudgetError: No noise meets the target, or the total of the budget would be exceeded.
            Nothing is released.
        RowDomainError: A row lies outside the declared domain.

    Examples:
        >>> common = {"tree_method": "dp_hist", "objective": "binary:logistic"}
        >>> best = xgb_dp.select(common, data, {"max_depth": [2, 4]}, epsilon=2.0, delta=1e-6)
        >>> best.setting["max_depth"] in (2, 4), best.score_name
        (True, 'log_loss')
    """
    target = parse.parse_target(epsilon, delta)
    given = {"privacy_id": privacy_id, "group_size": group_size}
    unit_params = {f"dp_{name}": value for name, value in given.items() if value is not None}
    params = flatten([*flatten(params).items(), *unit_params.items()])
    with spelling({name: name.removeprefix("dp_") for name in unit_params}):
        params, rows = SelectionRows.from_data(params, dtrain)
        check_free(charged=budget is not None)
        check_single_process(
            "a selection", "the number of runs and the noise of scores are", _ONE_MACHINE
        )
        schema = read_schema(rows.matrices[0])
        candidates = trials(params, _list_settings(settings), num_boost_round, schema, target[0])
        s = candidates[0].settings
        chosen_score = choose_score(score, predicted_kind([trial.settings for trial in candidates]))
        unit, discovery = s.privacy_unit, s["dp_discovered"]
        warn(concerns(*target, s["dp_public_num_rows"], unit))
        runs = _repetitions(repetitions, mean_runs, len(candidates))
        share = parse.parse_probability("validation", validation)
        with progress("select: calibrate"):
            plan = plan_runs(candidates, runs, chosen_score, *target)
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
        with progress("select: train and score"):  # one step: the number of runs is secret
            best = _best_run(candidates, plan, chosen_score, fit, valid)
        return _result(best, chosen_score, target, rows.part, entry, discovery)


def _repetitions(family: str | None, mean_runs: float | None, settings: int) -> Repetitions:
    """Return the distribution of the number of runs."""
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
    """Check every setting on all rows, before anything is charged.

    Otherwise, whether a row outside its domain raises an error would depend on the secret random
    split of the rows and on the secret random choice of settings.
    """
    for trial in candidates:
        prepared = prepare(_training_params(trial, plan), schema, trial.rounds)
        training = Training.of(prepared, Context.current())
        training.check_sums(rows.matrix)
        held = hold(rows.matrix, rows.persons)
        try:
            check_rows(rows.matrix, training.settings, training.widest)
            training.rehearse(rows.matrix, None, CallSite())
        finally:
            held.release()


def _training_params(trial: Trial, plan: TuningPlan) -> dict[str, Any]:
    """Return the parameters of one training."""
    return {
        **trial.params,
        "verbosity": 0,  # output lines would reveal the number of runs
        "dp_epsilon": plan.epsilon,
        "dp_delta": plan.delta,
        "dp_accountant": ACCOUNTANT,  # overrides a preset
        "dp_discovered": None,  # the discovery is charged once, not per run
    }


def _best_run(
    candidates: Sequence[Trial],
    plan: TuningPlan,
    chosen_score: Score,
    fit: RowsWithPersons,
    valid: RowsWithPersons,
) -> _SelectionRun:
    """Return the best of a secret number of runs, and discard the others."""

    def run() -> _SelectionRun:
        position = secrets.randbelow(len(candidates))
        trial = candidates[position]
        booster = _train(trial, plan, plan.runs[position], fit)
        value = chosen_score.release(
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
    """Run one training; raise an error if its releases differ from the accounted events."""

    def check(release: ReleaseRequest) -> tuple[str, ...]:
        charged = tuple(expected) in plan.event.runs
        if not charged or not release.private or release.events != tuple(expected):
            raise BudgetError(
                "The releases of a training differ from those accounted for by the selection. "
                "Nothing was released by this training. This is a bug in xgb_dp: please report it."
            )
        return ()

    with authorized_by(check), warnings.catch_warnings():
        # Already emitted once for the whole selection; here they would reveal the number of runs.
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
    """Return labels, shape (rows,), or both time bounds, shape (rows, 2), for survival times."""
    if not trial.settings.objective.intervals:
        return np.asarray(dvalid.get_label())
    ends = [dvalid.get_float_info(f"label_{end}_bound") for end in ("lower", "upper")]
    return np.stack(ends, axis=1)


def _list_settings(
    settings: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]],
) -> list[dict[str, Any]]:
    """Return the settings as a list, expanding a grid into all combinations."""
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
        raise PrivacyParameterError("`settings` is empty. Pass at least one setting, e.g. [{}].")
    return [dict(s) for s in settings]


def _chosen(trial: Trial, taken: int | None) -> dict[str, Any]:
    """Return the parameters that were chosen by the noisy number of rows."""
    if taken is None:
        return {}
    plan = settings_of_sizes(trial.settings)[1][taken]
    # The budget shares include the cost of choosing among plans, so they are not for one plan.
    left = {*trial.settings.given, "dp_budget_shares"}
    return {name: v for name, v in plan.given.items() if name not in left}


def _result(
    best: _SelectionRun,
    chosen_score: Score,
    target: tuple[float, float],
    part: SplitPart | None,
    entry: str | None,
    discovery: Mapping[str, Any] | None,
) -> Selection:
    """Return the model with the ledger of the whole selection instead of its own training.

    The selection also reads the scoring rows, so its part of an outer split replaces the part
    recorded by the training.
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
        chosen_score.name,
    )
