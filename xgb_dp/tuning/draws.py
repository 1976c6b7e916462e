"""Draws of private selection: secret coins, the number of runs, and the noise of scores.

Coins come from the operating system's generator, noise from the exact sampler in libxgboost, under
a fresh key of the same generator. All arithmetic is on integers, so every law is exact.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import ctypes
import secrets

import numpy as np
import numpy.typing as npt

from ..accounting import Repetitions
from ..accounting.selection import RATE_BITS, SHAPE_BITS
from ..engine import native

__all__ = ["discrete_gaussian", "repetitions", "rows_apart"]


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
        coins = _coins(block) < np.uint64(num)
        if coins.any():
            return failed + int(np.argmax(coins)) + 1
        failed += block


def _coins(size: int) -> npt.NDArray[np.uint32]:
    """Independent uniform 32-bit numbers of the operating system's generator."""
    return np.frombuffer(secrets.token_bytes(4 * size), dtype=np.uint32)


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


def rows_apart(
    rows: int, share_num: int, persons: npt.NDArray[np.uint32] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Divide rows by a secret coin for each of them, or for each person.

    Args:
        rows: Their number.
        share_num: A row is in the second part with probability share_num / 2**32.
        persons: Code of the person of each row, 0, 1, ..., whose rows stay together; None where
            every row has a coin of its own.

    Returns:
        Indices of both parts, ascending.
    """
    coins = rows if persons is None else int(persons.max(initial=0)) + 1
    apart = _coins(coins) < np.uint64(share_num)
    if persons is not None:
        apart = apart[persons]
    return np.flatnonzero(~apart), np.flatnonzero(apart)


def discrete_gaussian(sigma2: int, size: int) -> npt.NDArray[np.int64]:
    """Independent discrete Gaussian numbers, from a fresh key of the operating system.

    Source: ``plugin_cpp/random/samplers.h``, proof in ``docs/proofs/samplers.md``.

    Args:
        sigma2: Parameter of the noise, 1 to 2**56.
        size: How many.
    """
    out = np.empty(size, dtype=np.int64)
    native.call(
        "XGDPTestDiscreteGaussian",
        None,
        ctypes.c_uint32(0),
        ctypes.c_uint64(sigma2),
        ctypes.c_size_t(size),
        out.ctypes.data_as(ctypes.c_void_p),
    )
    return out
