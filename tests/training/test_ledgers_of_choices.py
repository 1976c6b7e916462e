"""Ledgers of plans that were chosen: what they claim fits what they say of the choice."""

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.errors import LedgerError

from .families import MANY, data, private_params


def _without_plan(training: dict[str, Any]) -> None:
    del training["events"][0]["options"][0]
    training["public"]["plan_choice"]["taken"] = 0


def _taken_alone(training: dict[str, Any]) -> None:
    [choice] = training["events"]
    training["events"] = choice["first"] + choice["options"][1]


def _taken(position: Any, training: dict[str, Any]) -> None:
    training["public"]["plan_choice"]["taken"] = position


def _no_rounds(training: dict[str, Any]) -> None:
    training["events"][0]["options"][0] = []
    training["public"]["plan_choice"]["plans"][0]["rounds"] = 0


SMALLER: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no choice": lambda t: t["events"][0].update(count=0),
    "two choices": lambda t: t["events"][0].update(count=2),
    "no first release": lambda t: t["events"][0].update(first=[]),
    "a first release that was not made": lambda t: t["events"][0]["first"][0].update(count=0),
    "a plan less": _without_plan,
    "a plan without events": lambda t: t["events"][0]["options"].__setitem__(0, []),
    "a plan of less rounds": lambda t: t["events"][0]["options"][0][-1].update(count=1),
    "the events of the plan alone": _taken_alone,
    "no choice on record": lambda t: t["public"].pop("plan_choice"),
    **{f"plan {i} taken": partial(_taken, i) for i in (0, 2, None, True)},
    "no plans": lambda t: t["public"]["plan_choice"].pop("plans"),
    "no number of rows": lambda t: t["public"]["plan_choice"].pop("rows"),
    "a number of rows in words": lambda t: t["public"]["plan_choice"].update(rows="many"),
    "rounds that are none": lambda t: t["public"]["plan_choice"]["plans"][0].update(rounds=-1),
    "a plan of no rounds": _no_rounds,
    "another plan": lambda t: t["public"]["plan_choice"]["plans"][1].update(eta=0.125),
}


@pytest.mark.parametrize("base_score", [None, 0.25])
def test_a_ledger_of_a_smaller_choice_is_refused(base_score, short):
    """Also by a ledger without a digest: what a family claims fits what is said of it."""
    model = xgb.train(private_params(base_score=base_score), data(MANY))
    accepted = []
    for what, change in SMALLER.items():
        ledger = deepcopy(xgb_dp.privacy_report(model).ledger)
        change(ledger["trainings"][0])
        with suppress(LedgerError):
            xgb_dp.PrivacyReport(ledger)
            accepted.append(what)
    assert not accepted


def test_a_selection_of_smaller_choices_is_refused(short):
    public = private_params(dp_epsilon=None, dp_delta=None)
    selected = xgb_dp.select(public, data(MANY), [{}], epsilon=4.0, delta=1e-6)
    for change in ({"count": 0}, {"first": []}, {"options": [[]]}):
        ledger = deepcopy(selected.report.ledger)
        ledger["trainings"][0]["events"][0]["runs"][0][0] |= change
        with pytest.raises(LedgerError):
            xgb_dp.PrivacyReport(ledger)
