"""Calibrate the runs of a selection so that the whole selection meets its target.

The calibration uses only public inputs: parameters, the schema of the columns and the target.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..accounting import Event, GaussianEvent, Repetitions, SelectionEvent, make_accountant
from ..accounting.curve import Curve, doubled, narrow
from ..accounting.gaussian import gaussian_delta, gaussian_epsilon
from ..accounting.selection import SelectionCurve
from ..accounting.units import all_same
from ..errors import BudgetError, PrivacyParameterError, PrivacyRefusal, alias, named
from ..mechanisms.splits import default_trees
from ..parameters import parse
from ..parameters.config import Config
from ..planning import calibrated
from ..record.authorization import policy_in_force
from ..request.default_plans import settings_of_sizes
from ..request.names import Request, flatten
from ..request.params import changed
from ..request.schema import Schema
from ..training.hook import checked
from .scores import Score

Params = dict[str, Any]

ACCOUNTANT = "exact"
"""Accountant of the selection and of its trainings."""

_REFUSED = {
    "dp_public_num_rows": "the random split into training and scoring rows is secret, and so is "
    "the number of training rows",
    "dp_public_evals": "the runs have no evaluation sets",
    "dp_accountant": "a selection has its own accountant",
}
_SCORE_MU = 0.97  # relative to the mu of a run, so that the score does not dominate the cost
_ATTEMPTS = 8


@dataclass(frozen=True)
class Trial:
    """One candidate setting of a selection."""

    params: Params  # without `dp_epsilon` and `dp_delta`, with defaults that depend on epsilon
    change: Params  # changes to the common parameters, as given
    rounds: int  # boosting rounds; the default if not given
    settings: Config  # validated `params`


@dataclass(frozen=True)
class TuningPlan:
    """Plan of a selection, fixed before it reads any row."""

    event: SelectionEvent  # for the ledger
    runs: tuple[tuple[Event, ...], ...]  # releases of the training of each trial
    epsilon: float  # `dp_epsilon` of every training
    delta: float  # `dp_delta` of every training

    @property
    def score(self) -> GaussianEvent:
        """Release of the score of a run."""
        [event] = self.event.score
        assert isinstance(event, GaussianEvent)
        return event


def trials(
    params: Mapping[str, Any],
    changes: Sequence[Mapping[str, Any]],
    rounds: int,
    schema: Schema,
    epsilon: float,
) -> list[Trial]:
    """Return all settings, validated like the parameters of a training."""
    common = flatten(params)  # only once, because it can be an iterator
    out = [_trial(common, change, rounds, schema, epsilon) for change in changes]
    if not all_same(c.settings.privacy_unit for c in out):
        raise PrivacyParameterError(
            "The settings of a selection have different privacy units, but need the same one. Set "
            f"{named.dp_privacy_id} and {named.dp_group_size} in `params`."
        )
    if any(c.settings["dp_discovered"] != out[0].settings["dp_discovered"] for c in out):
        raise PrivacyParameterError(
            "The settings of a selection use different column discoveries, but the selection "
            "accounts for only one. Set `dp_discovered` in `params`."
        )
    kinds = {(c.settings.kind, c.settings.classes, c.settings.targets) for c in out}
    if len(kinds) != 1:
        raise PrivacyParameterError(
            "All settings of a selection must have the same objective, classes and target "
            "bounds, because their scores are compared. Set these in `params`."
        )
    return out


def _trial(
    common: Params, change: Mapping[str, Any], rounds: int, schema: Schema, epsilon: float
) -> Trial:
    others = dict(change)
    rounds = others.pop("num_boost_round", rounds)
    if not isinstance(rounds, parse.OpenRounds):
        rounds = parse.parse_int(alias("num_boost_round"), rounds, 0, 100_000)
    user = {**common, **flatten(others)}
    user = {name: value for name, value in user.items() if value is not None}
    for name in ("dp_epsilon", "dp_delta"):
        if name in user:
            raise PrivacyParameterError(
                f"`{name}` cannot be set for individual trainings of a selection. Remove it; it "
                "is derived from the budget of the selection."
            )
    request = Request.parse({**user, "dp_epsilon": epsilon, "dp_delta": 1e-6}, rounds)
    settings = checked(request, schema, policy_in_force())
    for name, reason in _REFUSED.items():
        if name in user and settings[name]:
            raise PrivacyRefusal(f"`{name}` is refused in a selection: {reason}.")
    if len(settings_of_sizes(settings)[1]) == 1:  # else the trees depend on the number of rows
        trees = default_trees(settings)
        user, settings = user | trees, changed(settings, trees)
    return Trial(user, dict(change), rounds, settings)


class _Gaussian(Curve):
    """Privacy curve of a Gaussian mechanism, as a first approximation of a run."""

    def __init__(self, mu: float) -> None:
        self._mu = mu

    def epsilon(self, delta: float) -> float:
        return gaussian_epsilon(self._mu, delta) if delta > 0.0 else math.inf

    def delta(self, epsilon: float) -> float:
        return gaussian_delta(epsilon, self._mu)


def plan_runs(
    settings: Sequence[Trial], repetitions: Repetitions, score: Score, epsilon: float, delta: float
) -> TuningPlan:
    """Find the least noise of trainings and score for which the selection meets its target."""
    unit = settings[0].settings.privacy_unit
    run_delta = delta / repetitions.mean
    mu = _guess(repetitions, epsilon, delta)
    run_epsilon = gaussian_epsilon(mu, run_delta) or epsilon
    best: TuningPlan | None = None
    for _ in range(_ATTEMPTS):
        scored = score.event(_SCORE_MU * mu / unit.group_size, of_persons=unit.of_persons)
        target = {"dp_epsilon": run_epsilon, "dp_delta": run_delta, "dp_accountant": ACCOUNTANT}
        runs = tuple(calibrated(changed(trial.settings, target)).events for trial in settings)
        event = SelectionEvent(repetitions, tuple(dict.fromkeys(runs)), (scored,), 1)
        certified = make_accountant(ACCOUNTANT, [event]).get_epsilon(delta, unit.group_size)
        if certified <= epsilon and (best is None or run_epsilon > best.epsilon):
            best = TuningPlan(event, runs, run_epsilon, run_delta)
        if 0.99 * epsilon <= certified <= epsilon:
            break
        factor = min(0.996 * epsilon / certified, 4.0) if certified > 0.0 else 4.0
        mu, run_epsilon = mu * factor, run_epsilon * factor
    if best is None:
        raise BudgetError(
            f"No noise level meets epsilon={epsilon:g}, delta={delta:g} for this selection. Use "
            "fewer runs, fewer rounds or a larger epsilon."
        )
    return best


@lru_cache(maxsize=64)
def _guess(repetitions: Repetitions, epsilon: float, delta: float) -> float:
    """Return the largest mu for which a selection among Gaussian runs meets the target."""

    def fits(mu: float) -> bool:
        return SelectionCurve(repetitions, [_Gaussian(mu)]).epsilon(delta) < epsilon

    return max(narrow(fits, *doubled(fits, 1e3), 30)[0], 1e-9)
