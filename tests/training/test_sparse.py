"""Open rounds on tables of many columns: a start from them where few cells are present."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from scipy import sparse

import xgb_dp
from xgb_dp.accounting import ChoiceEvent, GaussianEvent
from xgb_dp.mechanisms.column_sums import SHARE
from xgb_dp.mechanisms.mechanism import Noise
from xgb_dp.record.ledger import read_ledger
from xgb_dp.request import default_plans
from xgb_dp.request.default_plans import AFTER_COLUMNS, MEETINGS, is_sparse, worth
from xgb_dp.request.schema import read_schema
from xgb_dp.training.hook import prepare
from xgb_dp.training.start import present_from_sums, rows_from_sums

from .families import private_params

# So many rows that the noise of their cells, 78, is a seventh of what parts the two kinds of plans.
N, WIDTH = 12_000, 40


def table(share: float, width: int = WIDTH, n: int = N) -> xgb.DMatrix:
    """Binary columns, of which a row has a share, and labels that add them up."""
    rng = np.random.default_rng(3)
    X = (rng.random((n, width)) < share).astype(np.float32)
    y = X @ rng.normal(size=width) > 0
    return xgb.DMatrix(X, y.astype(np.float32))


def test_the_guarantee_names_the_columns_for_which_cells_are_released():
    page = Path(__file__).parents[2] / "docs/guarantee.md"
    lines = [
        line
        for line in page.read_text().splitlines()
        if line.startswith(("| number of cells neither 0", "| number of cells above 0"))
    ]
    named = f"{default_plans.COLUMNS[0]} to {default_plans.COLUMNS[-1]:,} columns"
    assert [named in line for line in lines] == [True, True]


def last(model: xgb.Booster) -> Any:
    return read_ledger(model).trainings[-1]


@pytest.mark.parametrize(("share", "start"), [(0.03, "columns"), (0.5, "intercept")])
def test_few_cells_start_from_columns(share, start, short):
    model = xgb.train(private_params(), table(share))
    training = last(model)
    assert training.hyperparameters["start"] == start
    assert training.rounds == (AFTER_COLUMNS.rounds if start == "columns" else 3)
    assert xgb_dp.privacy_report(model).epsilon <= 1.0
    assert "and a noisy count of their present cells" in str(xgb_dp.privacy_report(model))
    # The claim is that of all plans, and the first release pays for one sum more.
    [choice] = training.events
    assert isinstance(choice, ChoiceEvent)
    assert len(choice.options) == 3
    [first] = choice.first
    assert isinstance(first, GaussianEvent)
    assert (first.release, first.coordinates) == ("intercept", 3)
    assert first.sensitivity2 % 3 == 0
    assert training.drawn is not None
    assert first in training.drawn


def wide(matter: int, width: int = 520, n: int = 6000) -> xgb.DMatrix:
    """A wide table of few cells, of which some columns add up to the label, all alike."""
    rng = np.random.default_rng(4)
    X = (rng.random((n, width)) < 0.03).astype(np.float32)
    X[:, :matter] = rng.random((n, matter)) < (0.5 if matter < 10 else 0.03)
    y = X[:, :matter] @ np.resize([1.0, -1.0], matter) > 0
    return xgb.DMatrix(sparse.csr_matrix(X), y.astype(np.float32))


def test_wide_tables_of_few_cells_start_from_columns(short):
    training = last(model := xgb.train(private_params(dp_epsilon=9.0), wide(2)))
    assert training.hyperparameters["start"] == "columns"
    assert training.hyperparameters["split"] == "exponential"
    assert training.hyperparameters["budget_shares"]["columns"] == SHARE
    assert xgb_dp.privacy_report(model).epsilon <= 9.0
    text = " ".join(str(xgb_dp.privacy_report(model)).split())
    assert "and a noisy count of their present cells" in text
    assert "the association of each column with the label" in text
    [choice] = training.events
    [first] = choice.first
    assert (first.release, first.coordinates) == ("intercept", 3)
    starts = [[e for e in way if e.release == "columns"] for way in choice.ways]
    assert [len(of_way) for of_way in starts] == [0] * (len(starts) - 1) + [1]
    [columns] = starts[-1]
    assert columns.coordinates == 520
    assert training.drawn is not None
    assert {first, columns} <= set(training.drawn)
    of_way = predicted(model, wide(2))
    assert np.mean((of_way > 0) == wide(2).get_label()) > 0.8


def test_dense_wide_tables_pay_nothing_for_columns(short):
    training = last(xgb.train(private_params(), table(0.5, 520, n=400)))
    assert training.hyperparameters["start"] == "intercept"
    assert all(e.release != "columns" for e in training.released)


def test_a_selection_on_wide_tables(short):
    """It says what its runs have released, and gives parameters for a training of one plan."""
    given = {k: v for k, v in private_params().items() if k not in ("dp_epsilon", "dp_delta")}
    best = xgb_dp.select(given, wide(2, n=300), [{}], epsilon=9.0, delta=1e-6, mean_runs=1.1)
    assert best.report.epsilon <= 9.0
    assert "and a noisy count of their present cells" in str(best.report)
    assert "dp_budget_shares" not in best.params
    again = last(xgb.train(private_params(**best.params), wide(2, n=300), best.num_boost_round))
    start = best.params.get("dp_start", "intercept")
    assert again.hyperparameters["start"] == start
    assert any(e.release == "columns" for e in again.released) == (start == "columns")


@pytest.mark.parametrize(
    "given", [{"base_score": 0.5}, {"dp_public_num_rows": 300}, {"max_bin": 8}]
)
def test_wide_tables_whose_labels_are_not_read_first(given, short):
    """Or whose user has chosen trees: trees, and nothing paid for columns."""
    training = last(xgb.train(private_params(**given), wide(520, n=300)))
    assert training.hyperparameters["split"] == "exponential"
    assert all(e.release != "columns" for e in training.released)


def test_no_rows_at_all(short):
    """Whichever plan noise takes: its model has the form of that plan, and the same charge."""
    events = {last(xgb.train(private_params(), table(0.03, n=0))).events for _ in range(3)}
    assert events == {last(xgb.train(private_params(), table(0.5))).events}


@pytest.mark.parametrize(
    ("given", "width"),
    [
        ({}, 31),
        ({"max_bin": 8}, WIDTH),
        ({"colsample_bytree": 0.5}, WIDTH),
        ({"dp_split_levels": 1}, WIDTH),
        ({"dp_budget_shares": {"leaves": 0.5}}, WIDTH),
        ({"monotone_constraints": (1,) + (0,) * (WIDTH - 1)}, WIDTH),
    ],
)
def test_where_no_cells_are_counted(given, width, short):
    """Few columns, or trees that the user has chosen."""
    training = last(xgb.train(private_params(**given), table(0.03, width, n=60)))
    [choice] = training.events
    assert choice.first[0].coordinates == 2
    assert len(choice.options) == 2
    assert training.hyperparameters["split"] == "exponential"


@pytest.mark.parametrize("kind", ["regression", "multiclass"])
def test_other_labels_have_their_own_plans(kind, short):
    d = table(0.03)
    d.set_label(np.arange(N) % 2)
    plans = last(xgb.train(private_params(kind), d)).public["plan_choice"]["plans"]
    assert len(plans) == 2


def test_a_public_number_of_rows_leaves_nothing_to_count(short):
    training = last(xgb.train(private_params(dp_public_num_rows=N), table(0.03)))
    assert "plan_choice" not in training.public
    assert training.hyperparameters["split"] == "exponential"


def test_columns_that_meet_often_take_trees(short):
    """Of as sparse a table with many more rows."""
    family = prepare(private_params(), read_schema(table(0.03, n=2)), None).family
    assert family is not None
    plans = [p.settings["dp_start"] for p in family.plans]
    assert plans == ["intercept", "intercept", "columns"]
    most = MEETINGS / worth(1.0) / 0.05**2
    assert [family.choose(n, 0.05 * n) for n in (10.0, most - 1.0, most)] == [2, 2, 1]
    assert [family.choose(n, n) for n in (10.0, most - 1.0, most)] == [0, 1, 1]
    assert family.choose(-10.0, -20.0) == 0


def test_the_rule_reads_what_was_released():
    assert is_sparse(1000.0, 79.0, 100.0)
    assert not is_sparse(1000.0, 81.0, 100.0)
    assert is_sparse(1000.0, 70.0, 5.0)
    assert not is_sparse(1000.0, 71.0, 5.0)
    assert not is_sparse(-50.0, 0.0, 100.0)

    noise: Any = {"intercept": Noise(sigma2=64, shift=4)}
    sums = [-16, 1600, 80]
    assert rows_from_sums("binary", noise, sums) == 100.0
    assert present_from_sums(noise, [*sums, 7, 9]) == 5.0 + 8 / 16


def predicted(model: xgb.Booster, d: xgb.DMatrix) -> np.ndarray:
    return model.predict(d, output_margin=True)


def test_a_start_finds_many_rare_columns():
    """Weak effects of many columns, each in a row of fifty: what selections are slow to find."""
    rng = np.random.default_rng(3)
    X = (rng.random((20000, 100)) < 0.02).astype(np.float32)
    effect = rng.normal(size=100) * 1.5
    d = xgb.DMatrix(X, rng.random(20000) < 1 / (1 + np.exp(-X @ effect)))

    def order(**more: Any) -> float:
        model = xgb.train(private_params(dp_epsilon=0.3, **more), d, 10)
        return float(np.corrcoef(predicted(model, d), X @ effect)[0, 1])

    assert order(dp_start="columns") > 0.1 + order()
