"""Selections whose unit of privacy is a person, or several rows of one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import xgb_dp
from xgb_dp.accounting import PERSON, SelectionEvent, Unit, make_accountant
from xgb_dp.engine.native import split_rows
from xgb_dp.errors import PrivacyParameterError
from xgb_dp.evaluation.counts import CELLS, UNIT, ScoreGrid, counts_matrix
from xgb_dp.selection import SCORES
from xgb_dp.selection.scores import Score

from ..conftest import arrays
from .test_scores import sums_of

COMMON = {"tree_method": "dp_hist", "objective": "binary:logistic", "nthread": 1, "max_depth": 2}
SETTINGS = [{"eta": 0.3}, {"eta": 0.5}]


@pytest.fixture
def budget(tmp_path: Path) -> xgb_dp.Budget:
    total = {"epsilon": 2.0, "delta": 1e-6, "selection_epsilon": 1.5}
    return xgb_dp.Budget(tmp_path / "b", **total, unit="person")


def sizes_of(rng: np.random.Generator, persons: int, most: int) -> np.ndarray:
    return rng.permutation(np.repeat(np.arange(persons), rng.integers(1, most + 1, persons)))


# ----------------------------------------------------------------------------------------- coins
def test_all_rows_of_a_person_share_a_assignment():
    codes = sizes_of(np.random.default_rng(1), 4000, 9).astype(np.uint32)
    kept, apart = split_rows(len(codes), 1 << 30, codes)
    assert sorted([*kept, *apart]) == list(range(len(codes)))
    assert not set(codes[kept]) & set(codes[apart])
    assert len(set(codes[apart])) == pytest.approx(1000, abs=6 * np.sqrt(750))
    assert [len(part) for part in split_rows(0, 1 << 30, codes[:0])] == [0, 0]


# ---------------------------------------------------------------------------------------- scores
def case(name: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, Any]:
    if name in ("squared_error", "absolute_error"):
        return rng.normal(size=n), rng.normal(size=n), (-2.0, 2.0)
    return rng.random(n), (rng.random(n) < 0.4).astype(float), None


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 999, 70_001])
def test_a_person_moves_the_sums_by_no_more_than_a_row(name, rows):
    rng = np.random.default_rng(rows)
    others = sizes_of(rng, 40, 20)
    codes = np.concatenate([others, np.full(rows, 40)]).astype(np.uint32)
    p, y, target = case(name, rng, len(codes))
    score = Score(name)
    for one_sided in (False, True):
        if one_sided:  # all of them as bad as can be
            p[-rows:], y[-rows:] = (2.0, -2.0) if target else (0.0, 1.0)
        less = slice(0, len(others))
        without = sums_of(score, p[less], y[less], target, codes[less])
        moved = sums_of(score, p, y, target, codes) - without
        assert int((moved.astype(object) ** 2).sum()) <= score.sensitivity2
        assert np.count_nonzero(moved) <= score.event(0.1, of_persons=True).coordinates
    assert score.event(0.1, of_persons=True).unit == PERSON


@pytest.mark.parametrize("name", SCORES)
def test_persons_with_one_row_count_as_rows(name):
    rng = np.random.default_rng(5)
    p, y, target = case(name, rng, 500)
    codes = rng.permutation(500).astype(np.uint32)
    assert list(sums_of(Score(name), p, y, target, codes)) == list(
        sums_of(Score(name), p, y, target)
    )


def test_a_person_counts_with_the_mean_of_its_rows():
    """A second derivation: weights of 1 / rows, in floats."""
    rng = np.random.default_rng(6)
    codes = sizes_of(rng, 300, 50).astype(np.uint32)
    p, y, _ = case("brier", rng, len(codes))
    weight = 1.0 / np.bincount(codes)[codes]
    sums = sums_of(Score("brier"), p, y, None, codes)
    loss = (p - y) ** 2
    assert sums[0] / 2**16 == pytest.approx(float(weight @ (0.5 - loss)), abs=300 * 2**-15)
    assert sums[1] == 300 * 2**14
    cells = ScoreGrid().cell(np.log(p / (1.0 - p))) + CELLS * y.astype(np.int64)
    shares = np.bincount(cells, weights=weight, minlength=2 * CELLS)
    expected = counts_matrix(ScoreGrid()) @ shares * (2**16 / UNIT)
    np.testing.assert_allclose(sums_of(Score("auc"), p, y, None, codes), expected, rtol=0, atol=300)


# ------------------------------------------------------------------------------------ selections
def select(rows: int = 300, **changes: Any) -> xgb_dp.Selection:
    X, y = arrays("binary", rows)
    given = {"epsilon": 1.0, "delta": 1e-6, "num_boost_round": 3} | changes.pop("given", {})
    return xgb_dp.select(COMMON | changes, xgb.DMatrix(X, y), SETTINGS, **given)


def test_a_selection_of_persons_holds_for_persons(budget):
    ids = np.array([f"person {i}" for i in sizes_of(np.random.default_rng(2), 300, 1)])
    selection = select(dp_privacy_id=ids, given={"budget": budget, "delta": 1e-8})
    report = selection.report
    assert report.unit == Unit(PERSON)
    assert 0.9 <= report.epsilon <= 1.0
    [event] = report.record.events
    assert isinstance(event, SelectionEvent) and event.unit == PERSON
    assert [entry.unit.name for entry in budget.entries] == [PERSON]
    assert "person 1" not in str(report.ledger) + str(selection.params)


def test_many_rows_a_person():
    ids = np.sort(np.random.default_rng(3).integers(0, 40, 300))
    report = select(dp_privacy_id=ids).report
    assert report.unit.of_persons and report.epsilon <= 1.0


def test_whom_a_selection_is_for_has_the_words_of_other_calls():
    ids = np.sort(np.random.default_rng(3).integers(0, 40, 300))
    assert select(given={"privacy_id": ids, "group_size": 2}).report.unit == Unit(PERSON, 2)
    with pytest.raises(PrivacyParameterError, match="`dp_group_size` is given twice"):
        select(dp_group_size=5, given={"group_size": 2})


def test_a_selection_for_several_rows():
    report = select(dp_group_size=5).report
    assert report.unit == Unit("row", 5)
    assert 0.9 <= report.epsilon <= 1.0
    assert make_accountant("exact", report.record.events).get_epsilon(1e-6, 5) <= 1.0


@pytest.mark.parametrize(
    "setting", [{"dp_group_size": 2}, {"dp_privacy_id": "patient"}, {"dp_privacy_id": [1, 2, 3]}]
)
def test_settings_have_one_unit(setting):
    X, y = arrays("binary")
    with pytest.raises(PrivacyParameterError, match=r"unit of privacy|dp_privacy_id"):
        xgb_dp.select(
            COMMON, xgb.DMatrix(X, y), [{}, setting], epsilon=1.0, delta=1e-6, num_boost_round=3
        )


def test_ids_of_another_length_are_refused_before_anything_is_booked(budget):
    with pytest.raises(PrivacyParameterError, match="one id per row"):
        select(dp_privacy_id=np.arange(299), given={"budget": budget})
    assert not budget.entries
