"""Models name their entries, and a book refuses to continue what it does not know."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xgboost as xgb

import xgb_dp
from tests.callbacks import After
from tests.conftest import private
from xgb_dp import Budget, BudgetError, PrivacyRefusal
from xgb_dp.record.ledger import read_ledger

from ..conftest import arrays

PARAMS = private(objective="binary:logistic", dp_epsilon=0.3, dp_delta=1e-7, max_depth=2, nthread=1)


def data() -> xgb.DMatrix:
    return xgb.DMatrix(*arrays())


def alone(**changes: Any) -> xgb.Booster:
    return xgb.train({**PARAMS, **changes}, data(), 2)


@pytest.fixture
def budget(tmp_path: Path) -> Budget:
    return Budget(tmp_path / "budget.json", epsilon=4.0, delta=1e-6, selection_epsilon=1.5)


def in_block(budget: Budget, model: Any) -> Any:
    with budget.drawing():
        return xgb.train(PARAMS, data(), 2, xgb_model=model)


def by_estimator(budget: Budget, model: Any) -> Any:
    estimator = xgb_dp.DPXGBClassifier(
        classes=[0, 1], dp_epsilon=0.3, dp_delta=1e-7, n_estimators=2, max_depth=2, budget=budget
    )
    return estimator.fit(*arrays(), xgb_model=model).get_booster()


WAYS: list[Callable[[Budget, Any], Any]] = [
    lambda budget, model: budget.train(PARAMS, data(), 2, xgb_model=model),
    in_block,
    by_estimator,
]


@pytest.mark.parametrize("way", WAYS)
def test_a_model_of_another_book_is_not_continued(budget, way, tmp_path):
    other = Budget(tmp_path / "other.json", epsilon=4.0, delta=1e-6)
    before = budget.path.read_bytes()
    for model in (alone(), other.train(PARAMS, data(), 2)):
        with pytest.raises(BudgetError, match="charge_earlier"):
            way(budget, model)
    assert budget.path.read_bytes() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_model_of_the_book_is_continued(budget, way):
    first = budget.train(PARAMS, data(), 2)
    longer = way(budget, first)
    again = way(budget, longer)
    assert [e.id for e in budget.entries] == [t.entry for t in read_ledger(again).trainings]
    assert budget.missing(again) == [] and len(budget.entries) == 3


@pytest.mark.parametrize("way", WAYS)
def test_earlier_trainings_are_charged_whole_on_request(budget, way):
    first = xgb.train(PARAMS, data(), 2, xgb_model=alone(dp_epsilon=0.5))
    longer = way(Budget(budget.path, charge_earlier=True), first)
    entries = budget.entries
    assert [e.id for e in entries] == [t.entry for t in read_ledger(longer).trainings]
    assert {e.state for e in entries} == {"spent"} and len(entries) == 3
    # Each has been chosen after the one before: their charges add up, as those of any entries.
    twin = Budget(
        budget.path.with_name("twin.json"), epsilon=4.0, delta=1e-6, selection_epsilon=1.5
    )
    for training in read_ledger(longer).trainings:
        twin.reserve(training.events)
    assert budget.spent.mu2 == pytest.approx(twin.spent.mu2, rel=1e-9)
    assert budget.missing(longer) == [] and budget.missing(first) == ["training 1", "training 2"]
    way(budget, longer)  # known by now
    budget.verify()


def test_nothing_is_booked_where_both_do_not_fit(tmp_path):
    small = Budget(tmp_path / "small.json", epsilon=0.4, delta=1e-6, charge_earlier=True)
    with pytest.raises(BudgetError, match="exceed"):
        small.train(PARAMS, data(), 2, xgb_model=alone(dp_epsilon=0.39))
    assert small.entries == []


def test_selections_and_evaluations_name_their_entries(budget):
    params = {k: v for k, v in PARAMS.items() if k not in ("dp_epsilon", "dp_delta")}
    chosen = xgb_dp.select(
        params, data(), [{}], epsilon=1.0, delta=1e-7, num_boost_round=2, budget=budget
    ).booster
    with_entries = xgb_dp.evaluate(chosen, data(), epsilon=0.5, delta=1e-7, budget=budget)
    twice = with_entries.calibrated(chosen)
    names = [old.entry for old in read_ledger(twice).releases]
    assert names == [e.id for e in budget.entries] and budget.missing(twice) == []
    in_full = budget.train(PARAMS, data(), 2, xgb_model=twice)
    assert budget.missing(in_full) == []
    loose = xgb_dp.evaluate(chosen, data(), epsilon=0.5, delta=1e-7).calibrated(chosen)
    assert budget.missing(loose) == ["evaluation 1"]
    with pytest.raises(BudgetError, match="charge_earlier"):
        budget.train(PARAMS, data(), 2, xgb_model=loose)
    with budget.drawing():
        seen = xgb_dp.evaluate(chosen, data(), epsilon=0.3, delta=1e-7).calibrated(chosen)
    assert budget.missing(seen) == []


def test_a_name_alone_is_no_entry(budget, tmp_path):
    """The entry of a small release does not stand for the training of another model."""
    budget.train({**PARAMS, "dp_epsilon": 0.05}, data(), 2)
    model = alone()
    ledger = read_ledger(model).with_entries([budget.entries[0].id])
    xgb_dp.record.ledger.store(model, ledger)
    assert budget.missing(model) == ["training 1"]


def test_a_training_that_broke_off_is_known(budget):
    kept = []

    def stop(model: xgb.Booster) -> None:
        kept.append(model.copy())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        budget.train(PARAMS, data(), 3, callbacks=[After(stop)])
    [unfinished] = budget.missing(kept[0])
    assert "not ended" in unfinished
    with pytest.raises(PrivacyRefusal, match="interrupted"):
        budget.train(PARAMS, data(), 2, xgb_model=kept[0])


@pytest.mark.parametrize(
    "more",
    [
        {"dp_preset": "dp_xgb", "dp_feature_bounds": dict.fromkeys(range(4), (-4.0, 4.0))},
        {"subsample": 0.5},
        {"dp_ensemble": 2},
        {"dp_leaf_noise": "laplace"},
        {"dp_group_size": 3},
        {"num_parallel_tree": 2},
        {"max_depth": None},
    ],
)
def test_what_is_drawn_is_what_is_booked(budget, more):
    budget = Budget(budget.path, any_group_size=True)
    rounds = [4] if more != {"max_depth": None} else []  # without a depth, rounds may be open
    model = budget.train({**PARAMS, **more}, data(), *rounds)
    assert budget.missing(model) == []
    if rounds:
        assert budget.missing(budget.train({**PARAMS, **more}, data(), 2, xgb_model=model)) == []
