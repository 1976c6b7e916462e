"""The cost of thresholds, against curves that are summed up. Claims: docs/proofs/discovery.md."""

import math

import numpy as np
import pytest

from xgb_dp.accounting import (
    ACCOUNTANTS,
    GaussianEvent,
    ThresholdEvent,
    event_from_json,
    make_accountant,
)
from xgb_dp.accounting.events import is_within
from xgb_dp.accounting.filter import Charge, Filter, charge_of
from xgb_dp.accounting.gaussian import failure_of, gaussian_delta, tail
from xgb_dp.accounting.units import Unit
from xgb_dp.discovery.discover import plan_discovery
from xgb_dp.errors import LedgerError


def distribution(sigma2: int, reach: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(-reach, reach + 1)
    p = np.exp(-(x.astype(float) ** 2) / (2 * sigma2))
    return x, p / p.sum()


@pytest.mark.parametrize("sigma2", [1, 9, 100, 2500])
def test_tail_is_above_the_true_one_and_near(sigma2):
    x, p = distribution(sigma2, 40 * math.isqrt(sigma2) + 40)
    for least in range(1, 6 * math.isqrt(sigma2), max(1, math.isqrt(sigma2) // 3)):
        true = p[x >= least].sum()
        assert true <= tail(sigma2, least) <= 1.0
    assert tail(sigma2, 0) == tail(sigma2, -5) == 1.0
    assert tail(10**6, 3001) == pytest.approx(
        distribution(10**6, 20000)[1][20000 + 3001 :].sum(), rel=0.01
    )


def show(
    counts: dict[str, int], names: list[str], sigma2: int, threshold: int, most: int
) -> np.ndarray:
    """Chance of every release: for each name an axis, of which 0 is that it is not shown."""
    x, p = distribution(sigma2, 12 * math.isqrt(sigma2))
    chances = np.ones(1)
    for name in names:
        noisy = x + counts.get(name, -2 * most)
        at = np.where(noisy < threshold, 0, noisy - threshold + 1)
        chances = np.outer(chances, np.bincount(at, p, most - threshold + 2)).ravel()
    return chances


def true_delta(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


def distributions_of(
    before: dict[str, int], after: dict[str, int], sigma2: int, threshold: int
) -> list[np.ndarray]:
    names = sorted({*before, *after})
    most = max([*before.values(), *after.values()]) + 12 * math.isqrt(sigma2)
    return [show(counts, names, sigma2, threshold, most) for counts in (before, after)]


PAIRS = [
    ({"a": 3}, {"a": 3, "v": 1}, 1),
    ({"a": 3}, {"a": 4}, 1),
    ({}, {"v": 1}, 1),
    ({"a": 3}, {"a": 3, "v": 2}, 2),
    ({"a": 3}, {"a": 4, "v": 1}, 2),
    ({"w": 1}, {"v": 1}, 2),
    ({"w": 1}, {"v": 3}, 4),
]


@pytest.mark.parametrize(("before", "after", "group"), PAIRS)
@pytest.mark.parametrize("threshold", [4, 8, 12])
def test_the_claim_covers_the_true_curve(before, after, group, threshold):
    """Units of one, so that the discreteness is coarse; the ledger's bound for it is used."""
    unit, sigma2 = 16, 40 * 16 * 16 // 10
    events = [
        GaussianEvent("categories", unit * unit, sigma2, 1, 1),
        ThresholdEvent("categories", unit, sigma2, threshold * unit, 1),
    ]
    accountant = make_accountant("exact", events)
    scaled = [{k: v * unit for k, v in c.items()} for c in (before, after)]
    distributions = distributions_of(*scaled, sigma2, threshold * unit)
    for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0):
        true = max(
            true_delta(*distributions, epsilon), true_delta(*reversed(distributions), epsilon)
        )
        assert true <= accountant.get_delta(epsilon, group) + 1e-12


def test_without_the_threshold_the_claim_would_be_false():
    unit, sigma2, threshold = 16, 1024, 5 * 16
    gauss = make_accountant("exact", [GaussianEvent("categories", unit * unit, sigma2, 1, 1)])
    distributions = distributions_of({}, {"v": unit}, sigma2, threshold)
    assert true_delta(distributions[1], distributions[0], 3.0) > gauss.get_delta(3.0)


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_failures_are_added_to_delta(name):
    gauss = GaussianEvent("categories", 2**20, 2**26, 1, 1)
    event = ThresholdEvent("categories", 2**10, 2**26, 5 * 2**13, 3)
    failure = failure_of(event, 1)
    rest, both = (make_accountant(name, e) for e in ([gauss], [gauss, event]))
    assert 1e-7 < failure < 1e-5
    assert both.get_delta(0.3) == pytest.approx(min(1.0, rest.get_delta(0.3) + failure), rel=1e-6)
    assert both.get_epsilon(failure) == math.inf
    assert both.get_epsilon(1e-4) == rest.get_epsilon(1e-4 - failure * (1 + 1e-9))


def test_larger_groups_cost_more():
    events = [
        GaussianEvent("categories", 2**20, 2**26, 1, 1),
        ThresholdEvent("categories", 2**10, 2**26, 6 * 2**13, 2),
    ]
    accountant = make_accountant("exact", events)
    values = [accountant.get_epsilon(1e-5, k) for k in (1, 2, 3, 5)]
    assert values == sorted(values)
    assert all(map(math.isfinite, values))
    assert accountant.get_epsilon(1e-5, 1, replaced=True) == accountant.get_epsilon(1e-5, 2)


def test_a_filter_takes_failures_from_what_is_left_of_delta():
    gauss = GaussianEvent("categories", 2**20, 2**30, 1, 1)
    event = ThresholdEvent("categories", 2**10, 2**30, 6 * 2**15, 2)
    plain, both = charge_of([gauss], 1e-6), charge_of([gauss, event], 1e-6)
    assert both.mu2 == plain.mu2
    assert both.extra >= plain.extra + failure_of(event, 1)
    total = Filter(1.0, 1e-6)
    assert total.charge(Charge(), [gauss, event], both) == both
    large = ThresholdEvent("categories", 2**10, 2**30, 3 * 2**15, 2)
    assert total.charge(Charge(mu2=1e-4), [gauss, large], charge_of([gauss, large], 1e-6)) is None


def test_form_in_a_ledger():
    event = ThresholdEvent("categories", 4, 2**20, 99, 2)
    assert event_from_json(event.to_json()) == event
    person = ThresholdEvent("categories", 4, 2**20, 99, 2, unit="person")
    assert event_from_json(person.to_json()) == person
    for name, value in (("sensitivity", 0), ("sigma2", -1), ("threshold", 1.5), ("count", True)):
        with pytest.raises(LedgerError):
            event_from_json({**event.to_json(), name: value})
    no_noise = ThresholdEvent("categories", 4, 0, 99, 2)
    assert failure_of(no_noise, 1) == math.inf
    assert make_accountant("exact", [no_noise]).get_delta(5.0) == 1.0
    assert is_within(event, ThresholdEvent("categories", 4, 2**20, 98, 2))
    assert not is_within(event, ThresholdEvent("categories", 4, 2**20, 100, 2))


def test_a_filter_charges_groups_for_all_of_their_rows():
    gauss = GaussianEvent("categories", 2**20, 2**30, 1, 1)
    event = ThresholdEvent("categories", 2**10, 2**30, 8 * 2**15, 2)
    one, four = (charge_of([gauss, event], 1e-6, group_size=k) for k in (1, 4))
    assert four.mu2 == charge_of([gauss], 1e-6, group_size=4).mu2 > 15.0 * one.mu2
    assert four.extra >= failure_of(event, 4) > 4.0 * failure_of(event, 1)
    # The charge bounds what the accountant certifies for so many.
    accountant = make_accountant("exact", [gauss, event])
    for epsilon in (0.05, 0.2, 0.5):
        assert (
            accountant.get_delta(epsilon, 4) <= gaussian_delta(epsilon, four.mu2**0.5) + four.extra
        )


@pytest.mark.parametrize("group", [1, 2, 50])
@pytest.mark.parametrize("epsilon", [0.1, 5.0])
def test_a_plan_has_the_least_threshold_for_its_group(epsilon, group):
    """One less fails too often; at or below the group's own rows each text would be shown."""
    delta = 1e-6
    plan = plan_discovery(3, 2, epsilon, delta, Unit("row", group))
    unit = 1 << plan.text_shift
    least, less = (
        failure_of(
            ThresholdEvent("categories", unit, plan.text_sigma2, plan.threshold - k, 3), group
        )
        for k in (0, 1)
    )
    assert least <= delta / 4 < less
    assert plan.threshold > group * unit
