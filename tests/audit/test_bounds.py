"""Bounds from counts: known answers, coverage, and claims of every form."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from xgb_dp.accounting import ExactAccountant, GaussianEvent
from xgb_dp.audit import (
    ApproximateClaim,
    audit_scores,
    clopper_pearson,
    epsilon_lower_bound,
    one_run_lower_bound,
    one_run_p_value,
)

from .statistics import GaussianClaim, bound_both_ways, ratio_scores, violates


def test_clopper_pearson_inverts_the_binomial_tails():
    low, high = clopper_pearson([3, 17, 40], 40, 0.025)
    assert binom.sf(np.array([2, 16, 39]), 40, low) == pytest.approx(0.025)
    assert binom.cdf([3, 17], 40, high[:2]) == pytest.approx(0.025)
    assert high[2] == 1.0
    assert clopper_pearson(0, 40, 0.025)[0] == 0.0
    # The "rule of three", exactly.
    assert clopper_pearson(0, 1000, 0.05)[1] == pytest.approx(1 - 0.05 ** (1 / 1000))


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5])
def test_clopper_pearson_covers(p):
    """Exact coverage, summed over all outcomes: no draws, no false alarms."""
    n, alpha = 300, 0.025
    low, high = clopper_pearson(np.arange(n + 1), n, alpha)
    weight = binom.pmf(np.arange(n + 1), n, p)
    assert weight[low > p].sum() <= alpha
    assert weight[high < p].sum() <= alpha


def test_epsilon_bound_of_sure_and_empty_sets():
    n = 1000
    limit = 0.025 ** (1 / n)
    expected = math.log((limit - 1e-6) / (1 - limit))
    assert epsilon_lower_bound(n, n, 0, n, 1e-6) == pytest.approx(expected)
    assert epsilon_lower_bound(0, n, n, n, 1e-6) == -math.inf
    assert bound_both_ways(0, n, n, n, 1e-6) > 5.0
    assert bound_both_ways(500, n, 500, n, 1e-6) < 0.0
    assert epsilon_lower_bound(5, n, 0, n, 0.9) == -math.inf


def test_epsilon_bound_covers():
    """Randomised response at epsilon 1: exact chance of a bound above it, over all outcomes."""
    n, epsilon = 60, 1.0
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    k = np.arange(n + 1)
    weights = np.outer(binom.pmf(k, n, p), binom.pmf(k, n, 1 - p))
    for bound_of in (epsilon_lower_bound, bound_both_ways):
        bound = bound_of(k[:, None], n, k[None, :], n, 0.0, 0.9)
        assert weights[bound > epsilon].sum() <= 0.1


def test_curves_of_claims():
    exact = ExactAccountant([GaussianEvent("leaves", 1 << 40, 1 << 40, 1, 1)])
    for delta in (1e-6, 1e-3, 0.1):
        assert GaussianClaim(1.0).get_epsilon(delta) == pytest.approx(
            exact.get_epsilon(delta), rel=1e-4
        )
    assert GaussianClaim(0.1).get_epsilon(0.5) == 0.0
    claim = ApproximateClaim(1.0, 1e-3)  # says nothing below its delta
    assert claim.get_epsilon(1e-4) == math.inf
    assert claim.get_epsilon(1e-3) == 1.0


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_a_curve_is_refuted_by_a_larger_one_only(mu):
    """Counts at their means: no draws, no false alarms."""
    n = 10**6
    claims = [
        GaussianClaim(mu),
        ExactAccountant([GaussianEvent("x", 1 << 40, int(2**40 / mu**2), 1, 1)]),
    ]
    for claim in claims:
        for t in (-1.0, 0.0, 1.5):
            same = [round(n * norm.sf(t - mu)), n, round(n * norm.sf(t)), n]
            larger = [round(n * norm.sf(t - mu / 0.7)), n, round(n * norm.sf(t)), n]
            assert not violates(claim, *same)
            assert violates(claim, *larger)
            assert violates(claim, *larger[2:], *larger[:2])


# -------------------------------------------------------------------------------- one run
def test_one_run_without_delta_is_a_binomial_tail():
    for r, v, epsilon in ((10, 10, 1.0), (50, 40, 0.5), (50, 0, 0.5)):
        accuracy = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert one_run_p_value(100, r, v, epsilon, 0.0) == pytest.approx(
            binom.sf(v - 1, r, accuracy)
        )


def test_one_run_known_answers():
    # All of 100 guesses right: q^100 = 0.05 with q = e^eps / (1 + e^eps).
    q = 0.05 ** (1 / 100)
    assert one_run_lower_bound(100, 100, 100, 0.0) == pytest.approx(math.log(q / (1 - q)), rel=1e-6)
    assert one_run_lower_bound(100, 100, 50, 0.0) == 0.0
    assert one_run_lower_bound(1000, 0, 0, 1e-6) == 0.0
    bounds = [one_run_lower_bound(1000, 200, 190, d) for d in (0.0, 1e-6, 1e-4, 1e-2)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] - bounds[1] < 0.1
    assert bounds[3] == 0.0  # 2 m delta is 20


def test_one_run_delta_term_by_its_definition():
    m, r, v, epsilon, delta = 40, 12, 10, 0.7, 1e-3
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    w = binom(r, q)
    steps = [sum(w.pmf(v - j) for j in range(1, i + 1)) / i for i in range(1, v + 1)]
    expected = w.sf(v - 1) + 2 * m * delta * max(steps)
    assert one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(expected)
    for bad in ((10, 11, 5), (10, 5, 6), (10, 5, -1)):
        with pytest.raises(ValueError, match="correct"):
            one_run_p_value(*bad, 1.0, 0.0)


def test_one_run_covers_randomised_response():
    """Each answer is right with e^eps / (1 + e^eps): exact chance of a bound above epsilon."""
    m, epsilon = 200, 1.5
    accuracy = math.exp(epsilon) / (1 + math.exp(epsilon))
    wrong = sum(
        binom.pmf(v, m, accuracy)
        for v in range(m + 1)
        if one_run_lower_bound(m, m, v, 0.0) > epsilon
    )
    assert 0.01 < wrong <= 0.05


# --------------------------------------------------------------------------------- scores
def test_audit_of_true_gaussian_claims_rarely_alarms():
    """100 audits at 95%; at most 5 alarms are expected. 16 have a chance below 5e-5."""
    rng = np.random.default_rng(1)
    alarms = sum(
        audit_scores(rng.normal(size=2000), rng.normal(1.0, size=2000), GaussianClaim(1.0)).violated
        for _ in range(100)
    )
    assert alarms < 16


def test_audit_sees_either_direction():
    rng = np.random.default_rng(2)
    d, d2 = rng.normal(size=20_000), rng.normal(1.4, size=20_000)
    for scores in ((d, d2), (d2, d), (-d, -d2)):
        assert audit_scores(*scores, GaussianClaim(1.0)).violated
    for bad, other in ((np.zeros(10), np.zeros(10)), (np.full(50, np.nan), np.zeros(50))):
        with pytest.raises(ValueError, match="30 finite"):
            audit_scores(bad, other, GaussianClaim(1.0))


def test_ratio_scores_find_an_outcome_without_order():
    rng = np.random.default_rng(3)
    d = rng.integers(0, 6, 20_000)
    d2 = np.where(rng.random(20_000) < 0.5, 3, rng.integers(0, 6, 20_000))
    result = audit_scores(*ratio_scores(d, d2), ApproximateClaim(0.5))
    assert result.violated  # ln(0.583 / 0.167) = 1.25
    assert result.lower_bound < 1.25
