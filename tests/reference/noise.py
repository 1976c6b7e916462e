"""The samplers of ``plugin_cpp/random`` in exact Python integers.

Same algorithms, same order of draws: with the same key and stream id every function here returns
what its C++ namesake returns, and leaves the stream at the same word. Written for reading; for the
proofs see ``docs/proofs/samplers.md`` and ``docs/proofs/exponential-mechanism.md``.
"""

import math
import struct
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
_MASK = 0xFFFFFFFF
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_ROUNDS = (
    (0, 4, 8, 12),
    (1, 5, 9, 13),
    (2, 6, 10, 14),
    (3, 7, 11, 15),
    (0, 5, 10, 15),
    (1, 6, 11, 12),
    (2, 7, 8, 13),
    (3, 4, 9, 14),
)


class RandomSource(Protocol):
    """A stream of uniform 64-bit words."""

    def next64(self) -> int:
        """The next word, in [0, 2^64)."""


def chacha20_blocks(head: Sequence[int], counter: int, nonce: Sequence[int], n: int) -> Words:
    """Words of the n key stream blocks from a counter on (RFC 8439, section 2.3), one row each."""
    state = [np.full(n, word, dtype=np.uint32) for word in (*head, 0, *nonce)]
    state[len(head)] = np.arange(counter, counter + n, dtype=np.uint64).astype(np.uint32)
    x = [word.copy() for word in state]

    def mix(to: int, by: int, turned: int, left: int) -> None:
        x[to] += x[by]
        t = x[turned] ^ x[to]
        x[turned] = (t << np.uint32(left)) | (t >> np.uint32(32 - left))

    for _ in range(10):
        for a, b, c, d in _ROUNDS:
            mix(a, b, d, 16)
            mix(c, d, b, 12)
            mix(a, b, d, 8)
            mix(c, d, b, 7)
    return np.stack([word + first for word, first in zip(x, state, strict=True)], axis=1)


class ChaCha20Source:
    """The key stream of (key, stream id), 8 bytes at a time, little-endian."""

    def __init__(self, key: bytes, stream_id: int) -> None:
        """Start at the first word of the stream. ``key`` has 32 bytes."""
        if len(key) != 32:
            raise ValueError(f"key must have 32 bytes, got {len(key)}")
        self._head = [*_CONSTANTS, *struct.unpack("<8I", key)]
        self._nonce = [stream_id, 0, 0]
        self._counter = 0
        self._words: list[int] = []

    def next64(self) -> int:
        """The next word, in [0, 2^64)."""
        if not self._words:
            if self._counter > _MASK:
                raise RuntimeError("the stream is used up")
            # Many blocks at a time, more from refill to refill: one alone takes as long as many.
            n = min(max(8, self._counter), 1024, _MASK + 1 - self._counter)
            blocks = chacha20_blocks(self._head, self._counter, self._nonce, n)
            self._counter += n
            self._words = blocks.astype("<u4").ravel().view("<u8").tolist()[::-1]
        return self._words.pop()


def uniform_below(rng: RandomSource, n: int) -> int:
    """Uniform on 0, ..., n - 1, for 1 <= n <= 2^126."""
    bits = (n - 1).bit_length()
    if bits == 0:
        return 0
    while True:
        if bits <= 64:
            r = rng.next64() >> (64 - bits)
        else:
            high = rng.next64()
            r = (high << 64 | rng.next64()) >> (128 - bits)
        if r < n:
            return r


def bernoulli_exp_frac(rng: RandomSource, a: int, b: int) -> bool:
    """True with probability exp(-a / b), for 0 <= a <= b."""
    k = 1
    while uniform_below(rng, b) < a and uniform_below(rng, k) < 1:
        k += 1
    return k % 2 == 1


def bernoulli_exp(rng: RandomSource, q: int, a: int, b: int) -> bool:
    """True with probability exp(-(q + a / b)), for 0 <= a <= b."""
    # A count in range() may not exceed a machine word; q may.
    i = 0
    while i < q:
        if not bernoulli_exp_frac(rng, 1, 1):
            return False
        i += 1
    return True if a == 0 else bernoulli_exp_frac(rng, a, b)


def discrete_laplace(rng: RandomSource, scale: int) -> int:
    """An integer x with probability proportional to exp(-abs(x) / scale)."""
    while True:
        remainder = uniform_below(rng, scale)
        if not bernoulli_exp_frac(rng, remainder, scale):
            continue
        quotient = 0
        while bernoulli_exp_frac(rng, 1, 1):
            quotient += 1
        magnitude = remainder + scale * quotient
        negative = uniform_below(rng, 2) == 1
        if negative and magnitude == 0:
            continue
        return -magnitude if negative else magnitude


def discrete_gaussian(rng: RandomSource, sigma2: int) -> int:
    """An integer x with probability proportional to exp(-x^2 / (2 sigma2))."""
    t = math.isqrt(sigma2) + 1
    denominator = 2 * sigma2 * t * t
    while True:
        y = discrete_laplace(rng, t)
        q, a = divmod((abs(y) * t - sigma2) ** 2, denominator)
        if bernoulli_exp(rng, q, a, denominator):
            return y


def select_exponential(rng: RandomSource, utilities: Sequence[int], eps_num: int, den: int) -> int:
    """An index c with probability proportional to exp(utilities[c] * eps_num / den)."""
    best = max(utilities)
    while True:
        c = uniform_below(rng, len(utilities))
        q, a = divmod((best - utilities[c]) * eps_num, den)
        if bernoulli_exp(rng, q, a, den):
            return c


def select_grouped(
    rng: RandomSource,
    utilities: Sequence[Sequence[int]],
    bounds: Sequence[int],
    eps_num: int,
    den: int,
) -> int:
    """The same law among candidates in groups of one size, each with a bound of its utilities.

    Groups are looked at from the largest bound down, until no other bound is above the best utility
    by more than one nat.
    """
    nat = den // eps_num if eps_num else 1 << 63
    order = sorted(range(len(bounds)), key=lambda group: (-bounds[group], group))
    most = max(utilities[order[0]])
    for group in order[1:]:
        if bounds[group] - most <= nat:
            most = max(most, bounds[group])
            break
        most = max(most, *utilities[group])
    per_group = len(utilities[0])
    while True:
        c = uniform_below(rng, len(bounds) * per_group)
        group, i = divmod(c, per_group)
        bound = min(bounds[group], most)
        if not bernoulli_exp(rng, *divmod((most - bound) * eps_num, den), den):
            continue
        if bernoulli_exp(rng, *divmod((bound - utilities[group][i]) * eps_num, den), den):
            return c


class PublicWords:
    """SplitMix64 from a public name, by a path of numbers."""

    WORD = (1 << 64) - 1
    STEP = 0x9E3779B97F4A7C15

    def __init__(self, name: int, *path: int) -> None:
        self.state = name
        for number in path:
            self.state = self.scatter(self.state + self.STEP * (number + 1))

    @classmethod
    def scatter(cls, z: int) -> int:
        """The finaliser."""
        z &= cls.WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & cls.WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & cls.WORD
        return z ^ (z >> 31)

    def next64(self) -> int:
        """The next word."""
        self.state = (self.state + self.STEP) & self.WORD
        return self.scatter(self.state)

    def below(self, n: int) -> int:
        """A uniform number below n."""
        return uniform_below(self, n)


def select_argmax(utilities: Sequence[int]) -> int:
    """The index of the largest utility, the lowest one of several."""
    return max(range(len(utilities)), key=lambda c: (utilities[c], -c))
