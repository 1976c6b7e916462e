"""Ensembles whose parts are secret, against quadrature and enumeration."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from scipy.stats import norm

import xgb_dp
from tests.conftest import private
from xgb_dp.accounting import (
    ACCOUNTANTS,
    AllocatedEvent,
    ParallelEvent,
    event_from_json,
    make_accountant,
)
from xgb_dp.accounting.events import is_within
from xgb_dp.accounting.filter import charge_of
from xgb_dp.accounting.gaussian import gaussian_delta
from xgb_dp.errors import LedgerError

from .events import gaussian, laplace, sampled, selections


def ensemble(parts: int, *inner: Any, count: int = 1, halving: bool = False) -> AllocatedEvent:
    return AllocatedEvent(parts, tuple(inner), count, halving)


def exact(*events: Any) -> Any:
    return make_accountant("exact", list(events))


def sticks(weights: list[float], mu: float, epsilon: float) -> tuple[float, float]:
    """Hockey sticks of a row removed and a row added, for Gaussian noise of shift mu.

    The ratio of the first round, given those of the others, has a closed form; the others are
    integrated on an even grid.
    """
    z = np.linspace(-11.0, 11.0, 1201)
    mass = norm.pdf(z) * (z[1] - z[0])
    ratio = np.exp(mu * z - mu * mu / 2.0)
    rest, chance = np.zeros(1), np.ones(1)
    for weight in weights[1:]:
        rest = np.add.outer(rest, weight * ratio).ravel()
        chance = np.multiply.outer(chance, mass).ravel()

    def mean_above(k: Any) -> Any:
        """E (w r - k)+ for a lognormal r of mean 1."""
        w, low = weights[0], np.maximum(k, 1e-300)
        d = np.log(w / low) / mu + mu / 2.0
        value = w * norm.cdf(d) - k * norm.cdf(d - mu)
        return np.where(k > 0.0, value, w - k)

    s = math.exp(epsilon)
    removed = float(np.sum(chance * mean_above(s - rest)))
    # (1 - s R)+ = 1 - s R + s (R - 1/s)+, and R has mean 1.
    added = 1.0 - s + s * float(np.sum(chance * mean_above(1.0 / s - rest)))
    return removed, added


EQUAL = [0.5, 0.5]
THIRDS = [1 / 3] * 3
HALVES = [0.5, 0.25, 0.25]


@pytest.mark.parametrize("weights", [EQUAL, THIRDS, HALVES], ids=["two", "three", "halves"])
@pytest.mark.parametrize(
    ("mu", "points"), [(0.3, (0.1, 0.4, 0.8)), (1.0, (0.2, 1.0, 2.0, 3.0)), (2.0, (1.0, 4.0, 7.0))]
)
def test_gaussian_rounds_against_quadrature(weights, mu, points):
    books = exact(ensemble(len(weights), gaussian(1.0 / mu), halving=weights is HALVES))
    for x in points:
        want = max(sticks(weights, mu, x))
        got = books.get_delta(x)
        assert want * (1.0 - 1e-6) <= got <= want * 1.03 + 1e-12


def test_each_order_by_itself():
    """Not only the larger of both: the curves of the pair that is composed."""
    from xgb_dp.published.allocated import AllocatedRounds

    def curve(x: Any) -> Any:
        return np.array([gaussian_delta(float(v), 1.0) for v in np.atleast_1d(x)])

    nodes = np.arange(0.0, 9.0, 1.0 / 64.0)
    for weights in (EQUAL, THIRDS, HALVES):
        rounds = AllocatedRounds(
            1.0, 1.0, curve, nodes, 1, parts=len(weights), halving=weights is HALVES, lost=1e-14
        )
        (removed, _), (added, _) = rounds.ways()
        for x in (-1.5, -0.3, 0.2, 1.0, 2.5):
            first, second = sticks(weights, 1.0, x)
            for bound, want in ((removed, first), (added, second)):
                got = float(bound(np.array([x]))[0])
                assert want - 1e-9 <= got <= want * 1.02 + 1e-9


def test_selections_of_a_fixed_adversary():
    """All outcomes of two-point laws in every round: what is charged covers each of them.

    It is more, since the curve of a round takes the worst law at every loss.
    """
    eps0, parts = 1.0, 6
    books = exact(ensemble(parts, selections(eps0)))
    for x in (0.05, 0.2, 0.4):
        worst = 0.0
        for t in np.linspace(0.05, eps0 - 0.05, 10):
            p = -math.expm1(t - eps0) / -math.expm1(-eps0)
            P, Q = (p, 1.0 - p), (p * math.exp(-t), 1.0 - p * math.exp(-t))
            with_row, without = 0.0, 0.0
            for seen in itertools.product((0, 1), repeat=parts):
                b = math.prod(Q[o] for o in seen)
                a = b * math.fsum(P[o] / Q[o] for o in seen) / parts
                with_row += max(a - math.exp(x) * b, 0.0)
                without += max(b - math.exp(x) * a, 0.0)
            worst = max(worst, with_row, without)
        assert worst * (1.0 - 1e-6) <= books.get_delta(x) <= worst * 2.0


def test_many_quiet_parts_are_a_gaussian():
    """The mean of p ratios of variance e^(mu^2) - 1 is nearly normal for quiet rounds."""
    mu, parts = 0.2, 400
    books = exact(ensemble(parts, gaussian(1.0 / mu)))
    whole = math.sqrt(math.expm1(mu * mu) / parts)
    for x in (0.005, 0.02):
        assert books.get_delta(x) == pytest.approx(gaussian_delta(x, whole), rel=0.05)


def test_ensembles_and_the_rest_compose():
    """Two ensembles after a Gaussian, where all of them are nearly Gaussian."""
    mu, parts = 0.2, 400
    each = math.expm1(mu * mu) / parts
    books = exact(gaussian(80.0), ensemble(parts, gaussian(1.0 / mu), count=2))
    whole = math.sqrt(2.0 * each + 1.0 / 80.0**2)
    assert books.get_delta(0.02) == pytest.approx(gaussian_delta(0.02, whole), rel=0.05)


def test_the_secret_pays():
    inner = (laplace(0.3), selections(0.1, 4), gaussian(2.0))
    known = exact(ParallelEvent(10, inner, 2)).get_epsilon(1e-6)
    costs = [exact(ensemble(p, *inner, count=2)).get_epsilon(1e-6) for p in (1, 2, 4, 10, 40)]
    assert costs[0] == pytest.approx(known, rel=1e-9)
    assert all(b < a for a, b in itertools.pairwise(costs))
    halves = exact(ensemble(10, *inner, count=2, halving=True)).get_epsilon(1e-6)
    assert costs[3] < halves < known
    # Samples of the same size leave a row out, or take it several times.
    assert costs[3] < exact(sampled(0.1, 20, *inner)).get_epsilon(1e-6)


def test_never_above_known_parts():
    for noise in (0.02, 0.1, 0.4):
        secret = exact(ensemble(50, gaussian(noise)))
        known = exact(ParallelEvent(50, (gaussian(noise),), 1))
        assert secret.get_epsilon(1e-6) <= known.get_epsilon(1e-6)
        assert secret.get_delta(3.0) <= known.get_delta(3.0)


@pytest.mark.parametrize("name", [n for n in ACCOUNTANTS if n != "exact"])
def test_others_charge_whole_rounds(name):
    inner = (selections(0.2, 4), laplace(0.5))
    secret = make_accountant(name, [ensemble(8, *inner, count=5)])
    known = make_accountant(name, [ParallelEvent(8, inner, 5)])
    for rows in (1, 3):
        assert secret.get_epsilon(1e-6, rows) == known.get_epsilon(1e-6, rows)


def test_several_rows_count_as_if_parts_were_known_or_in_steps():
    inner = (gaussian(1.5),)
    secret, known = exact(ensemble(8, *inner)), exact(ParallelEvent(8, inner, 1))
    for question in ({"group": 2}, {"group": 3}, {"replaced": True}):
        cost = secret.get_epsilon(1e-6, **question)
        assert secret.get_epsilon(1e-6) < cost <= known.get_epsilon(1e-6, **question)
        assert secret.get_delta(cost, **question) <= 1e-6 * (1.0 + 1e-3)


def test_a_book_charges_the_secret():
    inner = (gaussian(2.0),)
    known = charge_of([ParallelEvent(20, inner, 1)], 1e-6)
    secret = charge_of([ensemble(20, *inner)], 1e-6)
    # About (e^(mu^2) - 1) / p of mu^2.
    assert math.expm1(0.25) / 20 < secret.mu2 < 0.1 * known.mu2


def test_refusals():
    event = ensemble(8, selections(0.2, 4), gaussian(3.0), count=5, halving=True)
    data = event.to_json()
    assert data["mechanism"] == "allocation"
    for change in ({"halving": 1}, {"halving": "no"}, {"parts": 0}, {"count": -1}):
        with pytest.raises(LedgerError):
            event_from_json(data | change)
    data.pop("halving")
    with pytest.raises(LedgerError, match="exactly the fields"):
        event_from_json(data)
    assert is_within(event, event)
    assert not is_within(event, ensemble(8, *event.events, count=5))


@pytest.mark.parametrize("halving", [False, True])
def test_trained_ensembles_get_the_noise_that_the_secret_allows(halving):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = (X[:, 0] > 0).astype(float)
    params = private(objective="binary:logistic", dp_ensemble=10, dp_ensemble_halving=halving)
    ledgers = {}
    for name in ("exact", "rdp"):
        model = xgb.train(params | {"dp_accountant": name}, xgb.DMatrix(X, y), 20)
        report = xgb_dp.privacy_report(model)
        ledgers[name] = report.ledger["trainings"][0]["events"]
        assert report.epsilon <= 1.0
    (rounds,) = [e for e in ledgers["exact"] if e["mechanism"] == "allocation"]
    assert (rounds["parts"], rounds["count"], rounds["halving"]) == (10, 2, halving)
    (known,) = [e for e in ledgers["rdp"] if e["mechanism"] == "allocation"]
    noise = [next(e for e in r["events"] if e["release"] == "leaves") for r in (rounds, known)]
    multiplier = [math.sqrt(e["sigma2"] / e["sensitivity2"]) for e in noise]
    assert multiplier[0] < (0.9 if halving else 0.5) * multiplier[1]
