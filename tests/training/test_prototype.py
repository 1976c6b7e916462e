"""The NumPy prototype: bounds of its mechanisms hold and are attained, and it learns."""

import math

import numpy as np
import pytest
from scipy.special import expit

from xgb_dp import prototype
from xgb_dp.accounting import ExactAccountant, ExponentialEvent, GaussianEvent

CUTS = np.tile(np.linspace(-2, 2, 7), (3, 1))
SHAPE = (3, 8, 2)


class Recorder:
    """Mechanisms that record their input and draw nothing."""

    def __init__(self):
        self.seen = []

    def choose(self, sums, rng):
        self.seen.append(sums)
        return int(rng.integers(3)), int(rng.integers(7))

    def values(self, sums, rng):
        self.seen.append(sums)
        return np.zeros(len(sums))

    def events(self, count):
        return []


@pytest.mark.parametrize("label", [0, 1])
def test_a_row_changes_one_node_of_a_level_and_one_leaf_by_its_pair(label):
    rng = np.random.default_rng(label)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    X[0, 1], y[0] = math.nan, label
    seen = []
    for start in (0, 1):
        recorder = Recorder()
        prototype.fit(X[start:], y[start:], CUTS, recorder, recorder, rounds=1, depth=2, seed=3)
        seen.append(recorder.seen)
    changes = [a - b for a, b in zip(*seen, strict=True)]
    pair = [prototype.UNIT * (0.5 - label), prototype.UNIT / 4]
    root, left, right, leaves = changes
    assert root.shape == left.shape == right.shape == SHAPE
    assert (root.sum(axis=1) == pair).all()
    assert sorted([bool(left.any()), bool(right.any())]) == [False, True]
    assert leaves.any(axis=1).sum() == 1
    assert (leaves.sum(axis=0) == pair).all()


def chances(split, sums):
    """Exact probabilities of the selection, from the definition."""
    left = np.cumsum(sums[:, :, 0], axis=1)[:, :-1]
    utility = np.abs(left) + np.abs(sums[:, :, 0].sum(axis=1, keepdims=True) - left)
    weight = np.exp(split.eps0 * (utility - utility.max()) / (2 * prototype.UNIT))
    return weight / weight.sum()


def test_the_range_of_a_selection_is_its_event_and_is_attained():
    split = prototype.ExponentialSplit(0.7)
    (event,) = split.events(12)
    assert isinstance(event, ExponentialEvent)
    assert (event.count, event.eps0) == (12, pytest.approx(0.7))
    assert event.eps0 >= 0.7
    rng, largest = np.random.default_rng(0), 0.0
    for i in range(200):
        sums = rng.integers(-3, 4, SHAPE) * prototype.UNIT
        row = np.zeros(SHAPE, dtype=np.int64)
        for column, place in enumerate(rng.integers(0, 8, 3)):
            row[column, place, 0] = prototype.UNIT * (-1) ** i
        losses = np.log(chances(split, sums + row) / chances(split, sums))
        largest = max(largest, losses.max() - losses.min())
        assert losses.max() - losses.min() <= event.eps0 + 1e-9
    assert largest > 0.999 * event.eps0


def test_selections_have_the_stated_probabilities():
    split = prototype.ExponentialSplit(1.5)
    rng = np.random.default_rng(1)
    sums = rng.integers(-2, 3, SHAPE) * prototype.UNIT
    counts = np.zeros((3, 7))
    for _ in range(4000):
        counts[split.choose(sums, rng)] += 1
    expected = 4000 * chances(split, sums)
    assert ((counts - expected) ** 2 / expected).sum() < 55  # chi-square, 20 degrees: 1 in 30,000


def test_the_noise_of_leaves_is_its_event():
    leaf = prototype.GaussianLeaf(3.0, reg_lambda=0.0, max_delta_step=math.inf)
    (event,) = leaf.events(5)
    assert isinstance(event, GaussianEvent)
    assert (event.count, event.coordinates) == (5, 2)
    assert event.sensitivity2 == prototype.UNIT**2 * (1 + 1 / 16)
    assert event.sigma2 == pytest.approx(9 * event.sensitivity2, rel=1e-9)
    sums = np.tile(np.array([[0, 2**40]]), (20_000, 1))
    noise = leaf.values(sums, np.random.default_rng(0)) * 2**40
    assert noise.std() == pytest.approx(math.sqrt(event.sigma2), rel=0.03)


def test_it_learns_and_charges_its_draws():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 3))
    y = rng.random(4000) < expit(3 * X[:, 0])
    parts = prototype.ExponentialSplit(1.0), prototype.GaussianLeaf(2.0)
    model = prototype.fit(X, y, CUTS, *parts, rounds=10, depth=2, seed=0)
    assert np.corrcoef(model.predict(X), expit(3 * X[:, 0]))[0, 1] > 0.9
    events = prototype.events_of(*parts, rounds=10, depth=2)
    assert model.get_epsilon(1e-6) == ExactAccountant(events).get_epsilon(1e-6)
    assert [event.count for event in events] == [20, 10]
