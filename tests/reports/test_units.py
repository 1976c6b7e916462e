"""Whom a guarantee is about: what reports, cards, files, plots and continued trainings say."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp import plotting
from xgb_dp.accounting import PERSON, Unit, event_from_json
from xgb_dp.errors import LedgerError, PrivacyParameterError
from xgb_dp.mechanisms.plan import Mechanisms
from xgb_dp.record import ledger as ledger_module
from xgb_dp.record.ledger_model import Ledger
from xgb_dp.record.privacy_report import PrivacyReport

from ..conftest import OBJECTIVE, arrays

DELTA = 1e-6


def claimed(model: xgb.Booster, column: str | None = None, group: int = 1) -> dict[str, Any]:
    """The ledger of a model for rows, as if its events had been proved for persons."""
    ledger = xgb_dp.privacy_report(model).ledger
    for training in ledger["trainings"]:
        [mechanisms] = training["mechanisms"]
        mechanisms["bound"]["of_person"] = True
        proved = Mechanisms.from_json(mechanisms)
        training["events"] = [
            proved.with_sensitivity(event_from_json(e)).to_json() for e in training["events"]
        ]
        training["public"] |= {"unit": PERSON, "max_rows_per_person": 2.0}
        training["public"] |= {"unit_column": column} if column else {}
        training["public"]["hyperparameters"]["group_size"] = group
    return ledger


def params(**changes: Any) -> dict[str, Any]:
    given = {"tree_method": "dp_hist", "dp_epsilon": 1.0, "dp_delta": DELTA, "nthread": 1}
    return {**given, "max_depth": 3, **OBJECTIVE["binary"], **changes}


def matrix() -> xgb.DMatrix:
    return xgb.DMatrix(*arrays("binary"))


@pytest.fixture(scope="module")
def for_rows() -> xgb.Booster:
    return xgb.train(params(), matrix(), 3)


@pytest.fixture(scope="module")
def for_five() -> xgb.Booster:
    return xgb.train(params(dp_group_size=5), matrix(), 3)


# ---------------------------------------------------------------------------- rows of one person
def test_the_epsilon_of_a_group_is_the_one_asked_for(for_five):
    report = xgb_dp.privacy_report(for_five)
    assert report.unit == Unit("row", 5)
    assert 0.99 <= report.epsilon <= 1.0
    assert report.epsilon == report.get_epsilon(DELTA) == report.get_epsilon(DELTA, 5)
    assert report.get_epsilon(DELTA, 1) < 0.2
    assert report.get_delta(1.0) == report.get_delta(1.0, 5) > report.get_delta(1.0, 1)
    assert dict(report.epsilon_curve([DELTA])) == {DELTA: report.epsilon}
    text = report.statement()
    for phrase in (
        "adding or removing any 5 rows of one person in the training data",
        "The privacy unit is any 5 rows of one person",
        f"For a single row, epsilon is {report.get_epsilon(DELTA, 1):.3f}"[:-1],
    ):
        assert phrase in text
    shown = json.loads(report.to_json())
    assert (shown["unit"], shown["group_size"]) == ("one row, added or removed", 5)
    assert shown["groups"][0] == {"rows": 1, "epsilon": report.get_epsilon(DELTA, 1)}
    for each in report.spending():
        assert each.epsilon <= report.epsilon
    summary = report.summary()
    assert "whether 5 rows of one person were in the training data" in " ".join(summary.split())
    assert "for 5 rows of one person added or removed" in report.to_html()
    assert "for 5 rows of one person of the training data, added or removed" in xgb_dp.model_card(
        for_five
    )
    axes = plotting.plot_epsilon(report)
    assert axes.get_ylabel() == "epsilon for 5 rows of one person"
    assert plotting.plot_epsilon(report, group_size=1).get_ylabel() == "epsilon"


def test_a_file_is_held_to_the_group_that_it_was_calibrated_for(for_five, tmp_path):
    path = tmp_path / "model.json"
    for_five.save_model(path)
    verified = xgb_dp.verify(path, max_epsilon=0.5)
    assert verified.verdict == "failed"
    assert verified.claim is not None and verified.claim["group_size"] == 5
    assert xgb_dp.verify(path, max_epsilon=0.5, group_size=1).verdict == "passed"


def test_a_row_says_who_is_protected_less(for_rows):
    report = xgb_dp.privacy_report(for_rows)
    assert report.unit == Unit()
    assert (
        "The privacy unit is one row. A person with several rows has weaker protection; use "
        "dp_privacy_id or dp_group_size to protect persons. For a person with at most k rows, "
        "call get_epsilon(delta, group_size=k)."
    ) in report.statement()


# ------------------------------------------------------------------------------------- persons
@pytest.mark.parametrize(
    ("column", "label"), [("patient", "person (column patient)"), (None, "person")]
)
def test_a_person_has_all_its_rows(for_rows, column, label):
    report = PrivacyReport(claimed(for_rows, column))
    assert report.unit.label == label
    assert report.epsilon == pytest.approx(xgb_dp.privacy_report(for_rows).epsilon, rel=1e-4)
    text = report.statement()
    for phrase in (
        "adding or removing all rows of any one person in the training",
        f"The privacy unit is a {label}: all rows of one person, regardless of their number.",
        "For k persons together, call get_epsilon(delta, group_size=k).",
        "Replacing one person is a removal and an addition",
        "all rows of one person together count as at most 2 rows",
    ):
        assert phrase in text
    assert "weaker protection" not in text
    shown = json.loads(report.to_json())
    assert shown["unit"] == f"one {label}, added or removed"
    assert [next(iter(group)) for group in shown["groups"]] == ["persons"] * len(shown["groups"])
    summary = " ".join(report.summary().split())
    assert "knows the rows of all other persons" in summary
    assert "Population: The model describes persons rather than rows" in summary
    assert "Epsilon for groups of persons" in summary
    assert f"for one {label} added or removed" in report.to_html()
    assert plotting.plot_epsilon(report).get_ylabel() == f"epsilon for {label}"


def test_a_household_is_several_persons(for_rows):
    report = PrivacyReport(claimed(for_rows, "patient", 3))
    assert report.unit.label == "3 persons (column patient)"
    assert report.epsilon == report.get_epsilon(DELTA, 3) > report.get_epsilon(DELTA, 1)
    assert "all rows of any 3 persons" in report.statement()
    assert "for any 3 persons together" in report.statement()


def test_a_card_and_a_file_name_the_person(tmp_path):
    ids = pd.Series(np.arange(300) // 2, name="patient")
    model = xgb.train(params(dp_privacy_id=ids, dp_max_rows_per_person=2), matrix(), 3)
    card = xgb_dp.model_card(model)
    assert "for one person (column patient) of the training data, added or removed" in card
    assert "### Epsilon for groups of persons" in card
    path = tmp_path / "model.json"
    model.save_model(path)
    verified = xgb_dp.verify(path, unit="person")
    assert verified.verdict == "passed"
    assert verified.claim is not None
    assert verified.claim["unit"] == {
        "name": "person",
        "column": "patient",
        "max_rows_per_person": 2.0,
    }
    assert xgb_dp.verify(path, unit="row").verdict == "failed"


# ------------------------------------------------------------------------------ one unit a model
@pytest.mark.parametrize(
    "change",
    [
        lambda training: training["public"].pop("unit"),
        lambda training: training["public"]["hyperparameters"].pop("group_size"),
        lambda training: training["public"]["hyperparameters"].update(group_size=0),
        lambda training: training["public"]["hyperparameters"].update(group_size=True),
        lambda training: training["events"][0].pop("unit"),
        lambda training: [event.pop("unit") for event in training["events"]],
        *(lambda training, field=field, value=value: training["public"].update({field: value})
          for field, value in (("unit", "household"), ("unit", ["person"]), ("unit_column", ""),
                               ("unit_column", 3), ("max_rows_per_person", 0.5),
                               ("max_rows_per_person", "two"))),
    ],
)  # fmt: skip
def test_a_ledger_that_contradicts_itself_is_refused(for_rows, change):
    ledger = claimed(for_rows, "patient")
    change(ledger["trainings"][0])
    with pytest.raises(LedgerError):
        PrivacyReport(ledger)


def test_trainings_of_two_units_are_no_model(for_rows):
    person, row = claimed(for_rows), xgb_dp.privacy_report(for_rows).ledger
    person["trainings"][0]["id"] = "f" * 32
    mixed = {**row, "trainings": [*row["trainings"], *person["trainings"]]}
    with pytest.raises(LedgerError, match="different privacy units"):
        PrivacyReport(mixed)


def test_a_model_is_continued_for_its_own_unit(for_five):
    model = xgb.train(params(dp_group_size=5), matrix(), 2, xgb_model=for_five)
    report = xgb_dp.privacy_report(model)
    assert report.unit == Unit("row", 5)
    assert 1.2 < report.epsilon < 2.0
    with pytest.raises(PrivacyParameterError, match="2 rows of one person"):
        xgb.train(params(dp_group_size=2), matrix(), 2, xgb_model=for_five)


def test_rows_do_not_continue_a_model_of_persons(for_rows):
    model = for_rows.copy()
    ledger_module.store(model, Ledger.from_json(claimed(model, "patient")))
    with pytest.raises(PrivacyParameterError, match=r"is row, .* with person \(column patient\)"):
        xgb.train(params(), matrix(), 2, xgb_model=model)


def test_units_are_alike_only_for_the_same_neighbours():
    patient, unnamed = Unit(PERSON, 1, "patient"), Unit(PERSON)
    assert patient.same(unnamed) and unnamed.same(patient)
    for other in (Unit(), Unit("row", 2), Unit(PERSON, 2), Unit(PERSON, 1, "doctor")):
        assert not patient.same(other)
    for bad in (("household",), ("row", 0), ("row", True), ("row", 1, "patient"), (PERSON, 1, "")):
        with pytest.raises(ValueError, match="privacy unit"):
            Unit(*bad)
