"""Events, budgets and parts: what the books say, before anything is drawn."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from tests.evaluation.tasks import COMMON, PRIVATE, TARGET, refused, rows, stock
from xgb_dp.accounting import Unit, make_accountant
from xgb_dp.data.ids import SplitPart
from xgb_dp.evaluation import measure
from xgb_dp.record.ledger import read_ledger
from xgb_dp.selection import best_run
from xgb_dp.testing import fixed_noise


@pytest.fixture
def budget(tmp_path: Path) -> xgb_dp.Budget:
    return xgb_dp.Budget(tmp_path / "budget.json", epsilon=2.0, delta=1e-5)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return rows(3000)


@pytest.fixture(scope="module")
def model(data: Any) -> Any:
    return stock(*data)


def classifier(**changes: Any) -> Any:
    bounds = PRIVATE["dp_feature_bounds"]
    return xgb_dp.DPXGBClassifier(
        classes=2, feature_bounds=bounds, n_estimators=2, **{**TARGET, **changes}
    )


def part_in_ledger(model: Any) -> Any:
    return read_ledger(model).trainings[-1].public.get("part")


def test_the_book_has_the_event_before_anything_is_drawn(budget, data, model, monkeypatch):
    def die(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "release", die)
    with pytest.raises(KeyboardInterrupt):
        xgb_dp.evaluate(model, data, budget=budget, note="judge", **TARGET)
    (entry,) = budget.entries
    event = entry.events[0]
    assert (entry.note, entry.state) == ("judge", "reserved")
    assert (event.label, event.unit) == ("evaluation", "row")
    monkeypatch.undo()
    report = xgb_dp.evaluate(model, data, budget=budget, **TARGET)
    assert [e.state for e in budget.entries] == ["reserved", "spent"]
    assert budget.entries[1].events == report.cost.events
    budget.verify()


def test_what_exceeds_the_budget_releases_nothing(budget, data, model, monkeypatch):
    monkeypatch.setattr(measure, "release", lambda *args: pytest.fail("released"))
    refused(xgb_dp.BudgetError, "exceed", model, data, epsilon=3.0, budget=budget)
    assert budget.entries == []


def test_an_open_block_books_evaluations(budget, data, model):
    with budget.drawing("block"):
        xgb_dp.evaluate(model, data, **TARGET)
        refused(xgb_dp.BudgetError, "nest", model, data, budget=budget)
    (entry,) = budget.entries
    assert (entry.note, entry.state, entry.events[0].label) == ("block", "spent", "evaluation")


def test_parts_of_a_split_cost_in_parallel(budget, data):
    parts = xgb_dp.split(xgb.DMatrix(*data), test=0.4)
    model = budget.train(PRIVATE, parts.train, 3)
    trained = budget.spent
    report = xgb_dp.evaluate(model, parts, epsilon=0.3, delta=1e-6, budget=budget)
    assert report.cost.parallel and "contributes to only one of them" in report.statement()
    assert budget.spent == trained  # the larger of both
    assert "on part 'test' of a split" in budget.statement()
    assert "the larger total charge counts" in budget.statement()
    assert [e.part for e in budget.entries] == [
        SplitPart(parts.name, "train", "row"),
        SplitPart(parts.name, "test", "row"),
    ]
    # On all rows it would have added up, and so does what reads all rows now.
    xgb_dp.evaluate(model, data, epsilon=0.1, delta=1e-6, budget=budget)
    assert budget.spent.mu2 > trained.mu2
    budget.verify()
    # The rows that trained have no room for as much again as the hold-out has.
    more = {"epsilon": 2.0, "delta": 1e-6, "budget": budget}
    with pytest.raises(xgb_dp.BudgetError, match="exceed"):
        xgb_dp.evaluate(model, parts.train, **more)
    xgb_dp.evaluate(model, parts.test, **more)
    budget.verify()


def test_without_knowledge_costs_add_up(budget, data):
    X, y = data
    model = budget.train(PRIVATE, xgb.DMatrix(X, y), 3)
    report = xgb_dp.evaluate(model, (X, y), budget=budget, epsilon=0.3, delta=1e-6)
    assert not report.cost.parallel and "add up" in report.statement()
    total = sum(e.charge.mu2 for e in budget.entries)
    assert budget.spent.mu2 == pytest.approx(total)
    parts = xgb_dp.split((X, y))
    other = xgb_dp.split((X, y))
    trained = xgb.train(PRIVATE, xgb.DMatrix(*parts.train.copy()), 3)  # a matrix of its own
    assert not xgb_dp.evaluate(trained, parts, **TARGET).cost.parallel
    estimator = classifier().fit(*parts.train.copy())
    assert not xgb_dp.evaluate(estimator, parts, **TARGET).cost.parallel
    estimator = classifier().fit(parts.train)
    assert xgb_dp.evaluate(estimator, parts, **TARGET).cost.parallel
    for same_rows in (other, parts.train, parts.test.copy()):
        assert not xgb_dp.evaluate(estimator, same_rows, **TARGET).cost.parallel
    again = xgb.train(PRIVATE, xgb.DMatrix(X, y), 2, xgb_model=estimator.get_booster())
    assert not xgb_dp.evaluate(again, parts, **TARGET).cost.parallel


def test_figures_of_rows_for_a_model_of_persons_are_warned_of(data):
    X, y = data
    ids = np.arange(len(y)) // 2
    model = xgb.train({**PRIVATE, "dp_privacy_id": ids}, xgb.DMatrix(X, y), 1)
    with pytest.warns(xgb_dp.PrivacyWarning, match="model protects persons"):
        of_rows = xgb_dp.evaluate(model, data, **TARGET)
    assert "Figures are per row" in of_rows.statement()
    with warnings.catch_warnings():
        warnings.simplefilter("error", xgb_dp.PrivacyWarning)
        report = xgb_dp.evaluate(model, data, privacy_id=ids, **TARGET)
    assert report.cost.unit.name == "person"
    assert "Figures are per person" in report.statement()


def test_a_model_without_a_ledger_is_said_to_have_none(data, model):
    assert "no ledger" in xgb_dp.evaluate(model, data, **TARGET).statement()


def test_weights_of_other_rows_are_of_no_part(data):
    parts = xgb_dp.split(data)
    ones = np.ones(len(parts.train.copy()[1]))
    for way, arguments in (("fit", {}), ("fit_select", {"settings": [{}]})):
        for weight, name in ((None, "train"), (ones, None)):
            estimator = classifier(epsilon=2.0, max_weight=1.0)
            getattr(estimator, way)(parts.train, sample_weight=weight, **arguments)
            assert (part_in_ledger(estimator.get_booster()) or {}).get("name") == name
    margins = classifier(dp_base_margin=True).fit(parts.train, base_margin=0.0 * ones)
    assert part_in_ledger(margins.get_booster()) is None


SELECTED = {"epsilon": 1.9, "delta": 1e-6, "num_boost_round": 1}


def test_a_selection_on_a_part_is_known(data):
    parts = xgb_dp.split(xgb.DMatrix(*data))
    chosen = xgb_dp.select(COMMON, parts.train, [{}], **SELECTED)
    assert xgb_dp.evaluate(chosen.booster, parts, **TARGET).cost.parallel


def test_a_selection_on_a_split_reads_both_parts(tmp_path, data):
    """Trained on one part and scored on the other: what is evaluated afterwards adds up."""
    parts = xgb_dp.split(xgb.DMatrix(*data), test=0.4)
    budget = xgb_dp.Budget(tmp_path / "s.json", epsilon=4.0, delta=1e-5, selection_epsilon=2.0)
    chosen = xgb_dp.select(COMMON, parts, [{}, {"max_depth": 2}], **SELECTED, budget=budget)
    assert chosen.report.epsilon <= 1.9
    assert part_in_ledger(chosen.booster) is None
    assert budget.entries[0].part is None
    assert not xgb_dp.evaluate(chosen.booster, parts, **TARGET).cost.parallel


def test_a_selection_takes_a_split_as_it_was_made_only(data):
    """It counts a row for the training or for the score, which must be so."""
    X, y = data
    parts = xgb_dp.split(xgb.DMatrix(X, y))
    again = xgb_dp.split(xgb.DMatrix(X, y))
    for wrong in (
        replace(parts, test=again.test),
        replace(parts, test=parts.train),
        replace(parts, train=xgb.DMatrix(X, y)),
    ):
        with pytest.raises(xgb_dp.PrivacyRefusal, match="not from the same"):
            xgb_dp.select(COMMON, wrong, [{}], **SELECTED)
    xgb_dp.select(COMMON, parts, [{}], **SELECTED)
    ids = pd.Series(np.arange(len(y)) // 3, name="patient")
    parts = xgb_dp.split(xgb.DMatrix(X, y), privacy_id=ids)
    with pytest.raises(xgb_dp.PrivacyParameterError, match=r"of xgb_dp\.split"):
        xgb_dp.select({**COMMON, "dp_privacy_id": "hospital"}, parts, [{}], **SELECTED)
    chosen = xgb_dp.select({**COMMON, "dp_privacy_id": "patient"}, parts, [{}], **SELECTED)
    assert chosen.report.unit.column == "patient"


def test_a_calibrated_model_holds_sums_of_the_hold_out(data):
    """Rows of the hold-out pay for the calibration, and again for what is judged afterwards."""
    parts = xgb_dp.split(xgb.DMatrix(*data), test=0.4)
    model = xgb.train(PRIVATE, parts.train, 2)
    report = xgb_dp.evaluate(model, parts, **TARGET)
    assert report.cost.parallel
    calibrated = report.calibrated(model)
    again = xgb_dp.evaluate(calibrated, parts, **TARGET)
    assert not again.cost.parallel and "add up" in again.statement()
    assert not xgb_dp.evaluate([model, calibrated], parts, **TARGET).cost.parallel


def test_the_models_of_a_selection_see_their_part_alone(data, monkeypatch):
    seen: dict[str, set[int]] = {"train": set(), "score": set()}
    train, predict = best_run._train, best_run._predict

    def training(trial: Any, plan: Any, expected: Any, fit: Any) -> Any:
        seen["train"].add(fit.matrix.num_row())
        return train(trial, plan, expected, fit)

    def scored(booster: Any, matrix: Any) -> Any:
        seen["score"].add(matrix.num_row())
        return predict(booster, matrix)

    monkeypatch.setattr(best_run, "_train", training)
    monkeypatch.setattr(best_run, "_predict", scored)
    X, y = data
    ids = np.arange(len(y)) // 3
    parts = xgb_dp.split(xgb.DMatrix(X, y), test=0.3, privacy_id=ids)
    chosen = xgb_dp.select({**COMMON, "dp_privacy_id": True}, parts, [{}], **SELECTED)
    assert seen == {"train": {parts.train.num_row()}, "score": {parts.test.num_row()}}
    assert chosen.report.unit.name == "person"
    with pytest.raises(xgb_dp.PrivacyParameterError, match="dp_privacy_id=True"):
        xgb_dp.select({**COMMON, "dp_privacy_id": ids}, parts, [{}], **SELECTED)
    rows_only = xgb_dp.split(xgb.DMatrix(X, y))
    with pytest.raises(xgb_dp.PrivacyParameterError, match="privacy_id=ids"):
        xgb_dp.select({**COMMON, "dp_privacy_id": True}, rows_only, [{}], **SELECTED)
    with pytest.raises(xgb_dp.PrivacyParameterError, match="DMatrix"):
        xgb_dp.select(COMMON, xgb_dp.split((X, y)), [{}], **SELECTED)


def test_groups_of_a_budget(tmp_path):
    X, y = rows(1200)
    ids = pd.Series(np.repeat(np.arange(300), 4), name="patient")
    budget = xgb_dp.Budget(
        tmp_path / "b.json", epsilon=2.0, delta=1e-5, unit="person", group_size=3
    )
    parts = xgb_dp.split((X, y), test=0.5, privacy_id=ids)
    report = xgb_dp.evaluate(stock(X, y), parts, budget=budget, **TARGET)
    assert report.cost.unit == Unit("person", 3, "patient") and not report.cost.parallel
    assert "all rows of any 3 persons" in report.statement()
    assert json.loads(report.to_json())["group_size"] == 3
    exact = make_accountant("exact", report.cost.events)
    assert 0.95 <= exact.get_epsilon(1e-6, 3) <= 1.0 and exact.get_epsilon(1e-6) < 0.4
    (entry,) = budget.entries
    assert entry.charged == 3 and entry.unit == report.cost.unit
    budget.verify()
    refused(xgb_dp.BudgetError, "group_size=3", stock(X, y), (X, y), privacy_id=ids, budget=budget,
            group_size=1)  # fmt: skip


def test_what_a_callback_trains_is_not_known_to_read_the_part(data):
    parts = xgb_dp.split(data)
    inner: list[Any] = []

    class Trains(xgb.callback.TrainingCallback):
        def before_training(self, model: Any) -> Any:
            inner.append(part_in_ledger(xgb.train(PRIVATE, xgb.DMatrix(*data), 1)))
            inner.append(part_in_ledger(classifier().fit(*data).get_booster()))
            return model

    estimator = classifier(callbacks=[Trains()])
    assert part_in_ledger(estimator.fit(parts.train).get_booster())["name"] == "train"
    assert inner == [None, None]
    assert part_in_ledger(estimator.set_params(callbacks=None).fit(*data).get_booster()) is None


def test_a_fixed_key_is_refused(data, model):
    with fixed_noise(1):
        refused(xgb_dp.PrivacyRefusal, "fixed key", model, data)
