"""Lemmas of docs/proofs/masked-sums.md."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import z3

from tests.lemmas import Query, lemma


@lemma
def surplus_of_shares() -> Iterator[Query]:
    """N shares of ceil(sigma^2 / N) + 1 have a variance of at least sigma^2 + N."""
    n, share, sigma2, up = z3.Reals("n share sigma2 up")
    given = [n >= 1, sigma2 >= 1, up * n >= sigma2, share == up + 1]
    most = sigma2 + n
    at = [n == 4, sigma2 == 64, up == 16]
    yield Query(given, n * share >= most, n * share >= most + 1, at)


@lemma
def largest_part_of_a_share() -> Iterator[Query]:
    """A share of at least 2^10 makes x = N / sigma^2 at most 1 / 16, by far."""
    n, up, sigma2 = z3.Reals("n up sigma2")
    given = [n >= 1, up + 1 >= 2**10, (up - 1) * n < sigma2]
    at = [n == 1, up == 2**10 - 1, sigma2 == 2**10 - 2 + Fraction(1, 4)]
    yield Query(given, 16 * n <= sigma2, (2**10 - 1) * n <= sigma2, at)


@lemma
def order_of_moments() -> Iterator[Query]:
    """The steps from the order alpha to alpha (1 + x / 2), for x of at most 1 / 16."""
    x, alpha = z3.Reals("x alpha")
    given = [x > 0, 16 * x <= 1, alpha >= 1]
    a = alpha * (1 + x / 2)
    yield Query(given, a - 1 >= x / 2, a - 1 >= x / 2 * Fraction(1001, 1000), [alpha == 1])
    left, right = 1 + x / 2, (1 - x / 4) * (1 + x)
    yield Query(given, left <= right, left <= right * Fraction(98, 100), [16 * x == 1])


@lemma
def smallest_surplus() -> Iterator[Query]:
    """1 / sigma^2 - 1 / sigma'^2 is at least 2^-113 for sigma^2 of at most 2^56."""
    n, sigma2 = z3.Reals("n sigma2")
    given = [n >= 1, sigma2 >= n, sigma2 <= 2**56]
    product = sigma2 * (sigma2 + n)
    at = [n == 1, sigma2 == 2**56]
    yield Query(given, product <= n * 2**113, product <= n * 2**112, at)


@lemma
def moments_of_a_ratio() -> Iterator[Query]:
    """(2 + 2 / x) is at most 2^58, and 2^-115 at most x / (8 sigma^2), for x of at least 2^-56."""
    x, sigma2 = z3.Reals("x sigma2")
    given = [x >= Fraction(1, 2**56), 16 * x <= 1, sigma2 >= 1, sigma2 <= 2**56]
    at = [x == Fraction(1, 2**56), sigma2 == 2**56]
    small = Fraction(1, 2**115)
    claim = z3.And(2 * x + 2 <= x * 2**58, 8 * sigma2 * small <= x)
    yield Query(given, claim, 2 * x + 2 <= x * 2**57, at)
    yield Query(given, claim, 8 * sigma2 * small <= x - Fraction(1, 2**57), at)
