import math

import numpy as np
import pytest

from xgb_dp.accounting.bounded_range import Grid, choose_grid, selection_curve

from .oracle import recursion


def _grid(steps, points):
    h = steps[0][0] / points * (1 + 1e-13)
    n = math.ceil(sum(e * k for e, k in steps) / h) + 2 * sum(k for _, k in steps)
    return Grid(h, n, n)


@pytest.mark.parametrize("eps0", [0.01, 0.1, 0.5, 2.0, 10.0])
@pytest.mark.parametrize("points", [24, 100])
def test_one_selection_is_the_envelope(eps0, points):
    grid = _grid([(eps0, 1)], points)
    x = np.clip(grid.points(), -eps0, eps0)
    envelope = (1 - np.exp((x - eps0) / 2)) ** 2 / (1 - np.exp(-eps0))
    envelope = np.where(grid.points() < -eps0, -np.expm1(grid.points()), envelope)
    value = selection_curve([(eps0, 1)], grid)
    assert np.all(value >= envelope - 1e-15)
    # The chord through three grid points departs from the curve by the third order of the step.
    assert np.max(value - envelope) <= 0.25 * eps0 * (1 + eps0) ** 2 * points**-2


@pytest.mark.parametrize(
    "steps",
    [
        [(0.1, 8)],
        [(0.5, 5)],
        [(1.5, 4)],
        [(0.4, 3), (0.1, 4), (0.2, 2)],
        [(0.1, 4), (0.4, 3)],
        [(3.0, 1), (0.5, 3)],
    ],
)
def test_just_above_what_an_adversary_reaches(steps):
    grid = _grid([(min(e for e, _ in steps), 0), *steps], 8)
    value = selection_curve(steps, grid)
    _, low = recursion(steps, grid.step / (1 + 1e-13), upper=False)
    _, high = recursion(steps, grid.step / (1 + 1e-13), upper=True)
    n_low, n_high = len(low) // 2, len(high) // 2
    n = min(n_low, n_high, grid.below)
    middle = value[grid.below - n : grid.below + n + 1]
    assert np.all(middle >= low[n_low - n : n_low + n + 1] - 1e-11)
    # Far closer to what an adversary reaches than one grid step per selection.
    gap = high[n_high - n : n_high + n + 1] - low[n_low - n : n_low + n + 1]
    assert np.max(middle - low[n_low - n : n_low + n + 1]) < 0.35 * np.max(gap)


def test_truncation_is_an_upper_bound():
    steps = [(0.2, 30)]
    wide = Grid(0.02, 320, 320)
    narrow = Grid(0.02, 60, 110)
    full = selection_curve(steps, wide)[320 - 60 : 320 + 111]
    cut = selection_curve(steps, narrow)
    assert np.all(cut >= full * (1 - 1e-12))


def test_threads_and_tiles_do_not_matter():
    steps = [(0.05, 137), (0.3, 3), (0.05, 41)]
    grid = choose_grid(steps, 0.1, math.log(1e-15), 1e7)
    one = selection_curve(steps, grid, 1)
    assert np.array_equal(one, selection_curve(steps, grid, 2))
    split = [(0.05, 100), (0.05, 37), (0.3, 1), (0.3, 2), (0.05, 41)]
    assert np.allclose(one, selection_curve(split, grid), rtol=1e-12, atol=0)


def test_shape_of_the_curve():
    steps = [(0.3, 40)]
    grid = choose_grid(steps, 0.0, math.log(1e-12), 1e7)
    value = selection_curve(steps, grid)
    x = grid.points()
    assert np.all(np.diff(value) <= 0)
    assert np.all((value >= 0) & (value <= 1))
    assert np.all(value >= -np.expm1(np.minimum(x, 0)) - 1e-15)


def test_a_bad_grid_is_refused():
    with pytest.raises(RuntimeError, match="grid step"):
        selection_curve([(0.1, 1)], Grid(0.7, 4, 4))
    with pytest.raises(RuntimeError, match="positive"):
        selection_curve([(-0.1, 1)], Grid(0.1, 4, 4))
