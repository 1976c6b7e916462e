"""Lemmas of docs/proofs/samplers.md."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import z3

from tests.lemmas import Query, lemma


@lemma
def sizes_of_gaussian_noise() -> Iterator[Query]:
    """t and the denominator of the coin, for sigma^2 of at most 2^56."""
    sigma2, t = z3.Reals("sigma2 t")
    given = [sigma2 >= 1, sigma2 <= 2**56, t >= 1, (t - 1) * (t - 1) <= sigma2]
    claim = z3.And(t <= 2**28 + 1, 2 * sigma2 * t * t <= 2**126)
    at = [sigma2 == 2**56, t == 2**28 + 1]
    yield Query(given, claim, t <= 2**28, at)
    yield Query(given, claim, 2 * sigma2 * t * t <= 2**113, at)


@lemma
def sizes_of_laplace_noise() -> Iterator[Query]:
    """U + t V fits 63 bits, for t of at most 2^48 and V below 2^14."""
    t, u, v = z3.Reals("t u v")
    given = [t >= 1, t <= 2**48, u >= 0, u <= t - 1, v >= 0, v <= 2**14 - 1]
    at = [t == 2**48, u == 2**48 - 1, v == 2**14 - 1]
    yield Query(given, u + t * v <= 2**62 - 1, u + t * v <= 2**62 - 2, at)


@lemma
def step_of_newton() -> Iterator[Query]:
    """A step of Newton's method is no less than the root, so neither are their floors."""
    guess, step, x = z3.Reals("guess step x")
    given = [guess > 0, 2 * step * guess == guess * guess + x, x >= 0]
    yield Query(given, step * step >= x, step * step >= x + 1, [guess == 3, x == 9])


@lemma
def rounds_that_reject() -> Iterator[Query]:
    """A round of a uniform draw is accepted with a probability above a half."""
    n, size = z3.Ints("n size")  # size is the power of two of the bits of n - 1
    given = [n >= 2, size >= 2, size <= 2 * (n - 1)]
    yield Query(given, 2 * n > size, 2 * n > size + 2, [n == 2**62 + 1, size == 2**63])


@lemma
def chance_of_a_failure() -> Iterator[Query]:
    """|Y| t >= 2^64 needs a V of at least 255, for sigma^2 of at most 2^56."""
    t, y = z3.Reals("t y")
    v = z3.Int("v")
    given = [t >= 1, t <= 2**28 + 1, v >= 0, y < t * (v + 1), y * t >= 2**64]
    at = [t == 2**28 + 1, y == Fraction(2**64, 2**28 + 1)]
    yield Query(given, v >= 255, v >= 256, at)
