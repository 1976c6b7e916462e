"""`dp_group_size`: the requested epsilon holds for k rows together, derived a second time."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from tests.conftest import private
from xgb_dp.accounting import ExponentialEvent, GaussianEvent, make_accountant
from xgb_dp.calibrate import calibrate, calibrate_family
from xgb_dp.presets import PRESETS
from xgb_dp.request.schema import Schema
from xgb_dp.training.hook import prepare

from ..releases import releases

SCHEMA = Schema(["a", "b", "c", "d"], named=True, categorical=frozenset(), dictionaries={})
DELTA = 1e-6


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Of a Gaussian that moves by mu deviations, from its two tails."""

    def excess(epsilon: float) -> float:
        tail = norm.cdf(-mu / 2.0 - epsilon / mu)
        return float(norm.cdf(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * tail - delta)

    return float(brentq(excess, 0.0, 200.0))


def total_mu2(events: Any) -> float:
    return sum(e.count * e.sensitivity2 / e.sigma2 for e in events)


# ------------------------------------------------------------------------- second derivations
@pytest.mark.parametrize("group", [1, 2, 5, 40, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_gaussian_sums_of_several_rows_move_in_proportion(group, epsilon):
    plan = calibrate(*releases(depth=0), epsilon, DELTA, group_size=group)
    reached = gaussian_epsilon(group * math.sqrt(total_mu2(plan.events)), DELTA)
    assert 0.998 * epsilon <= reached <= epsilon


@pytest.mark.parametrize("group", [2, 5])
def test_an_attack_on_selections_and_sums_stays_below_the_target(group):
    """Selections between two candidates, whose utilities k rows move by all that they can."""
    plan = calibrate(*releases(10, 2), 1.0, DELTA, group_size=group)
    gaussians = [e for e in plan.events if isinstance(e, GaussianEvent)]
    [selection] = [e for e in plan.events if isinstance(e, ExponentialEvent)]
    step = 2e-4
    loss = np.array([group * selection.eps0 / 2.0, -group * selection.eps0 / 2.0])
    assignment = np.exp(loss) / np.exp(loss).sum()
    mu = group * math.sqrt(total_mu2(gaussians))
    edges = np.arange(-8.0 * mu, 8.0 * mu, step) + mu * mu / 2.0
    sums = np.diff(norm.cdf((edges - mu * mu / 2.0) / mu))
    distributions = [(edges[:-1], sums)] + [
        (np.floor(loss / step) * step, assignment)
    ] * selection.count
    at, distribution = np.zeros(1), np.ones(1)
    for (
        losses,
        chances,
    ) in distributions:  # every loss rounded down: an attack at least as strong exists
        index = np.floor(losses / step + 1e-9).astype(int)
        low = int(index.min())
        masses = np.zeros(int(index.max()) - low + 1)
        np.add.at(masses, index - low, chances)
        distribution = (
            np.convolve(distribution, masses)
            if len(masses) < 100 or len(distribution) == 1
            else _fft(distribution, masses)
        )
        at = (np.rint(at[0] / step) + low + np.arange(len(distribution))) * step

    def delta(epsilon: float) -> float:
        over = at > epsilon
        return float(np.sum(distribution[over] * -np.expm1(epsilon - at[over])))

    reached = brentq(lambda e: delta(e) - DELTA, 0.0, 3.0)
    assert 0.9 < reached <= 1.0


def _fft(a: Any, b: Any) -> Any:
    n = len(a) + len(b) - 1
    return np.maximum(np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(b, n), n), 0.0)


# ------------------------------------------------------------------------ everything trained
def test_pure_epsilon_is_divided():
    case = {"features": 0, "intercept": None, "leaves": {"mechanism": "laplace"}}
    plan = calibrate(*releases(**case), 1.0, 0.0, "pure", 8)
    assert make_accountant("pure", plan.events).get_epsilon(0.0) == pytest.approx(0.125, rel=2e-3)
    assert plan.epsilon <= 1.0


@pytest.mark.parametrize("group", [2, 5])
def test_families_of_plans(group):
    choices = (releases(20, 3), releases(50, 4))
    family = calibrate_family(*zip(*choices, strict=True), 1.0, DELTA, group_size=group)
    assert 0.998 <= family.epsilon <= 1.0
    accountant = make_accountant("exact", [family.event])
    assert accountant.get_epsilon(DELTA, group) == family.epsilon
    for plan in family.plans:  # each alone, and it costs no more than the choice
        assert make_accountant("exact", plan.events).get_epsilon(DELTA, group) <= 1.0


def params(**changes: Any) -> dict[str, Any]:
    bounds = dict.fromkeys("abcd", (-1.0, 1.0))
    return private(objective="binary:logistic", dp_delta=DELTA, dp_feature_bounds=bounds, **changes)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_is_calibrated_for_the_group(preset):
    prepared = prepare(params(dp_preset=preset, dp_group_size=3), SCHEMA, 20)
    name = prepared.settings["dp_accountant"]
    of_group = make_accountant(name, prepared.events).get_epsilon(DELTA, 3)
    assert 0.99 <= of_group <= 1.0
    assert make_accountant("exact", prepared.events).get_epsilon(DELTA, 3) <= 1.0
    of_row = make_accountant(name, prepared.events).get_epsilon(DELTA)
    assert of_row < of_group / 2.0


@pytest.mark.parametrize(
    "changes", [{"subsample": 0.2}, {"dp_ensemble": 5}, {"num_parallel_tree": 3}]
)
def test_rounds_of_every_kind(changes):
    prepared = prepare(params(dp_group_size=3, **changes), SCHEMA, 10)
    of_group = make_accountant("exact", prepared.events).get_epsilon(DELTA, 3)
    assert 0.99 <= of_group <= 1.0


def test_open_rounds_follow_what_a_row_is_worth():
    prepared = prepare(params(dp_group_size=4), SCHEMA, None)
    assert prepared.family is not None
    assert 0.99 <= make_accountant("exact", prepared.events).get_epsilon(DELTA, 4) <= 1.0
    alone = prepare(params(dp_epsilon=0.25), SCHEMA, None)
    assert alone.family is not None
    assert prepared.family.limits == alone.family.limits
    assert [p.settings.rounds for p in prepared.plans] == [p.settings.rounds for p in alone.plans]


def test_defaults_follow_the_epsilon_of_a_row():
    deep = prepare(params(), SCHEMA, 20).settings
    shallow = prepare(params(dp_group_size=2), SCHEMA, 20).settings
    again = prepare(params(dp_epsilon=2.0, dp_group_size=2), SCHEMA, 20).settings
    assert (deep["max_depth"], shallow["max_depth"], again["max_depth"]) == (6, 4, 6)
