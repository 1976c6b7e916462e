"""The number of runs, the coins of the rows and the noise of scores, against their laws."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from xgb_dp.accounting import Repetitions
from xgb_dp.engine.native import discrete_gaussian, split_rows
from xgb_dp.record import selection_record
from xgb_dp.selection.scores import Score

SURE = 1e-7  # a sound sampler fails a test less often than this


def pmf(distribution: Repetitions, most: int) -> np.ndarray:
    """P(K = k) for k = 1..most, from the definition of the law."""
    if distribution.family == "poisson":
        logs = [k * math.log(distribution.rate) - math.lgamma(k + 1) for k in range(1, most + 1)]
    else:
        logs, term = [], 0.0
        for k in range(1, most + 1):  # (1 - gamma)^k (eta + 1) ... (eta + k - 1) / k!
            term += math.log1p(-distribution.rate) - math.log(k)
            term += math.log(distribution.shape + k - 1) if k > 1 else 0.0
            logs.append(term)
    weights = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum()


@pytest.mark.parametrize(
    "family, mean",
    [
        ("logarithmic", 1.3),
        ("logarithmic", 4.0),
        ("geometric", 4.0),
        ("negative_binomial", 1.3),
        ("negative_binomial", 2.0),
        ("poisson", 1.3),
        ("poisson", 4.0),
    ],
)
def test_number_of_runs(family, mean):
    distribution = Repetitions.of(family, mean)
    n = 5000
    counts = np.array([selection_record.repetitions(distribution) for _ in range(n)])
    assert counts.min() >= 1
    expected = pmf(distribution, 400) * n
    last = int(np.argmax(np.cumsum(expected) > n - 20))  # cells beyond are taken together
    observed = np.bincount(np.minimum(counts, last + 1), minlength=last + 2)[1:]
    cells = np.append(expected[:last], expected[last:].sum())
    # Some cells expect three draws: so small a p-value is ten times likelier than it says.
    assert chisquare(observed, cells).pvalue > SURE / 10


def test_rows_are_apart_by_fair_assignment():
    kept, apart = split_rows(200_000, 1 << 30)
    assert np.array_equal(np.sort(np.concatenate([kept, apart])), np.arange(200_000))
    z = (len(apart) - 50_000) / math.sqrt(200_000 * 0.25 * 0.75)
    assert abs(z) < norm.isf(SURE)
    other = split_rows(200_000, 1 << 30)[1]
    assert not np.array_equal(apart, other)
    assert [len(part) for part in split_rows(0, 1 << 30)] == [0, 0]


def test_noise_is_that_of_the_event():
    """Too little noise fails: the standard error of the variance is 1.6%."""
    n, score = 8_000, Score("accuracy")
    event = score.event(0.05)
    assert event.sigma2 >= event.sensitivity2 / 0.05**2
    ranks = [score.release(np.zeros(0), np.zeros(0), None, event).rank for _ in range(n)]
    ratio = np.var(np.array(ranks) * (1 << 16)) / event.sigma2
    assert abs(ratio - 1.0) < norm.isf(SURE) * math.sqrt(2.0 / n)
    cells = discrete_gaussian(1 << 40, 1000)
    assert len(set(cells.tolist())) > 990
