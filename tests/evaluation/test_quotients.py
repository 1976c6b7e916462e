"""Intervals of quotients, and of quantiles of errors, hold the truth as often as they say."""

import math

import numpy as np
import pytest

from xgb_dp.evaluation.classification import TwoClasses
from xgb_dp.evaluation.counts import (
    CELLS,
    TOTALS,
    Posterior,
    ScoreGrid,
    Solver,
    counts_matrix,
    value_cells,
)
from xgb_dp.evaluation.figures import Figure, Values, value_matrix

TIMES = 4_000
# Of 4,000 samples at least 92% cover: where 95% do in truth, that is 8.7 deviations away.
LEAST = 0.92


@pytest.mark.parametrize("denominator", [0.5, 3.0, 30.0])
def test_quotients_cover(denominator):
    """Also where the denominator is within its own noise."""
    rng = np.random.default_rng(0)
    spread = np.array([[1.0, 0.4], [0.4, 1.0]])
    truth = np.array([0.6 * denominator, denominator])
    hits, bounded = 0, 0
    for one in rng.multivariate_normal(truth, spread, TIMES):
        figure = Figure.quotient(one, spread, spread, 0.95, low=-5.0, high=5.0)
        assert -5.0 <= figure.low <= figure.value <= figure.high <= 5.0
        hits += figure.low <= 0.6 <= figure.high
        bounded += figure.high - figure.low < 10.0
    assert hits >= LEAST * TIMES
    assert (bounded == TIMES) is (denominator == 30.0)


def test_a_quotient_without_noise_is_exact():
    none = np.zeros((2, 2))
    figure = Figure.quotient([3.0, 4.0], none, none, 0.95)
    assert (figure.low, figure.value, figure.high, figure.noise) == (0.75, 0.75, 0.75, 0.0)
    assert figure.moved(lambda q: 1.0 - q) == Figure(0.25, 0.25, 0.25, 0.0)


@pytest.mark.parametrize("square", [-2.0, 0.0, 1e-12, 0.04, 9.0])
def test_a_root_has_the_noise_of_its_scale(square):
    """Also where the noisy square is 0 or below, in which the root has no slope."""
    noise = np.diag([0.01, 0.0])
    figure = Figure.quotient([square, 1.0], noise, noise, 0.95, low=0.0, high=16.0)
    root = figure.moved(math.sqrt)
    assert root.noise == pytest.approx(min(0.1**0.5, 0.05 / max(square, 1e-9) ** 0.5), rel=0.4)
    assert root.low <= root.value <= root.high <= 4.0


@pytest.mark.parametrize("rows", [200, 5_000])
def test_quantiles_and_means_cover(rows):
    """Of 120 samples: below 85% would be 5 deviations under 95%."""
    rng = np.random.default_rng(rows)
    solver, noise = Solver.from_matrix(value_matrix()), 2_000.0
    hits = {"mean": 0, "0.05": 0, "0.5": 0, "0.95": 0}
    truth = {"mean": 0.0, "0.05": -0.328971, "0.5": 0.0, "0.95": 0.328971}  # 0.2 * 1.644854
    for _ in range(120):
        counts = np.bincount(value_cells(0.2 * rng.normal(size=rows)), minlength=CELLS)
        sums = value_matrix() @ counts + noise * rng.normal(size=len(value_matrix()))
        values = Values.from_sums(solver, sums, noise, 0.0, 1.0, 0.95)
        for name in hits:
            figure = values.mean if name == "mean" else values.quantile(float(name))
            hits[name] += figure.low <= truth[name] <= figure.high
    assert min(hits.values()) >= 0.85 * 120, hits


@pytest.mark.parametrize("rows", [1_000, 10_000])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("noise", [0.0, 500.0, 3_000.0])
def test_base_rates_cover_what_they_say(rows, share, noise):
    grid, rng = ScoreGrid(), np.random.default_rng(6)
    solver = Solver.from_matrix(counts_matrix(grid))
    covariance = TOTALS @ solver.covariance @ TOTALS.T * noise**2
    root = np.linalg.cholesky(covariance + 1e-12 * np.eye(2))
    covered = []
    for _ in range(1_500):
        seen = [rng.binomial(rows, share), rows] + root @ rng.normal(size=2)
        empty = [np.zeros(0)] * 5
        figure = TwoClasses(Posterior(grid, *empty, seen, covariance)).base_rate
        covered.append(figure.low <= share <= figure.high)
    # 95% within five deviations of 1,500 samples. Where positives are within the noise, those below
    # 0 count as 0, so that 97.5% cover.
    assert 0.92 < np.mean(covered) < 0.996


def test_the_interval_of_an_impossible_quotient_is_the_whole_range():
    figure = Figure.quotient([5.0, 1.0], np.eye(2), np.eye(2), 0.95, low=0.0, high=1.0)
    assert (figure.low, figure.high) == (0.0, 1.0)
