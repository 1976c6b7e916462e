"""The attacks find in stock models what is there, and know the population from the rows."""

import numpy as np
import pytest
import xgboost as xgb

from experiments.attacks import checkers, membership, reconstruction, targets
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


def test_ratios_tell_members_whose_margins_move():
    """Each row has margins of its own, so that only those with and without it say which it is."""
    rng = np.random.default_rng(6)
    label = rng.integers(0, 2, 400).astype(np.float64)
    assignments = rng.random((65, 400)) < 0.5
    margins = rng.normal(scale=9, size=400) + rng.normal(size=(65, 400))
    moved = margins + 9 * assignments * np.where(label > 0, 1.0, -1.0)
    assert membership.ratios(moved[0], moved[1:], assignments[1:], label, assignments[0])[0] > 0.999
    area, _ = membership.ratios(margins[0], margins[1:], assignments[1:], label, assignments[0])
    assert 0.4 < area < 0.6


def test_what_epsilon_allows():
    """The exact curve of a coin that is told with probability e^epsilon / (1 + e^epsilon)."""
    area, share = membership.allowed(np.log(3), 0.0)
    assert area == pytest.approx(0.75, abs=1e-6) and share == pytest.approx(0.03)
    assert membership.allowed(np.inf, 0.0) == pytest.approx((1.0, 1.0), abs=1e-4)
    assert membership.allowed(0.0, 0.0) == pytest.approx((0.5, 0.01))


def test_checkers_see_the_settings_of_a_private_model():
    x = np.random.default_rng(0).normal(size=(200, 3))
    params = {"tree_method": "dp_hist", "objective": "binary:logistic", "max_depth": 2}
    booster = xgb.train(
        params | {"dp_epsilon": 1.0, "dp_delta": 1e-6}, xgb.DMatrix(x, x[:, 0] > 0), 7
    )
    model = checkers.estimator_of(booster)
    assert (model.max_depth, model.n_estimators) == (2, 7)
    assert model.predict_proba(x).shape == (200, 2)
