"""The attacks find in stock models what is there, and know the population from the rows."""

import numpy as np
import pytest
import xgboost as xgb

from experiments.attacks import membership, reconstruction, targets
from experiments.attacks.forest import read


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Sixty rows of three columns, and a target that follows two of them."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(60, 3))
    return x, x[:, 0] + x[:, 1] + 0.2 * rng.normal(size=60)


LOW, HIGH = np.zeros(3), np.ones(3)


def test_stock_trees_tell_the_cells_of_all_rows(rows):
    """Counts and labels of each cell follow from gradients and Hessians, over two trees."""
    x, y = rows[0], (rows[1] > 1).astype(np.float64)
    params = {"objective": "binary:logistic", "max_depth": 2, "eta": 0.3}
    model = read(xgb.train(params, xgb.DMatrix(x, y), 2).save_raw("json"), LOW, HIGH)
    known = reconstruction.Knowledge(len(y), LOW, HIGH)
    truth = reconstruction.cells(model, x, y, 2)
    assert truth.total() == len(y)
    assert reconstruction.agreement(reconstruction.reconstruct(model, known, 2), truth) == 1.0
    others = reconstruction.cells(model, 1 - x, y, 2)
    assert reconstruction.agreement(others, truth) < 0.7


def test_leaves_of_a_single_row_tell_its_target(rows):
    """Exactly, up to the 32 bits of a leaf; and not where the sums are those of noise."""
    x, y = rows
    params = {"objective": "reg:squarederror", "max_depth": 6, "eta": 0.3}
    booster = xgb.train(params, xgb.DMatrix(x, y), 1)
    guesses = targets.single_rows(read(booster.save_raw("json"), LOW, HIGH), 0.3)
    assert len(guesses) > 5
    assert targets.found(guesses, x, y, float(np.ptp(y))) == len(guesses)
    assert targets.found(guesses, x, y + 0.1, float(np.ptp(y))) == 0


def test_membership_is_told_by_what_only_members_have():
    """All members, if their margins stand out from those of other models; else one in a hundred."""
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, 400).astype(np.float64)
    member = np.arange(400) < 200
    others = [rng.normal(size=400) for _ in range(4)]
    towards = np.where(label > 0, 1.0, -1.0)
    usual = np.mean(others, axis=0)
    assert membership.advantage(usual + 9 * member * towards, others, label, member) == (1.0, 1.0)
    area, advantage = membership.advantage(usual + rng.normal(size=400), others, label, member)
    assert 0.4 < area < 0.6
    assert advantage < 0.1
