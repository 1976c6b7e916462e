"""What the library enforces is what a ledger counts, and nothing cheaper can be written down."""

import json
from dataclasses import replace
from typing import Any

import pytest
import xgboost as xgb

import xgb_dp
from tests.conftest import private
from xgb_dp.accounting.enforced import Enforced
from xgb_dp.accounting.events import GaussianEvent
from xgb_dp.accounting.planned import claimed_events
from xgb_dp.audit import PreparedTraining
from xgb_dp.errors import BudgetError, LedgerError
from xgb_dp.record import claim
from xgb_dp.record.claim import Draws, Told
from xgb_dp.record.form import Ledger
from xgb_dp.training import plan as plans
from xgb_dp.training.run import Training

from ..conftest import arrays
from ..hand_made import UNIT2, enforced
from ..stated import describe_plan
from ..training.plans import texts_of

PARAMS = private(objective="binary:logistic", dp_epsilon=2.0, max_depth=2, nthread=1)


@pytest.fixture(scope="module")
def model() -> xgb.Booster:
    return xgb.train(PARAMS, xgb.DMatrix(*arrays()), 2)


def ledger_of(model: xgb.Booster) -> dict[str, Any]:
    record = json.loads(str(model.attr("dp_ledger")))
    del record["digest"]
    return dict(record)


def test_figures_survive_a_ledger(model):
    for training in Ledger.from_json(ledger_of(model)).trainings:
        for figures in training.enforced:
            assert Enforced.from_json(json.loads(json.dumps(figures.to_json()))) == figures


def test_a_range_below_that_of_the_score_is_refused():
    [figures] = enforced()
    assert Enforced.from_json(figures)
    for smaller in (0, 1, figures["score_range"] - 1, 1 << 23):
        with pytest.raises(LedgerError, match="range"):
            Enforced.from_json(figures | {"score_range": smaller})


def test_a_bound_of_another_unit_is_refused():
    """The bound of a row would make the sensitivities of a person too small."""
    [figures] = enforced()
    for unit, of_person in (("person", False), ("row", True)):
        bound = {**figures["bound"], "of_person": of_person}
        with pytest.raises(LedgerError, match="another unit"):
            Enforced.from_json(figures | {"unit": unit, "bound": bound})


def test_draws_that_no_plan_has_are_refused():
    figures = Enforced.from_json(*enforced())
    gaussian = {"mechanism": "gaussian", "sigma2": 1 << 40, "count": 1}
    leaves = figures.event(gaussian | {"release": "leaves"})
    assert leaves == GaussianEvent("leaves", UNIT2, 1 << 40, 2, 1)
    for name in ("intercept", "rows", "columns", "candidates", "unheard of"):
        with pytest.raises(LedgerError):
            figures.event(gaussian | {"release": name})
    with pytest.raises(LedgerError, match="Laplace"):
        figures.event({"mechanism": "laplace", "scale": 9, "count": 1, "release": "leaves"})
    splits = {"mechanism": "exponential", "release": "splits", "eps_num": 1, "eps_bits": 40}
    with pytest.raises(LedgerError, match="another range"):
        figures.event(splits | {"count": 1, "range": figures.score_range - 1})


@pytest.mark.parametrize("part", ["bound", "candidates", "labels", None])
def test_a_ledger_of_other_figures_is_damaged(model, part):
    """Each number by itself: what the events do not depend on is not refused, all else is."""
    record = ledger_of(model)
    figures = record["trainings"][0]["enforced"]
    refused = []
    for position, one in enumerate(figures):
        inner = one if part is None else one[part]
        for name, value in list((inner or {}).items()):
            if type(value) in (int, float):
                inner[name] = value * 2
                try:
                    Ledger.from_json(record)
                except LedgerError:
                    refused.append((position, name))
                inner[name] = value
    assert refused
    assert Ledger.from_json(record)


def test_a_private_ledger_says_what_was_enforced(model):
    record = ledger_of(model)
    for missing in ([], record["trainings"][0]["enforced"][:-1]):
        record["trainings"][0]["enforced"] = missing
        with pytest.raises(LedgerError, match="enforced"):
            Ledger.from_json(record)


def test_another_plan_than_was_claimed_is_not_completed():
    """The booster that has grown the trees names the plan that it has followed."""

    class Ends(xgb.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            plan = json.loads(texts_of(model)[0])
            with pytest.raises(LedgerError, match="another plan"):
                claim.drawn(model, Told(plans.dump(plan | {"depth": plan["depth"] + 1})))
            assert claim.drawn(model, Told(texts_of(model)[0])).trees
            return False

    xgb.train(PARAMS, xgb.DMatrix(*arrays()), 2, callbacks=[Ends()])


def test_requests_are_for_the_sums_that_are_claimed(monkeypatch):
    release = Draws.release

    def louder(self: Draws, dtrain: Any, request: Any, position: int = 0) -> Any:
        return release(self, dtrain, {**request, "shift": request["shift"] + 1}, position)

    monkeypatch.setattr(Draws, "release", louder)
    monkeypatch.setattr(claim.native, "release_intercept", lambda *_: pytest.fail("it was drawn"))
    with pytest.raises(BudgetError, match="other sums"):
        xgb.train(PARAMS, xgb.DMatrix(*arrays()), 2)


def test_plans_that_begin_otherwise_are_no_choice():
    event = GaussianEvent("rows", 1, 1 << 20, 1, 1)
    other = replace(event, sigma2=1 << 21)
    assert claimed_events([[event]]) == (event,)
    with pytest.raises(LedgerError, match="same release"):
        claimed_events([[event, event], [other, event]])


def test_told_events_are_those_of_the_plan(model):
    assert xgb_dp.privacy_report(model).private
    prepared = PreparedTraining(PARAMS, xgb.DMatrix(*arrays()), rounds=2)
    plan = prepared.plan(test_key="07" * 32)
    text = plans.dump(plan)
    assert [e.to_json() for e in Told(text).events] == describe_plan(text)["events"]


LOUDER = {
    "noise": lambda plan: {"leaf": {**plan["leaf"], "sigma2": 1 << 20}},
    "selections": lambda plan: {"selection": {**plan["selection"], "eps_num": (1 << 47) - 1}},
    "range": lambda plan: {"selection": {**plan["selection"], "range": 1}},
    "grid": lambda plan: {"grid_bits": 20},
    "rounds": lambda plan: {"rounds": plan["rounds"] + 1},
    "depth": lambda plan: {"depth": plan["depth"] + plan["split_levels"]},
    "bound": lambda plan: {"row_bound": {**plan["row_bound"], "gradient_bound": "2.0"}},
}


@pytest.mark.parametrize("name", list(LOUDER))
def test_no_tree_is_grown_that_the_ledger_does_not_claim(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that a client changes after the claim: a training that is broken off would lie."""
    grown: list[int] = []

    class Grown(xgb.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            grown.append(epoch)
            return False

    start = Training._started

    def changed(self: Training, *args: Any) -> Any:
        [option] = self.options
        text = plans.dump({**option.plan, **LOUDER[name](option.plan)})
        return start(replace(self, options=(replace(option, text=text),)), *args)

    monkeypatch.setattr(Training, "_started", changed)
    with pytest.raises(xgb.core.XGBoostError, match="does not account for this training"):
        xgb.train(PARAMS, xgb.DMatrix(*arrays()), 3, callbacks=[Grown()])
    assert not grown


def test_labels_get_the_noise_that_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    release = Draws.release

    def quieter(self: Draws, dtrain: Any, request: Any, position: int = 0) -> Any:
        return release(self, dtrain, {**request, "sigma2": request["sigma2"] // 2}, position)

    def twice(self: Draws, dtrain: Any, request: Any, position: int = 0) -> Any:
        release(self, dtrain, request, position)
        with monkeypatch.context() as patch:
            patch.setattr(claim.native, "release_intercept", lambda *_: pytest.fail("drawn"))
            return release(self, dtrain, request, position)

    for other in (quieter, twice):
        monkeypatch.setattr(Draws, "release", other)
        with pytest.raises(BudgetError, match="less noise than was claimed, or for one more"):
            xgb.train(PARAMS, xgb.DMatrix(*arrays()), 2)
