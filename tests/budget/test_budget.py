"""Budgets: what is recorded, what is refused, and what a file must be like."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import xgboost as xgb

import xgb_dp
from tests.callbacks import After, interrupt
from tests.conftest import private
from xgb_dp import Budget, BudgetError, PrivacyParameterError
from xgb_dp.accounting import GaussianEvent
from xgb_dp.budget import budget as budget_module
from xgb_dp.budget import file as budget_file

from ..conftest import arrays

PARAMS = private(objective="binary:logistic", max_depth=2, nthread=1)
QUIET = GaussianEvent("mean", 1 << 20, 1 << 26, 1, 1)


def data() -> xgb.DMatrix:
    return xgb.DMatrix(*arrays())


@pytest.fixture
def budget(tmp_path: Path) -> Budget:
    return Budget(tmp_path / "budget.json", epsilon=2.0, delta=1e-6)


def test_a_path_that_no_file_has_is_refused(tmp_path):
    with pytest.raises(PrivacyParameterError, match="more than 4,096 characters"):
        Budget(tmp_path / ("9" * 5000), epsilon=2.0, delta=1e-6)


def test_trainings_are_booked_until_nothing_is_left(budget):
    left = [budget.remaining()]
    assert left[0] == 2.0
    for i in range(3):  # not 2, as epsilons that add up would have it
        booster = budget.train(PARAMS, data(), 2, note=f"number {i}")
        assert xgb_dp.privacy_report(booster).epsilon <= 1.0
        left.append(budget.remaining())
    with pytest.raises(BudgetError, match="largest epsilon that still fits"):
        budget.train(PARAMS, data(), 2)
    assert left == sorted(left, reverse=True)
    assert [e.note for e in budget.entries] == ["number 0", "number 1", "number 2"]
    assert {e.state for e in budget.entries} == {"spent"}
    # What is said to be left does fit, and more does not.
    with pytest.raises(BudgetError):
        budget.train({**PARAMS, "dp_epsilon": 1.1 * left[-1]}, data(), 20)
    budget.train({**PARAMS, "dp_epsilon": left[-1]}, data(), 20)
    assert budget.remaining() < 0.1
    budget.verify()


@pytest.mark.parametrize(
    "epsilons, delta, left",
    [
        ((1.0,), 1e-6, 0.0),
        ((0.99,), 1e-6, 0.0),
        ((1.0,), 1e-7, 0.2),
        ((0.5, 0.5), 1e-6, 0.6),
        ((0.5, 0.5), 5e-7, 0.6),
        ((1 / 3, 1 / 3, 1 / 3), 1e-6 / 3, 0.7),
    ],
)
def test_a_total_admits_trainings_that_add_up_to_it(tmp_path, epsilons, delta, left):
    budget = Budget(tmp_path / "one.json", epsilon=1.0, delta=1e-6)
    assert budget.remaining() == 1.0
    for epsilon in epsilons:
        budget.train({**PARAMS, "dp_epsilon": epsilon, "dp_delta": delta}, data(), 20)
    budget.verify()
    assert budget.remaining() >= left
    again = Budget(budget.path)
    with pytest.raises(BudgetError, match="exceed"):
        again.train({**PARAMS, "dp_epsilon": max(1.1 * again.remaining(), 0.05)}, data(), 20)
    if left:  # what is said to be left fits
        again.train({**PARAMS, "dp_epsilon": again.remaining()}, data(), 20)
        again.verify()
    else:
        assert "training: epsilon 0." in str(again)
        assert "selection budget" not in str(again)


def test_more_than_the_total_is_refused(tmp_path):
    budget = Budget(tmp_path / "one.json", epsilon=1.0, delta=1e-6)
    for more in ({"dp_epsilon": 1.01}, {"dp_delta": 1e-4}):
        with pytest.raises(BudgetError, match="about 1 at delta"):
            budget.train({**PARAMS, **more}, data(), 3)
    assert not budget.entries


def test_what_breaks_off_counts_in_full(budget):
    with pytest.raises(KeyboardInterrupt):
        budget.train(PARAMS, data(), 5, callbacks=[After(interrupt)])
    [entry] = budget.entries
    assert entry.state == "reserved"
    full = Budget(budget.path.with_name("other.json"), epsilon=2.0, delta=1e-6)
    full.train(PARAMS, data(), 5)
    assert budget.spent == full.spent
    assert budget.remaining() == full.remaining()


@pytest.mark.filterwarnings("ignore:`dp_epsilon` is infinite")
def test_only_private_trainings_are_booked(budget):
    with pytest.raises(BudgetError, match="without noise"):
        budget.train({**PARAMS, "dp_epsilon": math.inf}, data(), 2)
    with xgb_dp.testing.fixed_noise(1), pytest.raises(BudgetError, match="fixed key"):
        budget.train(PARAMS, data(), 2)
    with pytest.raises(BudgetError, match="dp_hist"):
        budget.train({"objective": "binary:logistic", "nthread": 1}, data(), 2)
    assert not budget.entries


def test_a_block_that_books_nothing_says_so(budget):
    with pytest.raises(BudgetError, match="Nothing was charged"), budget.drawing():
        xgb.train({"objective": "binary:logistic", "nthread": 1}, data(), 2)
    with (
        pytest.raises(BudgetError, match="Nothing was charged"),
        budget.drawing(),
        ThreadPoolExecutor(1) as pool,
    ):
        error = pool.submit(xgb.train, PARAMS, data(), 2).exception()
    assert isinstance(error, BudgetError)
    assert not budget.entries


def test_only_the_block_draws(budget):
    with budget.drawing("block") as names:
        xgb.train(PARAMS, data(), 2)
        assert names == [e.id for e in budget.entries]
        assert budget.entries[0].state == "reserved"
    assert budget.entries[0].state == "spent"
    xgb.train(PARAMS, data(), 2)
    assert len(budget.entries) == 1


def test_other_releases(budget):
    name = budget.reserve([QUIET], "a noisy mean")
    budget.commit(name)
    [entry] = budget.entries
    assert (entry.id, entry.note, entry.state) == (name, "a noisy mean", "spent")
    assert entry.events == (QUIET,)
    assert entry.charge.mu2 == pytest.approx(1 / 64, rel=1e-2)
    with pytest.raises(BudgetError, match="no entry"):
        budget.commit("another")
    with pytest.raises(BudgetError, match="exceed"):
        budget.reserve([GaussianEvent("exact", 1, 0, 1, 1)])
    assert len(budget.entries) == 1


def test_totals_are_given_once(budget, tmp_path):
    again = Budget(budget.path)
    assert (again.epsilon, again.delta, again.selection_epsilon) == (2.0, 1e-6, 0.0)
    assert Budget(str(budget.path), epsilon=2, delta=1e-6).path == budget.path
    for changed in ({"epsilon": 3.0}, {"delta": 1e-5}, {"selection_epsilon": 1.0}):
        with pytest.raises(PrivacyParameterError, match=next(iter(changed))):
            Budget(budget.path, **changed)
    with pytest.raises(PrivacyParameterError, match="does not exist"):
        Budget(tmp_path / "none.json")
    with pytest.raises(PrivacyParameterError, match="does not exist"):
        Budget(tmp_path / "none.json", epsilon=1.0)
    assert not (tmp_path / "none.json").exists()


@pytest.mark.parametrize(
    "total",
    [("epsilon", 0.0), ("epsilon", math.inf), ("delta", 0.0), ("delta", 1.0),
     ("selection_epsilon", 1.5), ("selection_epsilon", -0.1)],
)  # fmt: skip
def test_bad_totals(total, tmp_path):
    with pytest.raises(PrivacyParameterError):
        Budget(tmp_path / "b.json", **{"epsilon": 1.0, "delta": 1e-6, **dict([total])})
    assert not list(tmp_path.iterdir())


def test_links_lead_to_one_file(budget, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(budget.path)
    Budget(link).reserve([QUIET])
    assert len(budget.entries) == 1
    assert link.is_symlink()
    os.link(budget.path, tmp_path / "twin.json")
    with pytest.raises(BudgetError, match="several hard links"):
        budget.reserve([QUIET])


def test_the_folder_may_change(budget, monkeypatch):
    monkeypatch.chdir(budget.path.parent)
    near = Budget(budget.path.name)
    monkeypatch.chdir("/")
    near.reserve([QUIET])
    assert len(budget.entries) == 1


def test_a_moved_file_goes_on_under_its_new_name(budget, tmp_path):
    budget.reserve([QUIET])
    moved = tmp_path / "moved.json"
    budget.path.rename(moved)
    assert len(Budget(moved).entries) == 1


@pytest.mark.parametrize("note", ["m\udce9.json", "\ud800", "a\x00b", "é", "\U0001f600"])
def test_any_note_leaves_a_file_that_can_be_read(budget, note):
    """Names of files that are no UTF-8 reach Python as halves of surrogate pairs."""
    budget.reserve([QUIET], note)
    budget.train(PARAMS, data(), 1, note=note)
    assert len({entry.note for entry in Budget(budget.path).entries}) == 1
    budget.entries[0].note.encode()
    budget.verify()


def test_what_could_not_be_read_again_is_never_written(budget):
    before = budget.path.read_bytes()
    person = Budget(budget.path.with_name("p.json"), epsilon=2.0, delta=1e-6, unit="person")
    event = GaussianEvent("mean", 1 << 20, 1 << 26, 1, 1, unit="person")
    with pytest.raises(BudgetError, match="invalid Unicode"):
        person.reserve([event], unit=xgb_dp.accounting.Unit("person", 1, "na\ud800me"))
    assert person.entries == []
    for bad in ("\ud800", float("nan"), 10**200):
        with pytest.raises(BudgetError, match="cannot be serialized"):
            budget_file.update(budget.path, lambda old, bad=bad: {**old, "entries": [{"id": bad}]})
    assert budget.path.read_bytes() == before


def test_statement(budget):
    budget.train(PARAMS, data(), 2, note="first model")
    text = str(budget)
    assert "(2, 1e-06)-differentially private" in text
    assert "first model" in text and "(spent)" in text
    assert repr(budget).startswith("Budget(")
    part = Budget(budget.path.with_name("p.json"), epsilon=2.0, delta=1e-6, selection_epsilon=2.0)
    assert part.remaining() < 0.01
    assert part.remaining_selection() == pytest.approx(2.0)
    assert "selections" in part.statement()


def test_an_entry_that_takes_delta_alone_is_verified_as_it_was_booked(tmp_path):
    """So little that epsilon is 0 at some delta: it is charged as it is, not by a Gaussian."""
    budget = Budget(tmp_path / "tiny.json", epsilon=1e-9, delta=1e-5)
    budget.commit(budget.reserve([GaussianEvent("leaves", 1, 2 * 10**9, 1, 1)]))
    (entry,) = budget.entries
    assert (entry.charge.mu2, entry.charge.shift) == (0.0, 0.0)
    assert entry.charge.extra > 0.0
    budget.verify()


def test_a_parameter_given_twice_is_refused_as_by_train(budget):
    """The last value would win: 4 would be spent where somebody believes it was 1."""
    pairs = [*PARAMS.items(), ("dp_epsilon", 4.0)]
    for train in (xgb.train, budget.train):
        with pytest.raises(PrivacyParameterError, match="given twice"):
            train(pairs, data(), 2)
    assert not budget.entries


def test_equal_entries_are_computed_once(tmp_path, monkeypatch):
    budget = xgb_dp.Budget(tmp_path / "b.json", epsilon=3.0, delta=1e-5)
    computed = []
    whole = budget_module.charge_of
    monkeypatch.setattr(budget_module, "charge_of", lambda *a: computed.append(a) or whole(*a))
    for sigma2 in (401, 401, 811, 401):
        budget.reserve([GaussianEvent("x", 1, sigma2, 1, 1)])
    budget.verify()
    assert len(computed) == 2
