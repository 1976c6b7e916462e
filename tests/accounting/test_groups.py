"""Several rows, and rows that are exchanged, where rounds read samples or parts."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from xgb_dp.accounting import ExactAccountant, Repetitions, SelectionEvent, make_accountant
from xgb_dp.accounting.accountant import delta_in_steps, epsilon_in_steps
from xgb_dp.accounting.curve import Curve
from xgb_dp.accounting.sampled_rounds import ParallelEvent

from .events import gaussian, laplace, sampled, selections
from .oracle import Composed, stick

Distribution = npt.NDArray[np.float64]


# --------------------------------------------------------------------------- rows exchanged
@pytest.mark.parametrize(
    ("rate", "noise", "count"), [(0.4, 3.0, 1), (0.1, 2.0, 40), (0.05, 1.0, 60), (0.9, 8.0, 10)]
)
def test_an_exchange_is_above_two_opposite_rows_and_close(rate, noise, count):
    """(1-q) N(0) + q N(-1) against (1-q) N(0) + q N(1): one coin for both rows."""
    z = np.linspace(-12 * noise, 12 * noise, 40_001)

    def at(shift: float) -> Distribution:
        distribution = np.exp(-((z - shift) ** 2) / (2 * noise**2))
        return np.asarray(distribution / distribution.sum())

    event = sampled(rate, count, gaussian(noise))
    low, high = ((1 - event.rate) * at(0.0) + event.rate * at(s) for s in (-1.0, 1.0))
    reached = Composed(high, low, count, 1e-4)
    accountant = make_accountant("exact", [event])
    for epsilon in (0.1, 0.5, 1.5):
        assert reached.delta(epsilon) <= accountant.get_delta(epsilon, replaced=True) * (1 + 1e-6)
    least = reached.epsilon(1e-6)
    got = accountant.get_epsilon(1e-6, replaced=True)
    assert least <= got <= 1.03 * least
    # Two coins of two rows would cost more.
    assert got < ExactAccountant([event]).get_epsilon(1e-6, group_size=2)


@pytest.mark.parametrize(
    ("rate", "noise", "count", "rows"), [(0.1, 2.0, 30, 3), (0.02, 0.8, 50, 2), (0.6, 6.0, 8, 4)]
)
def test_several_rows_are_above_binomial_mixtures_and_close(rate, noise, count, rows):
    """Rows on either side of the two data sets, each read by its own coin, all pulling apart."""
    z = np.linspace(-(12 * noise + rows), 12 * noise + rows, 40_001)
    event = sampled(rate, count, gaussian(noise))

    def of(shifts: npt.NDArray[np.float64]) -> Distribution:
        """The law of a sum with rows of such values, of which any subset is read."""
        distribution = np.zeros_like(z)
        for read in range(2 ** len(shifts)):
            kept = np.array([read >> i & 1 for i in range(len(shifts))], dtype=bool)
            chance = event.rate ** kept.sum() * (1 - event.rate) ** (~kept).sum()
            distribution += chance * np.exp(-((z - shifts[kept].sum()) ** 2) / (2 * noise**2))
        return np.asarray(distribution / distribution.sum())

    accountant = make_accountant("exact", [event])
    got = accountant.get_epsilon(1e-6, rows)
    reached = []
    for first in range(rows + 1):
        p, q = of(np.ones(first)), of(-np.ones(rows - first))
        reached.append(Composed(p, q, count, 1e-4).epsilon(1e-6))
    assert max(reached) <= got <= 1.15 * max(reached)
    assert got < 0.9 * make_accountant("exact", [gaussian(noise, count)]).get_epsilon(1e-6, rows)


def test_a_sample_of_all_rows_is_no_sample():
    """Several rows, too: the mixture over how many of them a round reads has one part."""
    plain = make_accountant("exact", [gaussian(8.0, 5)]).get_epsilon(1e-6, 2)
    whole = make_accountant("exact", [sampled(1.0, 5, gaussian(8.0))]).get_epsilon(1e-6, 2)
    assert plain * (1 - 1e-6) <= whole <= 1.02 * plain


def test_very_many_rows_take_steps():
    accountant = make_accountant("exact", [sampled(0.05, 5, gaussian(40.0))])
    at_once, steps = (accountant.get_epsilon(1e-6, k) for k in (20, 60))
    assert at_once < steps <= 6 * at_once
    assert accountant.get_delta(steps, 60) <= 1e-6 * (1 + 1e-2)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4), min_size=2, max_size=2),
    st.lists(st.floats(-2.0, 0.0), min_size=4, max_size=4),
    st.floats(0.05, 2.0),
    st.floats(0.02, 0.95),
    st.integers(1, 3),
)
def test_an_exchange_is_above_any_selections(shifts, logs, eps0, rate, count):
    """Laws of a selection with one row, with its replacement, and without either, mixed by hand."""
    event = sampled(rate, count, selections(eps0))
    base = np.exp(np.array(logs))
    base /= base.sum()
    one, other = (base * np.exp(eps0 * np.array(s)) for s in shifts)
    a, b = (
        (1 - event.rate) * base + event.rate * distribution / distribution.sum()
        for distribution in (one, other)
    )
    p, q = np.ones(1), np.ones(1)
    for _ in range(count):
        p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
    accountant = make_accountant("exact", [event])
    for x in (0.0, 0.05, 0.3, 1.0):
        reached = max(stick(p, q, x), stick(q, p, x))
        assert reached <= accountant.get_delta(x, replaced=True) + 1e-9


def test_an_exchange_costs_at_most_a_removal_and_an_addition():
    inner = (selections(0.2, 4), gaussian(3.0))
    score = (gaussian(6.0),)
    distribution = Repetitions.of("geometric", 4.0)
    for events in (
        [sampled(0.1, 20, *inner)],
        [ParallelEvent(8, inner, 2)],
        [SelectionEvent(distribution, (inner,), score, 1)],
        [gaussian(9.0), sampled(0.3, 5, *inner)],
    ):
        accountant = make_accountant("exact", events)
        one, swapped, two = (
            accountant.get_epsilon(1e-6),
            accountant.get_epsilon(1e-6, replaced=True),
            accountant.get_epsilon(1e-6, 2),
        )
        assert one < swapped <= two * (1 + 1e-9), events
        assert accountant.get_delta(swapped, replaced=True) <= 1e-6 * (1 + 1e-3)


def test_what_reads_all_rows_knows_no_assignment():
    for name in ("exact", "rdp", "gdp", "classic", "pure"):
        accountant = make_accountant(name, [selections(0.3, 4), laplace(0.2, 3)])
        assert accountant.get_epsilon(1e-6, 2, replaced=True) == accountant.get_epsilon(1e-6, 4)
        assert accountant.get_delta(0.5, 2, replaced=True) == accountant.get_delta(0.5, 4)


# -------------------------------------------------------------------------------- in steps
class Shifts(Curve):
    """Noise of a known distribution function, shifted by one unit for each row.

    The best test of shifts of a law whose logarithm is concave is a threshold.
    """

    def __init__(self, cdf: Callable[[Distribution], Distribution], size: float, rows: int) -> None:
        self.cdf, self.size, self.rows = cdf, size, rows

    def delta(self, epsilon: float) -> float:
        at = np.linspace(-40.0, 40.0, 10_001) / self.size
        power = self.cdf(at + self.rows)
        return float(max(0.0, np.max(power - math.exp(epsilon) * self.cdf(at))))

    def epsilon(self, delta: float) -> float:
        low, high = 0.0, 200.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("steps", [2, 3, 5])
def test_steps_are_above_shifted_gaussians(mu, steps):
    def cdf(x: Distribution) -> Distribution:
        return np.asarray(ndtr(mu * x))

    one, all_rows = Shifts(cdf, mu, 1), Shifts(cdf, mu, steps)
    for delta in (1e-2, 1e-5):
        epsilon = epsilon_in_steps(one, delta, steps)
        assert all_rows.delta(epsilon) <= delta
        assert epsilon <= 2.5 * all_rows.epsilon(delta)
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        want = all_rows.delta(epsilon)
        assert want <= delta_in_steps(one, epsilon, steps) * (1 + 1e-9)


class Worst(Curve):
    """(e, d)-private and no better: k rows of a chain of laws reach the bound exactly."""

    def __init__(self, e: float, d: float) -> None:
        self.e, self.d = e, d

    def epsilon(self, delta: float) -> float:
        return self.e if delta >= self.d else math.inf

    def delta(self, epsilon: float) -> float:
        return self.d if epsilon >= self.e else 1.0


@pytest.mark.parametrize("steps", [2, 3, 7])
def test_steps_reach_the_worst_chain(steps):
    """P_i(S) = e P_{i+1}(S) + d for one set S, all the way."""
    e, d = 0.4, 1e-3
    chance = 0.0
    for _ in range(steps):
        chance = math.exp(e) * chance + d
    assert delta_in_steps(Worst(e, d), steps * e * (1 + 1e-12), steps) == pytest.approx(chance)
    assert epsilon_in_steps(Worst(e, d), chance * 1.01, steps) == pytest.approx(steps * e)
    assert epsilon_in_steps(Worst(e, d), chance * 0.99, steps) == math.inf


@pytest.mark.parametrize(
    "event",
    [
        sampled(0.05, 50, selections(0.2, 4), gaussian(3.0)),
        ParallelEvent(8, (selections(0.1, 4), gaussian(6.0)), 3),
    ],
)
def test_several_rows_of_rounds_cost_at_most_their_steps(event):
    accountant = make_accountant("exact", [gaussian(20.0), event])
    costs = [accountant.get_epsilon(1e-6, k) for k in (1, 2, 5)]
    assert costs == sorted(costs)
    for k, epsilon in zip((2, 5), costs[1:], strict=True):
        assert epsilon <= epsilon_in_steps(accountant.privacy_curve(), 1e-6, k) * (1 + 1e-6)
        assert accountant.get_delta(epsilon, k) <= 1e-6 * (1 + 1e-2)
    assert accountant.get_epsilon(1e-300, 5) >= costs[-1]
    assert accountant.get_epsilon(0.0, 2) == math.inf
    assert accountant.get_delta(math.inf, 2) == 0.0
