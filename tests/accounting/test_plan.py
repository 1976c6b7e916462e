"""A ledger counts the mechanisms of the plan, and nothing cheaper can be written down."""

import json
from dataclasses import replace
from typing import Any

import pytest
import xgboost as xgb

import xgb_dp
from tests.callbacks import After
from tests.conftest import private
from xgb_dp.accounting.events import GaussianEvent
from xgb_dp.audit import PreparedTraining
from xgb_dp.errors import BudgetError, LedgerError
from xgb_dp.mechanisms.plan import Mechanisms, Plan, charged_events
from xgb_dp.planning import dump
from xgb_dp.record import claim
from xgb_dp.record.claim import ReleaseRecorder
from xgb_dp.record.ledger_model import Ledger

from ..conftest import arrays
from ..hand_made import UNIT2, hand_made, mechanisms
from ..stated import describe_plan
from ..training.plans import strings_of

PARAMS = private(objective="binary:logistic", dp_epsilon=2.0, max_depth=2, nthread=1)


@pytest.fixture(scope="module")
def model() -> xgb.Booster:
    return xgb.train(PARAMS, xgb.DMatrix(*arrays()), 2)


def ledger_of(model: xgb.Booster) -> dict[str, Any]:
    record = json.loads(str(model.attr("dp_ledger")))
    del record["digest"]
    return dict(record)


def test_mechanisms_survive_a_ledger(model):
    for training in Ledger.from_json(ledger_of(model)).trainings:
        for one in training.mechanisms:
            assert Mechanisms.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_a_range_below_that_of_the_score_is_refused():
    [one] = mechanisms()
    assert Mechanisms.from_json(one)
    splits = one["mechanisms"]["splits"]
    for smaller in (0, 1, splits["range"] - 1, 1 << 23):
        other = one["mechanisms"] | {"splits": splits | {"range": smaller}}
        with pytest.raises(LedgerError, match="range"):
            Mechanisms.from_json(one | {"mechanisms": other})


def test_a_bound_of_another_unit_is_refused(model):
    """The bound of a row would make the sensitivities of a person too small."""
    record = ledger_of(model)
    for one in record["trainings"][0]["mechanisms"]:
        one["bound"]["of_person"] = True
    with pytest.raises(LedgerError, match="differs from the sensitivity of its mechanism"):
        Ledger.from_json(record)


def test_draws_that_no_plan_has_are_refused():
    one = hand_made()
    gaussian = {"mechanism": "gaussian", "sigma2": 1 << 40, "count": 1}
    leaves = one.event_of_draw(gaussian | {"release": "leaves"})
    assert leaves == GaussianEvent("leaves", UNIT2, 1 << 40, 2, 1)
    for name in ("intercept", "rows", "columns", "candidates", "unheard of"):
        with pytest.raises(LedgerError):
            one.event_of_draw(gaussian | {"release": name})
    with pytest.raises(LedgerError, match="differs from the plan"):
        one.event_of_draw({"mechanism": "laplace", "scale": 9, "count": 1, "release": "leaves"})
    splits = {"mechanism": "exponential", "release": "splits", "eps_num": 1, "eps_bits": 40}
    with pytest.raises(LedgerError, match="another range"):
        one.event_of_draw(splits | {"count": 1, "range": (2 << 20) - 1})


@pytest.mark.parametrize("part", ["bound", "candidates", "intercept", "leaves", None])
def test_a_ledger_of_other_mechanisms_is_damaged(model, part):
    """Each number by itself: what the events do not depend on is not refused, all else is."""
    record = ledger_of(model)
    refused = []
    for position, one in enumerate(record["trainings"][0]["mechanisms"]):
        inner = one if part is None else one["bound"] if part == "bound" else None
        inner = one["mechanisms"][part] if inner is None else inner
        inner = inner.get("labels", inner)
        for name, value in list(inner.items()):
            if type(value) in (int, float):
                inner[name] = value * 2
                try:
                    Ledger.from_json(record)
                except LedgerError:
                    refused.append((position, name))
                inner[name] = value
    assert refused
    assert Ledger.from_json(record)


def test_a_private_ledger_lists_its_mechanisms(model):
    record = ledger_of(model)
    for missing in ([], record["trainings"][0]["mechanisms"][:-1]):
        record["trainings"][0]["mechanisms"] = missing
        with pytest.raises(LedgerError, match="mechanisms"):
            Ledger.from_json(record)


def test_another_plan_than_was_claimed_is_not_completed():
    """The booster that has grown the trees names the plan that it has followed."""

    def act(model: xgb.Booster) -> None:
        plan = json.loads(strings_of(model)[0])
        with pytest.raises(LedgerError, match="a different plan"):
            claim.read_draws(model, Plan(dump(plan | {"depth": plan["depth"] + 1})))
        assert claim.read_draws(model, Plan(strings_of(model)[0])).trees

    xgb.train(PARAMS, xgb.DMatrix(*arrays()), 2, callbacks=[After(act)])


def test_a_request_has_the_noise_and_the_sums_of_the_plan(monkeypatch):
    """A client names a mechanism, and says where labels are clipped: nothing else, and once."""
    release, requests = ReleaseRecorder.release, []
    draw = claim.native.release_before_trees
    monkeypatch.setattr(
        claim.native,
        "release_before_trees",
        lambda d, request: requests.append(request) or draw(d, request),
    )

    def changed(self: ReleaseRecorder, dtrain: Any, name: str, *more: Any) -> Any:
        drawn = len(requests)
        for state in ({"sigma2": 1}, {"shift": 1}, {"kind": "rows"}, {"noise_free": True}):
            with pytest.raises(BudgetError, match="more releases than were claimed"):
                release(self, dtrain, name, state)
        assert len(requests) == drawn
        sums = release(self, dtrain, name, *more)
        assert {**requests[-1], "again": None} == {**self._plans[0].request(name), "again": None}
        with pytest.raises(BudgetError, match="more releases than were claimed"):
            release(self, dtrain, name, *more)
        assert len(requests) == drawn + 1
        return sums

    monkeypatch.setattr(ReleaseRecorder, "release", changed)
    xgb.train(PARAMS, xgb.DMatrix(*arrays()), 2)
    assert len(requests) == 1


def test_plans_that_begin_otherwise_are_no_choice():
    event = GaussianEvent("rows", 1, 1 << 20, 1, 1)
    other = replace(event, sigma2=1 << 21)
    assert charged_events([[event]]) == (event,)
    with pytest.raises(LedgerError, match="same release"):
        charged_events([[event, event], [other, event]])


def test_a_plan_has_the_events_of_its_text(model):
    assert xgb_dp.privacy_report(model).private
    prepared = PreparedTraining(PARAMS, xgb.DMatrix(*arrays()), rounds=2)
    plan = prepared.plan(test_key="07" * 32)
    text = dump(plan)
    events = [e.to_json() for e in Plan(text).events if e.label != "intercept"]
    assert events == describe_plan(text)["events"]


@pytest.fixture(scope="module")
def sampled_model() -> xgb.Booster:
    return xgb.train(PARAMS | {"subsample": 0.5}, xgb.DMatrix(*arrays()), 2)


CHEAPER = {
    "a smaller rate": lambda t: t["events"][-1].update(rate_num=1),
    "fewer rounds": lambda t: t["events"][-1].update(count=1),
    "fewer selections": lambda t: t["events"][-1]["events"][1].update(count=0),
    "labels from samples": lambda t: t["events"][-1]["events"].append(t["events"].pop(0)),
    "all rows in the plan": lambda t: t["mechanisms"][0].update(sampling_num=1 << 32),
    "an event twice": lambda t: t["events"].append(t["events"][0]),
    "more trees": lambda t: t.update(rounds=2 * t["rounds"], trees=2 * t["trees"]),
}


@pytest.mark.parametrize("name", list(CHEAPER))
def test_events_are_all_of_the_plan(name: str, sampled_model: xgb.Booster) -> None:
    """Each event alone has a right sensitivity; together they are not those of the plan."""
    record = ledger_of(sampled_model)
    assert Ledger.from_json(record)
    CHEAPER[name](record["trainings"][0])
    with pytest.raises(LedgerError):
        Ledger.from_json(record)
