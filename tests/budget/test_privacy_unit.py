"""Whom a budget is for: units never mix in silence, each is charged for the total's neighbours."""

import json
import math
from typing import Any

import pytest
import xgboost as xgb
from scipy.stats import norm

import xgb_dp
from xgb_dp import Budget
from xgb_dp.accounting import (
    PERSON,
    ChoiceEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    Unit,
    make_accountant,
)
from xgb_dp.accounting.events import with_unit
from xgb_dp.accounting.filter import charge_of
from xgb_dp.errors import BudgetError, PrivacyParameterError

from ..conftest import OBJECTIVE, arrays

DELTA = 1e-6
SUMS = GaussianEvent("leaves", 2**40, 2**48, 2, 9)  # mu = 3 / 16 for one
SPLITS = ExponentialEvent("splits", 2**34, 40, 40)
NOISE = LaplaceEvent("answer", 2**20, 2**25, 1)


def params(**changes: Any) -> dict[str, Any]:
    given = {"tree_method": "dp_hist", "dp_epsilon": 0.3, "dp_delta": DELTA, "nthread": 1}
    return {**given, "max_depth": 2, "verbosity": 0, **OBJECTIVE["binary"], **changes}


def matrix() -> xgb.DMatrix:
    return xgb.DMatrix(*arrays("binary"))


def of_person(*events: Event) -> list[Event]:
    return [with_unit(e, PERSON) for e in events]


# --------------------------------------------------------------------------- charges of a group
@pytest.mark.parametrize("group", [1, 3, 40])
def test_sums_are_charged_in_proportion(group):
    charge = charge_of([SUMS], DELTA, group_size=group)
    assert charge.mu2 == pytest.approx((group * 3.0 / 16.0) ** 2, rel=3e-3)
    assert charge.mu2 >= (group * 3.0 / 16.0) ** 2 * (1.0 - 1e-9)


@pytest.mark.parametrize("group", [1, 2, 5])
@pytest.mark.parametrize(
    "events",
    [
        [SUMS, SPLITS],
        [ChoiceEvent((GaussianEvent("rows", 1, 100, 1, 1),), ((SUMS,), (SUMS, SPLITS)))],
    ],
    ids=["plan", "choice"],
)
def test_a_charge_covers_the_curve_of_the_group(group, events):
    charge = charge_of(events, DELTA, group_size=group)
    mu = math.sqrt(charge.mu2)
    accountant = make_accountant("exact", events)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
        tail = norm.cdf(-mu / 2.0 - epsilon / mu)
        covered = norm.cdf(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * tail + charge.extra
        assert accountant.get_delta(epsilon, group) <= covered + 1e-15
    assert charge.mu2 > group**1.5 * charge_of(events, DELTA).mu2 or group == 1


# ------------------------------------------------------------------------------ rows of a person
def test_a_total_for_rows_of_one_person(tmp_path):
    budget = Budget(tmp_path / "b.json", epsilon=1.0, delta=DELTA, group_size=5)
    assert budget.unit == Unit("row", 5)
    before = budget.remaining()
    model = budget.train(params(dp_group_size=5), matrix(), 5, note="five")
    report = xgb_dp.privacy_report(model)
    [entry] = budget.entries
    assert (entry.unit, entry.charged) == (Unit("row", 5), 5)
    # In the total's terms: the Gaussian of the entry has about the epsilon that was asked for.
    mu = math.sqrt(entry.charge.mu2)
    assert before > 0.29 and report.epsilon <= 0.3
    tail = norm.cdf(-mu / 2.0 - 0.3 / mu)
    assert DELTA < norm.cdf(mu / 2.0 - 0.3 / mu) - math.exp(0.3) * tail < 1.3 * DELTA
    budget.verify()
    again = Budget(tmp_path / "b.json")
    assert again.unit == Unit("row", 5)
    text = again.statement()
    assert "adding or removing any 5 rows of one person, even if they" in text
    assert "A person with more rows has weaker protection" in text


def test_what_is_left_fits(tmp_path):
    budget = Budget(tmp_path / "b.json", epsilon=1.0, delta=DELTA, group_size=3)
    budget.train(params(dp_group_size=3, dp_epsilon=0.5), matrix(), 5)
    budget.train(params(dp_group_size=3, dp_epsilon=0.99 * budget.remaining()), matrix(), 5)
    with pytest.raises(BudgetError, match="for 3 rows of one person"):
        budget.train(params(dp_group_size=3, dp_epsilon=0.1), matrix(), 5)
    budget.verify()


@pytest.mark.parametrize(("total", "group"), [(1, 5), (5, 1), (5, 2)])
def test_groups_do_not_mix_in_silence(tmp_path, total, group):
    path = tmp_path / "b.json"
    budget = Budget(path, epsilon=8.0, delta=DELTA, group_size=total)
    with pytest.raises(BudgetError, match=rf"dp_group_size={total}.*any_group_size=True"):
        budget.train(params(dp_group_size=group, dp_epsilon=0.1), matrix(), 3)
    assert not budget.entries
    mixed = Budget(path, any_group_size=True)
    mixed.train(params(dp_group_size=group, dp_epsilon=0.1), matrix(), 3, note="other")
    [entry] = mixed.entries
    assert (entry.unit.group_size, entry.charged) == (group, total)
    assert entry.charge == charge_of(entry.events, DELTA, group_size=total)
    assert "calibrated for" in mixed.statement() and f"charged for {total} row" in mixed.statement()
    budget.verify()


# -------------------------------------------------------------------------------------- persons
def test_rows_and_persons_do_not_mix(tmp_path):
    rows = Budget(tmp_path / "rows.json", epsilon=2.0, delta=DELTA)
    persons = Budget(tmp_path / "persons.json", epsilon=2.0, delta=DELTA, unit="person")
    with pytest.raises(BudgetError, match="unit='person'"):
        rows.reserve(of_person(SUMS))
    for call in (
        lambda: persons.reserve([SUMS]),
        lambda: persons.train(params(), matrix(), 3),
        lambda: persons.train(params(dp_group_size=4), matrix(), 3),
    ):
        with pytest.raises(BudgetError, match="most_rows"):
            call()
    persons.reserve(of_person(SUMS), "sums")
    rows.reserve([SUMS])
    assert persons.entries[0].charge == rows.entries[0].charge
    assert "all rows of any one person, even if they" in str(persons)
    for budget in (rows, persons):
        budget.verify()
        assert len(budget.entries) == 1


def test_rows_count_for_persons_where_they_are_bounded(tmp_path):
    budget = Budget(tmp_path / "b.json", epsilon=8.0, delta=DELTA, unit="person", most_rows=4)
    budget.train(params(), matrix(), 3, note="rows")
    budget.train(params(dp_group_size=4), matrix(), 3, note="four")
    budget.reserve(of_person(SUMS), "persons")
    first, second, third = budget.entries
    assert (first.charged, second.charged, third.charged) == (4, 4, 1)
    assert first.charge.mu2 > 10.0 * second.charge.mu2
    assert first.charge == charge_of(first.events, DELTA, group_size=4)
    text = budget.statement()
    assert "charged for 4 rows, assuming that no person has more than 4 rows. This" in text
    budget.verify()
    total = {"epsilon": 8.0, "delta": DELTA}
    household = Budget(tmp_path / "h", **total, unit="person", group_size=2, most_rows=4)
    household.reserve([SUMS])
    assert household.entries[0].charged == 8


def test_persons_of_two_columns_are_others(tmp_path):
    budget = Budget(tmp_path / "b.json", epsilon=8.0, delta=DELTA, unit="person")
    budget.reserve(of_person(SUMS), unit=Unit(PERSON, 1, "patient"))
    budget.reserve(of_person(SUMS))
    budget.reserve(of_person(SUMS), unit=Unit(PERSON, 1, "patient"))
    with pytest.raises(
        BudgetError, match="'patient', but this release identifies them by 'doctor'"
    ):
        budget.reserve(of_person(SUMS), unit=Unit(PERSON, 1, "doctor"))
    assert len(budget.entries) == 3


def test_plain_charges_are_those_of_the_group(tmp_path):
    budget = Budget(tmp_path / "b.json", epsilon=1.0, delta=1e-12, group_size=4)
    budget.reserve([NOISE])
    [entry] = budget.entries
    if entry.charge.shift:
        assert entry.charge.shift == pytest.approx(4 / 32)
    else:
        assert entry.charge.mu2 >= charge_of([NOISE], 1e-12, group_size=4).mu2
    budget.verify()


# ----------------------------------------------------------------------------------------- files
def test_a_file_says_whom_it_is_for(tmp_path):
    budget = Budget(tmp_path / "b.json", epsilon=1.0, delta=DELTA)
    budget.reserve([SUMS])
    content = json.loads((tmp_path / "b.json").read_text())
    row = {"unit": "row", "group_size": 1, "most_rows": None}
    assert (content["version"], content["unit"]) == (1, row)
    assert content["entries"][0]["unit"] == vars(Unit()) and content["entries"][0]["charged"] == 1
    other = Budget(tmp_path / "c.json", epsilon=1.0, delta=DELTA, unit="person")
    other.reserve(of_person(SUMS))
    content = json.loads((tmp_path / "c.json").read_text())
    assert content["unit"] == {"unit": "person", "group_size": 1, "most_rows": None}


@pytest.mark.parametrize(
    "other",
    [{"unit": "row"}, {"group_size": 2}, {"most_rows": 3}, {"unit": "row", "group_size": 3}],
)
def test_whom_a_total_is_for_never_changes(tmp_path, other):
    path = tmp_path / "b.json"
    Budget(path, epsilon=1.0, delta=DELTA, unit="person", most_rows=5)
    Budget(path, unit="person")
    Budget(path, group_size=1, most_rows=5)
    with pytest.raises(PrivacyParameterError, match=r"cannot be changed|most_rows"):
        Budget(path, **other)


@pytest.mark.parametrize(
    "bad",
    [
        {"unit": "household"},
        {"unit": 1},
        {"group_size": 0},
        {"group_size": 1.5},
        {"unit": "person", "most_rows": 0},
        {"most_rows": 3},
        {"any_group_size": "perhaps"},
    ],
)
def test_what_is_no_unit_is_refused(tmp_path, bad):
    with pytest.raises(PrivacyParameterError, match=next(reversed(bad))):
        Budget(tmp_path / "b.json", epsilon=1.0, delta=DELTA, **bad)
    assert not (tmp_path / "b.json").exists()


def test_a_charge_for_fewer_is_found(tmp_path):
    from xgb_dp.budget import file

    path = tmp_path / "b.json"
    budget = Budget(path, epsilon=8.0, delta=DELTA, group_size=4)
    budget.reserve([SUMS])

    def change(content: Any) -> Any:
        line = {
            **content["entries"][0],
            **vars(charge_of([SUMS], DELTA, group_size=2)),
            "charged": 2,
        }
        return {**content, "entries": [line]}

    file.update(path, change)
    with pytest.raises(BudgetError, match="fewer than 4 rows of one person"):
        budget.verify()
