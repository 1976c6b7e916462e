"""Frequencies against exact laws, with keys of the operating system.

Every assertion rejects a correct sampler with probability about FALSE_ALARM. There are about 70, so
all of them together fail by chance in one of a million runs. The scale tests also reject wrong
scales: if the sampler was 2% off, either way, they would notice with probability above 1 - 1e-12.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tests.noise import native

FALSE_ALARM = 1e-8
# Two-sided normal quantile of FALSE_ALARM.
Z = float(stats.norm.isf(FALSE_ALARM / 2))
# So large that the tail of a chi-square law holds for counts: up to a factor of about 10.
MIN_EXPECTED = 100.0


def assert_distribution(counts, probabilities) -> None:
    """Chi-square test at level FALSE_ALARM; cells expecting fewer than MIN_EXPECTED are pooled."""
    counts = np.asarray(counts, float)
    expected = np.asarray(probabilities, float) * counts.sum()
    rare = expected < MIN_EXPECTED
    if expected[rare].sum() >= MIN_EXPECTED:
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    elif rare.any():
        # Too few for a cell of their own: to the smallest of the others.
        smallest = np.argmin(np.where(rare, np.inf, expected))
        counts[smallest] += counts[rare].sum()
        expected[smallest] += expected[rare].sum()
        counts, expected = counts[~rare], expected[~rare]
    assert counts.size > 1
    statistic = float(((counts - expected) ** 2 / expected).sum())
    p_value = stats.chi2.sf(statistic, counts.size - 1)
    assert p_value > FALSE_ALARM, f"chi2 = {statistic:.1f} on {counts.size - 1} degrees of freedom"


def assert_integer_distribution(draws, weight) -> None:
    """`weight(x)`, up to a constant, is the law of the integer draws."""
    # The outer cells take the tails; the weights there are summed far enough out.
    reach = 4
    while weight(reach) > 1e-9 * weight(0):
        reach *= 2
    support = np.arange(-4 * reach, 4 * reach + 1)
    mass = np.array([weight(int(x)) for x in support])
    inner = np.clip(support, -reach, reach) + reach
    probabilities = np.bincount(inner, mass / mass.sum(), 2 * reach + 1)
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)
    assert_distribution(counts, probabilities)


@pytest.mark.parametrize("n", [2, 3, 10, 100, 257])
def test_uniform(n):
    draws = native.uniform(None, 0, n, 200_000)
    assert_distribution(np.bincount(draws.astype(np.int64), minlength=n), np.full(n, 1 / n))


def test_uniform_of_128_bits():
    draws = native.uniform128(None, 0, 5 * 2**100, 50_000)
    assert_distribution(np.bincount([d >> 100 for d in draws], minlength=5), np.full(5, 0.2))
    assert_distribution(np.bincount([d & 15 for d in draws], minlength=16), np.full(16, 1 / 16))


@pytest.mark.parametrize(
    ("q", "a", "b"),
    [
        (0, 0, 1),
        (0, 1, 1),
        (0, 1, 3),
        (0, 999, 1000),
        (0, 1, 1000),
        (0, 2**125 + 7, 2**126),
        (1, 0, 1),
        (1, 1, 2),
        (2, 3, 4),
        (3, 1, 1),
    ],
)
def test_bernoulli_exp(q, a, b):
    n = 400_000
    p = math.exp(-(q + a / b))
    ones = int(native.bernoulli_exp(None, 0, q, a, b, n).sum())
    if p == 1.0:
        assert ones == n
    else:
        assert_distribution([ones, n - ones], [p, 1 - p])


@pytest.mark.parametrize("scale", [1, 2, 3, 10])
def test_discrete_laplace(scale):
    draws = native.discrete_laplace(None, 0, scale, 1_000_000)
    assert_integer_distribution(draws, lambda x: math.exp(-abs(x) / scale))


@pytest.mark.parametrize("sigma2", [1, 2, 3, 4, 10, 50])
def test_discrete_gaussian(sigma2):
    draws = native.discrete_gaussian(None, 0, sigma2, 1_000_000)
    assert_integer_distribution(draws, lambda x: math.exp(-x * x / (2 * sigma2)))


@pytest.mark.parametrize("sigma2", [2**20, 2**36 + 1, 2**56])
def test_shape_and_lowest_bits_at_large_scale(sigma2):
    draws = native.discrete_gaussian(None, 0, sigma2, 200_000)
    cells = np.floor(stats.norm.cdf(draws / math.sqrt(sigma2)) * 50).clip(0, 49).astype(int)
    assert_distribution(np.bincount(cells, minlength=50), np.full(50, 1 / 50))
    # A floating point sampler leaves gaps here.
    assert_distribution(np.bincount(draws & 15, minlength=16), np.full(16, 1 / 16))
    # Signs of consecutive draws are independent.
    signs = (draws[0::2] < 0) * 2 + (draws[1::2] < 0)
    negative = 0.5 * (1 - 1 / math.sqrt(2 * math.pi * sigma2))
    distribution = np.array([1 - negative, negative])
    assert_distribution(
        np.bincount(signs, minlength=4), np.outer(distribution, distribution).ravel()
    )


def scale_is(claimed: float, mean: float, unit_variance: float, n: int) -> bool:
    """Whether `mean`, of n terms, is the one that `claimed` says; terms scaled to mean 1."""
    return abs(mean / claimed - 1) <= Z * math.sqrt(unit_variance / n)


@pytest.mark.parametrize("sigma2", [10**6, 2**36 + 12345, 2**44, 2**56])
def test_gaussian_scale_is_the_claimed_one_and_no_other(sigma2):
    n = 250_000
    draws = native.discrete_gaussian(None, 0, sigma2, n).astype(float)
    mean_square = float((draws**2).mean())
    # The square of a Gaussian has variance 2 in units of its squared mean.
    assert scale_is(sigma2, mean_square, 2.0, n)
    assert not scale_is(sigma2 * 1.02**2, mean_square, 2.0, n)
    assert not scale_is(sigma2 * 0.98**2, mean_square, 2.0, n)
    assert abs(draws.mean()) <= Z * math.sqrt(sigma2 / n)


@pytest.mark.parametrize("scale", [1000, 2**30 + 1, 2**48])
def test_laplace_scale_is_the_claimed_one_and_no_other(scale):
    n = 500_000
    draws = native.discrete_laplace(None, 0, scale, n).astype(float)
    mean_size = float(np.abs(draws).mean())
    assert scale_is(scale, mean_size, 1.0, n)
    assert not scale_is(scale * 1.02, mean_size, 1.0, n)
    assert not scale_is(scale * 0.98, mean_size, 1.0, n)
    assert abs(draws.mean()) <= Z * math.sqrt(2 / n) * scale


def exponential_distribution(utilities, rate: float):
    u = np.asarray(utilities, float)
    weights = np.exp((u - u.max()) * rate)
    return weights / weights.sum()


@pytest.mark.parametrize(
    ("utilities", "eps_num", "den"),
    [
        ([0, 1, 2, 3], 1, 1),
        ([0, 1, 2, 3], 1, 3),
        ([5, 5, 5], 7, 2),
        ([-3, 10, 10, 9, -(2**61)], 1, 2),
        ([0, 2**61, 2**61 - 2**40], 1, 2**40),
        ([100], 3, 1),
        ([1, 2, 3], 0, 1),
        ([0, 2**19, 2**18, -(2**19)], 2**40, 2**59),
    ],
)
def test_select(utilities, eps_num, den):
    distribution = exponential_distribution(utilities, eps_num / den)
    counts = np.bincount(
        native.select(None, 0, utilities, eps_num, den, 100_000).astype(int),
        minlength=distribution.size,
    )
    assert (counts[distribution == 0] == 0).all()
    if distribution.size == 1:
        assert counts[0] == 100_000
    else:
        assert_distribution(counts, distribution)


def test_select_among_skewed_utilities():
    # One clear winner, a few close seconds, and a mass of bad candidates that together still count.
    utilities = np.array([3] * 1000 + [8] * 5 + [9] * 2 + [10], np.int64)
    distribution = exponential_distribution(utilities, 1.0)
    draws = native.select(None, 0, utilities, 1, 1, 20_000).astype(int)
    group = np.searchsorted([1000, 1005, 1007], np.arange(utilities.size), side="right")
    assert_distribution(np.bincount(group[draws], minlength=4), np.bincount(group, distribution))


@pytest.mark.parametrize("loose", [0, 1, 5])
def test_bounds_of_groups_change_no_distribution(loose):
    # A clear winner, seconds in the same group and in others, and groups that are not looked at.
    utilities = np.array([[10, 2, 9], [3, 3, 3], [9, 8, 0], [0, -1, 1], [8, 9, 4]], np.int64)
    bounds = utilities.max(axis=1) + loose * np.array([0, 1, 0, 2, 1])
    draws, largest = native.select_grouped(None, 0, utilities, bounds, 1, 1, 100_000)
    assert_distribution(
        np.bincount(draws.astype(int), minlength=utilities.size),
        exponential_distribution(utilities.ravel(), 1.0),
    )
    assert largest == 0


def test_selection_scale_is_the_claimed_one_and_no_other():
    # Two candidates of log-odds 2, which a rate 2% off moves by 0.04.
    n = 1_000_000
    first = int((native.select(None, 0, [2**21, 0], 2**40, 2**60, n) == 0).sum())

    def accepted(rate: float) -> bool:
        p = 1 / (1 + math.exp(-rate))
        return abs(first - n * p) <= Z * math.sqrt(n * p * (1 - p))

    assert accepted(2.0)
    assert not accepted(2.0 * 1.02)
    assert not accepted(2.0 * 0.98)
