import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from xgb_dp.accounting.bounded_range import Grid, choose_grid, selection_curve, tail_curve, width
from xgb_dp.accounting.composition import Composition
from xgb_dp.accounting.curve import GridCurve
from xgb_dp.accounting.gaussian import _is_above, block_mu, gaussian_delta, merge_blocks

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


def test_runs_of_a_range_may_be_divided():
    steps = [(0.05, 137), (0.3, 3), (0.05, 41)]
    grid = choose_grid(steps, 0.1, math.log(1e-15), 1e7)
    one = selection_curve(steps, grid)
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
    with pytest.raises(RuntimeError, match="positive"):
        selection_curve([(math.nan, 1)], Grid(0.1, 4, 4))


@pytest.mark.parametrize("eps0", [7.0, 10.0, 60.0, 0.3])
@pytest.mark.parametrize("step", [0.05, 0.1])
def test_widths_are_those_of_the_kernel(eps0, step):
    """One selection loses at most m * h: the curve is 0 from there on, and not before."""
    m = width(eps0, step)
    curve = selection_curve([(eps0, 1)], Grid(step, m + 3, m + 3))
    assert np.all(curve[2 * m + 3 :] <= 1e-299)
    assert curve[2 * m + 2] > 1e-299 or math.exp(-eps0) < 1e-20


@pytest.mark.parametrize("steps", [[(10.0, 3)], [(60.0, 2)], [(1e-4, 900)], [(0.3, 40), (12.0, 1)]])
@pytest.mark.parametrize("mu", [0.0, 0.5, 60.0])
def test_the_curve_ends_in_a_tail(steps, mu):
    grid, curve = tail_curve(tuple(steps), mu, math.log(1e-18), 1e7)
    assert curve[-1] <= 1.001e-18
    assert len(curve) == grid.below + grid.above + 1


def test_no_grid_where_it_would_be_too_large():
    assert tail_curve(((36.0, 1800),), 0.0, math.log(1e-13), 1e8) is None
    assert tail_curve(((0.1, 10),), 1e5, math.log(1e-13), 1e8) is None


@pytest.mark.parametrize("eps0", [0.003, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("count", [5, 60])
def test_a_block_is_below_its_gaussian(eps0, count):
    extra = 1e-9
    mu = block_mu(eps0, count, math.log(extra), 1e8)
    h = eps0 / 24 * (1 + 1e-13)
    n = 24 * count
    # What an adversary reaches, and the kernel's bound between its grid points.
    x, low = recursion([(eps0, count)], h, upper=False)
    gauss = np.array([gaussian_delta(e, mu) for e in x])
    assert np.all(low <= gauss + extra + 1e-12)
    assert n == len(x) // 2
    limit = eps0 * math.sqrt(count) / 2
    assert mu <= limit * (1 + 1.2 / count + 0.01)
    assert eps0 > 1 or mu >= limit


def test_blocks_are_tight():
    mu = block_mu(0.02, 1000, math.log(1e-13), 1e8)
    assert 1.0 <= mu / (0.02 * math.sqrt(1000) / 2) < 1.003


def test_blocks_cover_every_selection():
    mu, left, extra = merge_blocks([(0.01, 1500), (0.3, 7), (0.01, 1500)], math.log(1e-13), 1e8)
    assert left == [(0.3, 7)]
    assert mu >= 0.01 * math.sqrt(3000) / 2
    assert extra == pytest.approx(1e-13)
    assert merge_blocks([(0.01, 900)], math.log(1e-13), 1e8) == (0.0, [(0.01, 900)], 0.0)


@pytest.mark.parametrize("mu, x", [(0.3, 0.0), (1.0, 2.0), (4.0, 5.0)])
def test_a_gaussian_bounds_chords_below_its_tangent_and_no_others(mu, x):
    """The curve is convex in e^x: its tangent in the middle of a segment is below both ends."""
    step = 0.5
    middle = x + step / 2
    slope = -ndtr(-mu / 2 - middle / mu)  # by e^x
    tangent = [ndtr(mu / 2 - middle / mu) + slope * math.exp(end) for end in (x, x + step)]
    for left, right in itertools.product((-1e-9, 1e-9), repeat=2):
        curve = np.add(tangent, (left, right))
        assert _is_above(mu, np.array([middle]), step, curve, 0.0) == (left < 0 > right)


@pytest.mark.parametrize("mu", [0.3, 4.0, 60.0])
def test_a_window_of_gaussian_losses_bounds_those_of_the_whole_grid(mu):
    window = Composition(mu, [(0.4, 30), (1.5, 4)], math.log(1e-10), 1e7)
    whole = Composition(mu, [(0.4, 30), (1.5, 4)], math.log(1e-10), 1e7)
    whole.far = math.inf
    for spread in (-1.0, 0.0, 2.0, 4.0):
        epsilon = mu * mu / 2 + 2.0 + spread * math.hypot(mu, 1.7)
        exact = whole.delta(epsilon)
        assert exact * (1 - 1e-12) <= window.delta(epsilon) <= exact * (1 + 1e-9) + 1e-14
    # A narrow window loses much of the accuracy, and nothing of the bound.
    window.far = 0.1
    epsilon = mu * mu / 2 + 2.0
    assert window.delta(epsilon) > whole.delta(epsilon)


@pytest.mark.parametrize("first", [-3.0, 0.5])
def test_what_is_read_from_a_grid_is_just_above_the_curve(first):
    """On the grid, between its points, below it and beyond its end."""
    mu, step, n = 1.2, 0.05, 120
    x = first + step * np.arange(n)
    grid = GridCurve(x, np.array([gaussian_delta(v, mu) for v in x]), step)
    for epsilon in (*np.linspace(first - 2.0, x[-1], 311), *x):
        value, exact = grid.at(epsilon), gaussian_delta(epsilon, mu)
        # Below the grid a curve falls by at most the growth of e^x.
        below = max(math.exp(first) - math.exp(epsilon), 0.0)
        assert exact <= value <= min(exact + 0.25 * step**2 + below, 1.0 + 1e-9) + 1e-7
    assert grid.at(x[-1] + 1.0) == grid.values[-1]


@pytest.mark.parametrize("other", [0.01, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("far", [9.0, math.inf])
@pytest.mark.parametrize("n", [150, 400])  # points; of the fewer ones the end matters
def test_means_over_a_gaussian_are_just_above_its_curve(other, far, n):
    mu, step = 1.2, 0.05
    x = -6.0 + step * np.arange(n)
    grid = GridCurve(x, np.array([gaussian_delta(v, mu) for v in x]), step)
    for epsilon in (-2.0, 0.0, 0.7, 3.0, 8.0):
        value = grid.convolved(epsilon, other, far)
        exact = gaussian_delta(epsilon, math.hypot(mu, other))
        assert exact * (1.0 - 1e-9) <= value
        assert n == 150 or value <= exact * (1.0 + step) + 1e-7
