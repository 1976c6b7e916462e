"""Parts of a division: which objects are known as one, and what the book says of them."""

import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from scipy.sparse import csr_matrix

import xgb_dp
from tests.evaluation.tasks import COMMON, PRIVATE, TARGET, rows, stock
from xgb_dp.accounting import GaussianEvent
from xgb_dp.data.ids import SplitPart, are_disjoint
from xgb_dp.data.matrices import SplitMatrix, find_part
from xgb_dp.record.ledger import read_ledger


def test_coins_of_rows_do_not_divide_persons():
    row, other = (SplitPart("1f", name, "row") for name in ("train", "test"))
    assert are_disjoint(row, other, "row") and not are_disjoint(row, other, "person")
    person, second = (SplitPart("2f", name, "person") for name in ("train", "test"))
    assert are_disjoint(person, second, "person") and are_disjoint(person, second, "row")
    assert not any(
        are_disjoint(one, two, "row") for one, two in ((row, second), (row, row), (None, row))
    )


def charge(budget: xgb_dp.Budget, part: SplitPart | None, unit: str = "row") -> None:
    budget.reserve([GaussianEvent("x", 1 << 20, 400 << 20, 1, 1, unit=unit)], part=part)


def test_the_book_takes_the_larger_of_two_parts(tmp_path):
    budget = xgb_dp.Budget(tmp_path / "b.json", epsilon=3.0, delta=1e-5)
    one = 1 / 400
    a, b = (SplitPart("aa", name, "row") for name in ("train", "test"))
    c, d = (SplitPart("cc", name, "row") for name in ("train", "test"))
    for part, expected in ((a, 1), (b, 1), (b, 2), (a, 2), (None, 3), (c, 4), (d, 4), (d, 5)):
        charge(budget, part)
        assert budget.spent.mu2 == pytest.approx(expected * one, rel=1e-2)
    stored = json.loads(Path(budget.path).read_text())
    assert stored["entries"][0]["part"] == {"split": "aa", "name": "train", "unit": "row"}
    # A part that is damaged is refused, not taken for all rows or none.
    with pytest.raises(ValueError, match="part"):
        SplitPart.from_json({"split": "aa", "name": "both", "unit": "row"})


def test_coins_of_rows_add_up_for_persons_in_the_book(tmp_path):
    budget = xgb_dp.Budget(tmp_path / "b.json", epsilon=3.0, delta=1e-5, unit="person")
    for name in ("train", "test"):
        charge(budget, SplitPart("aa", name, "row"), "person")
    assert budget.spent.mu2 == pytest.approx(2 / 400, rel=1e-2)


def test_a_part_is_an_object_of_the_split_and_nothing_made_of_it():
    X, y = rows(200)
    parts = xgb_dp.split((X, y))
    assert find_part(parts.test) == parts.test.part == SplitPart(parts.name, "test", "row")
    for rest in (parts.test.copy(), parts.test.copy()[0], (X, y), parts):
        assert find_part(rest) is None
    parts = xgb_dp.split(xgb.DMatrix(X, y))
    assert find_part(parts.train) == SplitPart(parts.name, "train", "row")
    copied = parts.train.slice(np.arange(parts.train.num_row()))
    assert type(copied) is xgb.DMatrix and find_part(copied) is None
    assert find_part(xgb.DMatrix(X, y)) is None
    again = xgb_dp.split(parts.train)  # a part may be divided further, by a split of its own
    assert find_part(again.train).split == again.name != parts.name


def table_of(kind: str, X: np.ndarray, y: np.ndarray) -> Any:
    frame = pd.DataFrame(X, columns=list("abcde"))
    return {
        "numpy": (X, y), "pandas": (frame, pd.Series(y)), "sparse": (csr_matrix(X), y),
        "texts": (frame.astype(str).astype(object), y), "matrix": xgb.DMatrix(X, y),
    }[kind]  # fmt: skip


@pytest.mark.parametrize("kind", ["numpy", "pandas", "sparse", "texts"])
def test_nobody_can_change_a_table_of_a_part(kind):
    """Neither through the rows that were divided, nor through a copy of the part."""
    X, y = table_of(kind, *rows(300))
    parts = xgb_dp.split((X, y), test=0.5)
    before = [np.array(v.toarray() if kind == "sparse" and i == 0 else v)
              for i, v in enumerate(parts.test.copy())]  # fmt: skip
    for table, labels in ((X, y), parts.test.copy()):
        for values in (table, labels):
            cells = values.data if kind == "sparse" and values is table else values
            (cells.iloc if hasattr(cells, "iloc") else cells).__setitem__(slice(None), 7.0)
    after = parts.test.copy()
    np.testing.assert_array_equal(after[0].toarray() if kind == "sparse" else after[0], before[0])
    np.testing.assert_array_equal(after[1], before[1])
    with pytest.raises(FrozenInstanceError):
        parts.test.part = parts.train.part


def test_nobody_can_change_a_matrix_of_a_part():
    """Labels and weights of other rows would be read as those of the part."""
    parts = xgb_dp.split(xgb.DMatrix(*rows(300)), test=0.5)
    n = parts.test.num_row()
    ones = np.ones(n)
    for change in (
        lambda m: m.set_label(ones),
        lambda m: m.set_weight(ones),
        lambda m: m.set_base_margin(ones),
        lambda m: m.set_group([n]),
        lambda m: m.set_info(label=ones),
        lambda m: m.set_float_info("label", ones),
        lambda m: m.set_float_info_npy2d("label", ones),
        lambda m: m.set_uint_info("group_ptr", ones.astype(np.uint32)),
    ):
        with pytest.raises(xgb_dp.PrivacyRefusal, match="cannot be changed"):
            change(parts.test)
    setters = {name for name in dir(xgb.DMatrix) if name.startswith("set_")}
    assert setters == {name for name in vars(SplitMatrix) if name.startswith("set_")}


def test_ids_of_a_part_cannot_be_changed():
    X, y = rows(100)
    parts = xgb_dp.split((X, y), privacy_id=np.arange(100) // 2)
    for array in (parts.train.persons.codes, parts.train.persons.distinct):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_a_part_is_no_public_data():
    parts = xgb_dp.split(xgb.DMatrix(*rows(300)), test=0.5)
    evals = [(parts.test, "test")]
    with pytest.raises(xgb_dp.PrivacyRefusal, match="rows are private"):
        xgb.train({**PRIVATE, "dp_public_evals": True}, parts.train, 1, evals=evals)


@pytest.mark.parametrize("kind", ["pandas", "numpy", "matrix"])
def test_both_parts_together_are_all_rows(kind):
    X, y = rows(1000)
    X[:, 0] = np.arange(1000)
    parts = xgb_dp.split(table_of(kind, X, y), test=0.3)
    seen, labels = [], []
    for part in (parts.train, parts.test):
        if kind == "matrix":
            seen.append(part.get_data().toarray()[:, 0])
            labels.append(part.get_label())
        else:
            table, known = part.copy()
            seen.append(np.asarray(table)[:, 0])
            labels.append(known)
    numbers = np.concatenate(seen)
    np.testing.assert_array_equal(np.sort(numbers), np.arange(1000))
    np.testing.assert_array_equal(np.concatenate(labels), y[numbers.astype(int)])
    assert 200 < len(seen[1]) < 400  # eleven deviations
    assert repr(parts) == f"Split(name={parts.name!r}, unit='row')"  # no numbers of rows


@pytest.mark.parametrize("kind", ["int64", "Int64", "int64[pyarrow]", "uint64", "UUID"])
def test_ids_of_a_division_are_exact(kind):
    """Two ids that one 64-bit float stands for are two persons in both parts."""
    X, y = rows(40)
    numbers = [2**53 + i for i in range(40)]
    plain = pd.Series(np.array(numbers))  # pandas itself reads lists by way of floats
    ids = [UUID(int=i) for i in numbers] if kind == "UUID" else plain.astype(kind)
    parts = xgb_dp.split((X, y), test=0.5, privacy_id=ids)
    seen = [*parts.train.persons.listed, *parts.test.persons.listed]
    assert sorted(seen) == numbers


def test_coins_of_persons_keep_their_rows_together():
    X, y = rows(1200)
    ids = np.repeat(np.arange(300), 4)
    parts = xgb_dp.split((X, y), test=0.5, privacy_id=ids)
    train, test = (set(part.persons.listed) for part in (parts.train, parts.test))
    assert train.isdisjoint(test) and train | test == set(range(300))
    held_out = len(parts.test.copy()[1])
    assert parts.unit == "person" and len(parts.test.persons.codes) == held_out
    report = xgb_dp.evaluate(stock(X, y), parts, **TARGET)
    assert report.cost.unit.name == "person"
    assert "all rows of any one person" in report.statement()
    assert report.summary().startswith("All persons\n") and "\n  persons " in report.summary()
    # People and not rows, of which there are four times as many.
    assert abs(float(report.rows) - len(test)) < 6.0 * report.rows.noise
    assert float(report.rows) + 6.0 * report.rows.noise < held_out


def test_other_persons_than_those_of_the_coins_add_up(tmp_path):
    """A hospital has rows on both sides of a division by patients."""
    X, y = rows(1200)
    patients = pd.Series(np.repeat(np.arange(300), 4), name="patient")
    hospitals = np.repeat(np.arange(30), 40)
    parts = xgb_dp.split((X, y), test=0.5, privacy_id=patients)
    here = np.isin(patients, parts.test.persons.listed)
    model = stock(X, y)
    budget = xgb_dp.Budget(tmp_path / "p.json", epsilon=20.0, delta=1e-5, unit="person")

    def judge(ids: Any) -> SplitPart | None:
        xgb_dp.evaluate(model, parts.test, privacy_id=ids, budget=budget, **TARGET)
        return budget.entries[-1].part

    own_part = find_part(parts.test)
    assert own_part is not None
    assert judge(None) == judge(True) == judge("patient") == judge(parts.test.persons) == own_part
    assert judge(hospitals[here]) is None and judge(patients[here]) is None
    assert judge(parts.train.persons.select(np.arange(here.sum()) % (~here).sum())) is None
    others = "'patient', but this release identifies them by 'ward'"
    with pytest.raises(xgb_dp.BudgetError, match=others):
        judge(pd.Series(hospitals[here], name="ward"))
    budget.verify()


def test_a_name_stands_for_the_column_of_ids():
    X, y = rows(400)
    named = pd.DataFrame(X).add_prefix("f").assign(person=np.arange(len(y)) // 4)
    parts = xgb_dp.split((named, y), privacy_id="person")
    model = xgb_dp.DPXGBClassifier(**TARGET, classes=[0, 1], n_estimators=1, n_jobs=1)
    model.fit(parts.train, privacy_id="person")
    for data, given in ((parts, None), (parts, "person"), (parts.test, "person")):
        cost = xgb_dp.evaluate(model, data, privacy_id=given, **TARGET).cost
        assert cost.parallel and cost.unit.of_persons
    with pytest.raises(xgb_dp.PrivacyParameterError, match="exactly one column 'patient'"):
        xgb_dp.evaluate(model, (named, y), privacy_id="patient", **TARGET)
    with pytest.raises(xgb_dp.PrivacyParameterError, match=r"^`privacy_id` must have one id"):
        xgb_dp.split((named, y), privacy_id=[1])


def test_an_estimator_takes_the_persons_of_its_part():
    X, y = rows(400)
    frame = pd.DataFrame(X).add_prefix("f").assign(person=np.arange(len(y)) // 4)
    named = xgb_dp.split((frame, y), privacy_id="person")
    alone = xgb_dp.split((X, y), privacy_id=np.arange(len(y)) // 4)
    estimator = xgb_dp.DPXGBClassifier(**TARGET, classes=[0, 1], n_estimators=1, n_jobs=1)

    def read(parts: Any, **given: Any) -> Any:
        training = read_ledger(estimator.fit(parts.train, **given).get_booster()).trainings[-1]
        assert training.unit.of_persons
        return training.public.get("part"), estimator.n_features_in_

    for parts in (named, alone):
        assert read(parts) == (parts.train.part.to_json(), 5)
    others = np.arange(len(alone.train.persons.codes)) // 2
    assert read(alone, privacy_id=others) == (None, 5)
    with pytest.raises(xgb_dp.PrivacyParameterError, match="without `y`"):
        estimator.fit(alone.train, y)


def test_trainings_of_other_persons_name_no_part():
    X, y = rows(400)
    parts = xgb_dp.split(xgb.DMatrix(X, y), privacy_id=np.arange(400) // 2)
    persons = parts.train.persons

    def trained(ids: Any) -> Any:
        return xgb.train({**PRIVATE, "dp_privacy_id": ids}, parts.train, 1)

    def selected(ids: Any) -> Any:
        params = {**COMMON, "dp_privacy_id": ids}
        more = {"epsilon": 1.9, "delta": 1e-6, "num_boost_round": 1}
        return xgb_dp.select(params, parts.train, [{}], **more).booster

    own_part = {"split": parts.name, "name": "train", "unit": "person"}
    for way in (trained, selected):
        for ids, part in ((persons, own_part), (True, own_part), (persons.codes // 2, None)):
            assert read_ledger(way(ids)).trainings[-1].public.get("part") == part
