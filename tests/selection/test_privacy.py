"""What the best of a random number of runs costs, against its exact law."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import dp_accounting as dpa
import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from xgb_dp.accounting import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    Repetitions,
    SelectionEvent,
    event_from_json,
    make_accountant,
)
from xgb_dp.accounting.curve import Curve
from xgb_dp.accounting.sampled_rounds import SampledEvent
from xgb_dp.accounting.selection import SelectionCurve, WithSelections
from xgb_dp.errors import LedgerError

EXAMPLES = settings(max_examples=150, deadline=None, derandomize=True)
FAMILIES = ("logarithmic", "geometric", "negative_binomial", "poisson")
Distribution = npt.NDArray[np.float64]


def generating(distribution: Repetitions) -> Callable[[Distribution], Distribution]:
    """f(x) = E x^K, from the literature's formulas."""
    r, eta = distribution.rate, distribution.shape
    if distribution.family == "poisson":
        return lambda x: (np.exp(-r * (1 - x)) - np.exp(-r)) / -np.expm1(-r)
    if eta == 0.0:
        return lambda x: np.log1p(-(1 - r) * x) / np.log(r)
    return lambda x: ((1 - (1 - r) * x) ** -eta - 1) / (r**-eta - 1)


def best_of(
    q: Distribution, group: npt.NDArray[np.int64], distribution: Repetitions
) -> Distribution:
    """Exact law of the best run; outputs of one group have the same score."""
    f = generating(distribution)
    out = np.zeros_like(q)
    below = 0.0
    for g in np.unique(group):
        mass = float(q[group == g].sum())
        if mass > 0.0:
            out[group == g] = q[group == g] / mass * (f(below + mass) - f(below))
        below += mass
    return out


def stick(p: Distribution, q: Distribution, x: float) -> float:
    """The larger hockey stick of both orders."""
    return float(
        max(np.maximum(p - math.exp(x) * q, 0).sum(), np.maximum(q - math.exp(x) * p, 0).sum())
    )


class Pair(Curve):
    """Two known laws, as an accountant."""

    def __init__(self, p: Distribution, q: Distribution) -> None:
        self.p, self.q = p, q

    def delta(self, epsilon: float) -> float:
        return stick(self.p, self.q, epsilon)

    def deltas(self, points: Sequence[float], lowest: float) -> list[float]:
        ratio = np.exp(np.array(points))[:, np.newaxis]
        orders = ((self.p, self.q), (self.q, self.p))
        return np.max(
            [np.maximum(a - ratio * b, 0).sum(axis=1) for a, b in orders], axis=0
        ).tolist()

    def epsilon(self, delta: float) -> float:
        low, high = 0.0, 60.0
        if self.delta(low) <= delta:
            return 0.0
        if self.delta(high) > delta:
            return math.inf
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high


def best_curve(distribution: Repetitions, run: Curve) -> SelectionCurve:
    """Remembers its epsilons, for which every point of it asks again."""
    bound = SelectionCurve(distribution, [run])
    bound.epsilon = functools.cache(bound.epsilon)
    return bound


def shifted(mu: float, end: float, points: int) -> tuple[Distribution, Distribution, Distribution]:
    """Points from -end to end, and a normal law on them with the mean mu and with 0."""
    z = np.linspace(-end, end, points)
    p, q = (np.exp(-((z - shift) ** 2) / 2) for shift in (mu, 0.0))
    return z, p / p.sum(), q / q.sum()


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Distribution, Distribution, npt.NDArray[np.int64]]:
    size = draw(st.integers(2, 6))
    logs = st.floats(-6.0, 0.0)
    p = np.exp(draw(st.lists(logs, min_size=size, max_size=size)))
    shift = draw(st.lists(st.floats(-1.5, 1.5), min_size=size, max_size=size))
    q = p * np.exp(shift)
    if draw(st.booleans()):  # something that only one of them can show
        q[draw(st.integers(0, size - 1))] = 0.0
    group = draw(st.lists(st.integers(0, size), min_size=size, max_size=size))
    return p / p.sum(), q / q.sum(), np.array(group)


@EXAMPLES
@given(pairs(), st.sampled_from(FAMILIES), st.floats(1.1, 40.0))
def test_bound_is_above_the_exact_distribution(distributions, family, mean):
    p, q, group = distributions
    distribution = Repetitions.of(family, mean)
    bound = best_curve(distribution, Pair(p, q))
    a, b = best_of(p, group, distribution), best_of(q, group, distribution)
    assert a.sum() == pytest.approx(1.0, abs=1e-9)
    for x in (0.0, 0.1, 0.3, 1.0, 2.0, 4.0):
        assert stick(a, b, x) <= bound.delta(x) + 1e-9
    for delta in (0.3, 1e-2, 1e-4):
        epsilon = bound.epsilon(delta)
        if epsilon < 50.0:
            assert stick(a, b, epsilon) <= delta + 1e-9


@pytest.mark.parametrize("mean", [700.0, 745.0, 760.0, 1000.0])
@pytest.mark.parametrize("size", [0.02, 0.3])
def test_factors_of_very_many_runs_are_no_doubles(mean, size):
    """e^-rate is 0 in doubles: there is a bound all the same, close to that of a few less."""
    distribution = Repetitions.of("poisson", mean)
    z, p, q = shifted(size, 9.0, 601)
    bound = SelectionCurve(distribution, [Pair(p, q)])
    epsilon = bound.epsilon(1e-4)
    few = SelectionCurve(Repetitions.of("poisson", 600.0), [Pair(p, q)]).epsilon(1e-4)
    assert few < epsilon < 1.5 * few
    for order in (np.arange(z.size), -np.arange(z.size), np.abs(np.arange(z.size) - 350)):
        a, b = (best_of(run, order, distribution) for run in (p, q))
        assert stick(a, b, epsilon) <= 1e-4
        for x in (0.0, 0.3, 1.0, 3.0):
            assert stick(a, b, x) <= bound.delta(x) + 1e-9


@EXAMPLES
@given(pairs(), st.sampled_from(FAMILIES), st.floats(1.1, 40.0))
def test_pure_bound(distributions, family, mean):
    p, q, group = distributions
    if not q.all():
        return
    distribution = Repetitions.of(family, mean)
    pure = float(np.abs(np.log(p) - np.log(q)).max())
    a, b = best_of(p, group, distribution), best_of(q, group, distribution)
    lost = float(np.abs(np.log(a) - np.log(b)).max())
    scale = 1 << 20
    run = LaplaceEvent("leaves", math.ceil(pure * scale), scale, 1)
    event = SelectionEvent(distribution, ((run,),), (LaplaceEvent("score", 0, 1, 1),), 1)
    assert lost <= make_accountant("pure", [event]).get_epsilon(0.0) + 1e-9


@pytest.mark.parametrize(
    ("family", "least"),
    [("poisson", 0.72), ("logarithmic", 0.79), ("geometric", 0.77), ("negative_binomial", 0.81)],
)
def test_what_is_left_for_a_run(family, least):
    """Epsilon of each of 4 expected runs at a total of 1; the laws of a run are written out."""
    distribution = Repetitions.of(family, 4.0)

    def left(mu: float) -> tuple[float, float]:
        run = Pair(*shifted(mu, 12.0, 4001)[1:])
        return run.epsilon(1e-6), SelectionCurve(distribution, [run]).epsilon(1e-6)

    low, high = 0.02, 0.4
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle)[1] < 1.0 else (low, middle)
    assert least < left(low)[0] < least + 0.03


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [0.1, 0.4])
def test_bound_is_close_to_an_attack(family, size):
    """An output of high loss has a middling score; those above it have the opposite loss."""
    distribution = Repetitions.of(family, 8.0)
    z, p, q = shifted(size, 9.0, 1201)
    epsilon = SelectionCurve(distribution, [Pair(p, q)]).epsilon(1e-4)
    best = 0.0
    for above in (0.02, 0.05, 0.1, 0.2, 0.4):
        for tail in (0.5, 1.0, 2.0, 3.0):
            # Least loss on top, then the tail of the largest losses, then the rest.
            order = np.where(np.cumsum(p) <= above, 2, np.where(z > tail, 1, 0))
            group = order * 10_000 + np.arange(z.size)
            a, b = (best_of(run, group, distribution) for run in (p, q))
            best = max(best, stick(a, b, 0.75 * epsilon))
    assert best > 1e-4


def test_the_shift_is_needed():
    """A law close to the bound: without its shift the bound would be wrong."""
    distribution = Repetitions.of("geometric", 20.0)
    p, q = np.array([0.92, 0.05, 0.03]), np.array([0.90, 0.02, 0.08])
    a, b = (best_of(x, np.arange(3), distribution) for x in (p, q))
    pure = Pair(p, q).epsilon(0.0)
    assert np.log(a[1] / b[1]) > 1.4 * pure
    assert stick(a, b, pure) > 0.0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mean", [1.01, 2.0, 10.0, 90.0])
def test_mean_is_that_of_the_generating_function(family, mean):
    distribution = Repetitions.of(family, mean)
    f = generating(distribution)
    h = 1e-6 * distribution.rate if family != "poisson" else 1e-5 / mean**2
    slope = float((f(np.array(1.0)) - f(np.array(1.0 - h))) / h)
    assert distribution.mean == pytest.approx(slope, rel=1e-4)
    assert distribution.mean == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize("family, shape", [("logarithmic", 0.0), ("geometric", 1.0)])
@pytest.mark.parametrize("mean, sigma", [(3.0, 4.0), (10.0, 8.0), (30.0, 20.0)])
def test_renyi_bound_agrees_with_google(family, shape, mean, sigma):
    distribution = Repetitions.of(family, mean)
    scale = 1 << 20
    run = GaussianEvent("leaves", scale, int(sigma**2) * scale, 1, 1)
    event = SelectionEvent(distribution, ((run,),), (run,), 1)
    ours = make_accountant("rdp", [event]).get_epsilon(1e-6)
    orders = 1.0 + np.logspace(-2, 4, 600)
    theirs = RdpAccountant(orders)
    run_of_theirs = dpa.GaussianDpEvent(sigma)
    theirs.compose(dpa.dp_event.RepeatAndSelectDpEvent(run_of_theirs, distribution.mean, shape))
    assert ours == pytest.approx(theirs.get_epsilon(1e-6), rel=2e-3)
    # The bound by curves is the tighter one.
    assert make_accountant("exact", [event]).get_epsilon(1e-6) < ours


# ------------------------------------------------------------------------------------- events
RUN = (
    GaussianEvent("candidates", 1 << 20, 1 << 25, 20, 1),
    ExponentialEvent("splits", 1 << 36, 40, 100),
    GaussianEvent("leaves", 1 << 20, 1 << 27, 2, 50),
)
SCORE = (GaussianEvent("score", 1 << 20, 1 << 25, 2, 1),)
EVENT = SelectionEvent(Repetitions.of("logarithmic", 8.0), (RUN,), SCORE, 1)
ONE = make_accountant("exact", [EVENT])  # which keeps what it has computed
OF_SUMS = SelectionEvent(EVENT.repetitions, (RUN[-1:],), SCORE, 1)  # whose curves cost little


def test_one_row_is_in_one_part_and_several_rows_are_in_both():
    alone = make_accountant("exact", list(RUN)).get_epsilon(1e-6)
    both = make_accountant("exact", [*RUN, *SCORE])
    assert alone < ONE.get_epsilon(1e-6) < 2.2 * alone
    assert ONE.get_epsilon(1e-6, 2) > both.get_epsilon(1e-6, 2)
    costlier = SelectionEvent(
        EVENT.repetitions, (RUN,), (GaussianEvent("score", 1 << 20, 1 << 20, 2, 1),), 1
    )
    assert make_accountant("exact", [costlier]).get_epsilon(1e-6) > ONE.get_epsilon(1e-6)


def test_delta_and_epsilon_agree_and_are_monotone():
    assert ONE.get_delta(ONE.get_epsilon(1e-6)) == pytest.approx(1e-6, rel=1e-3)
    deltas = [ONE.get_delta(x) for x in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[0] < 1.0
    for name in ("pure", "gdp", "classic"):
        assert make_accountant(name, [EVENT]).get_epsilon(1e-6) == math.inf


def test_selections_compose_with_other_releases():
    rest = make_accountant("exact", list(RUN))
    both = make_accountant("exact", [OF_SUMS, *RUN])
    alone = make_accountant("exact", [OF_SUMS]).get_epsilon(5e-7)
    assert both.get_epsilon(1e-6) == pytest.approx(alone + rest.get_epsilon(5e-7))
    assert both.get_delta(both.get_epsilon(1e-6)) <= 1e-5
    twice = replace(OF_SUMS, count=2)
    assert make_accountant("exact", [twice]).get_epsilon(1e-6) == pytest.approx(2 * alone)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(pairs(), pairs(), st.sampled_from(FAMILIES), st.floats(1.1, 12.0), st.integers(1, 2))
def test_composition_is_above_the_exact_distribution(runs, rest, family, mean, selections):
    """The law of the selections and of what follows them, multiplied out."""
    p, q, group = runs
    distribution = Repetitions.of(family, mean)
    a, b = (best_of(x, group, distribution) for x in (p, q))
    both = rest[:2]
    for _ in range(selections):
        both = np.outer(a, both[0]).ravel(), np.outer(b, both[1]).ravel()
    bound = WithSelections([best_curve(distribution, Pair(p, q))] * selections, Pair(*rest[:2]))
    for x in (0.0, 0.1, 0.5, 1.0, 3.0):
        assert stick(*both, x) <= bound.delta(x) + 1e-9


def test_a_continued_selection_is_guessed_less_often_than_always():
    """The total variation by three other roads: none of them may be far below."""
    rest = [GaussianEvent("leaves", 1, 100, 1, 8)]
    both, alone = make_accountant("exact", [OF_SUMS, *rest]), make_accountant("exact", [OF_SUMS])
    guessed = both.get_delta(0.0)
    # A coupling of the selection, and of the rest where that one agrees.
    follows = make_accountant("exact", rest).get_delta(0.0)
    coupled = 1.0 - (1.0 - alone.get_delta(0.0)) * (1.0 - follows)
    assert max(alone.get_delta(0.0), follows) < guessed <= coupled
    for delta in (0.1, 1e-2, 1e-3, 1e-6):
        total = both.get_epsilon(delta)  # any (epsilon, delta) bounds it
        assert guessed <= delta + (1.0 - delta) * math.tanh(total / 2.0)
    curve = [both.get_delta(x) for x in (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)]
    assert curve == sorted(curve, reverse=True)


def test_runs_of_any_kind():
    sampled = SampledEvent(1 << 30, 32, (GaussianEvent("leaves", 1, 40, 1, 1),), 20)
    laplace = LaplaceEvent("leaves", 1, 60, 5)
    distribution = Repetitions.of("geometric", 4.0)
    pure = SelectionEvent(distribution, ((laplace,),), (LaplaceEvent("score", 1, 20, 1),), 1)
    assert make_accountant("pure", [pure]).get_epsilon(0.0) == pytest.approx(3 * 5 / 60)
    # The curve of the run is below that of any mechanism of its pure epsilon.
    assert 5 / 60 < make_accountant("exact", [pure]).get_epsilon(0.0) < 3 * 5 / 60
    mixed = SelectionEvent(distribution, ((sampled,), (laplace,)), SCORE, 1)
    assert 0 < make_accountant("exact", [mixed]).get_epsilon(1e-6) < 4.0
    assert make_accountant("rdp", [mixed]).get_epsilon(1e-6) == math.inf


def test_json_comes_back_and_nothing_unknown_is_taken():
    data = EVENT.to_json()
    assert event_from_json(data) == EVENT
    distribution = data["repetitions"]
    for mean in (1.0, 1001.0, math.nan):
        with pytest.raises(ValueError, match="above 1"):
            Repetitions.of("geometric", mean)
    with pytest.raises(ValueError, match="one of"):
        Repetitions.of("constant", 3.0)
    bad: list[dict[str, Any]] = [
        {**data, "runs": [[data]]},
        {**data, "runs": []},
        {**data, "repetitions": {**distribution, "family": "constant"}},
        {**data, "repetitions": {**distribution, "rate_num": 1 << 32}},
        {**data, "repetitions": {**distribution, "shape_num": -(1 << 16)}},
        {**data, "repetitions": {**distribution, "shape_num": (1 << 16) + 1}},
    ]
    for broken in bad:
        with pytest.raises(LedgerError):
            event_from_json(broken)


def test_rdp_charges_exchanged_rows_as_two():
    """Each has a coin of its own here; that an exchange shares one is used by "exact" alone."""
    accountant = make_accountant("rdp", [EVENT])
    assert accountant.get_epsilon(1e-6, replaced=True) == accountant.get_epsilon(1e-6, 2)
