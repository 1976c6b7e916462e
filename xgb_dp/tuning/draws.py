"""The number of runs of a private selection, from secret coins of the operating system.

All arithmetic is on integers, so every law is exact.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import secrets

import numpy as np

from ..accounting import Repetitions
from ..accounting.repetitions import RATE_BITS, SHAPE_BITS
from ..engine.draws import coins

__all__ = ["repetitions"]


def _coin(num: int, den: int) -> bool:
    """True with probability num / den."""
    return secrets.randbelow(den) < num


def repetitions(law: Repetitions) -> int:
    """The number of runs, at least 1. It must stay secret: never store, print or log it.

    Args:
        law: Its law.
    """
    if law.family == "poisson":
        while True:
            count = _poisson(law.rate_num, 1 << RATE_BITS)
            if count:
                return count
    while True:
        count = _geometric(law.rate_num)
        if _kept(count, law.shape_num, 1 << SHAPE_BITS):
            return count


def _geometric(num: int) -> int:
    """k >= 1 with probability gamma (1 - gamma)^(k - 1), gamma = num / 2**32."""
    block = min(max(16, (1 << RATE_BITS) // num), 1 << 16)
    failed = 0
    while True:
        heads = coins(block) < np.uint64(num)
        if heads.any():
            return failed + int(np.argmax(heads)) + 1
        failed += block


def _kept(count: int, num: int, den: int) -> bool:
    """True with probability prod_{l=1}^{count-1} (l + eta) / (l + 1), eta = num / den <= 1."""
    return all(_coin(step * den + num, (step + 1) * den) for step in range(1, count))


def _poisson(num: int, den: int) -> int:
    """A Poisson number of rate num / den, as the sum of numbers of rate 1/2 or less."""
    parts = -(-2 * num // den)
    return sum(_small_poisson(num, den * parts) for _ in range(parts))


def _small_poisson(num: int, den: int) -> int:
    """A Poisson number of rate g = num / den <= 1/2.

    The first k whose coin of probability g / (k + 1) fails has probability
    g^k / k! (1 - g / (k + 1)); it is kept with probability (1 - g) / (1 - g / (k + 1)).
    """
    while True:
        count = 0
        while _coin(num, (count + 1) * den):
            count += 1
        if _coin((den - num) * (count + 1), (count + 1) * den - num):
            return count
