"""The random draws of one training, in the order in which they are made."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .noise import (
    ChaCha20Source,
    discrete_gaussian,
    discrete_laplace,
    select_exponential,
    select_grouped,
    uniform_below,
)

TRAINING_STREAM, STRUCTURE_STREAM, SAMPLING_STREAM = 1, 2, 3


class Noise:
    """Every random draw of one training, in order; `noise_free` draws nothing."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.off = bool(plan["noise_free"])
        # Without noise nothing is hidden: what reads no data comes from a public key.
        key = bytes(32) if self.off else bytes.fromhex(plan["test_key"])
        self.structure = ChaCha20Source(key, STRUCTURE_STREAM)
        if not self.off:
            self.source = ChaCha20Source(key, TRAINING_STREAM)
            self.assignments = ChaCha20Source(key, SAMPLING_STREAM)

    def below(self, n: int) -> int:
        """A uniform number below n, for what reads no data."""
        return uniform_below(self.structure, n)

    def sample(self, num: int, rows: int) -> npt.NDArray[np.bool_]:
        """Which rows take part in a round, each with probability num / 2^32."""
        words = [self.assignments.next64() for _ in range((rows + 1) // 2)]
        assignments = [w >> shift & 0xFFFFFFFF for w in words for shift in (0, 32)]
        return np.array(assignments[:rows]) < num

    def parts(self, parts: int, rows: int) -> npt.NDArray[np.int64]:
        """Which round of an ensemble reads each row."""
        return np.array(
            [uniform_below(self.assignments, parts) for _ in range(rows)], dtype=np.int64
        )

    def laplace(self, scale: int) -> int:
        """A discrete Laplace variable, in grid units."""
        return 0 if self.off else discrete_laplace(self.source, scale)

    def gaussian(self, sigma2: int) -> int:
        """A discrete Gaussian of variance parameter `sigma2`, in grid units."""
        return 0 if self.off else discrete_gaussian(self.source, sigma2)

    def choose(self, utilities: npt.NDArray[np.int64], eps_num: int, range_int: int) -> int:
        """Exponential mechanism, epsilon eps_num / 2^40; noise off: arg max, lowest index."""
        if self.off:
            return int(np.argmax(utilities))
        return select_exponential(
            self.source, [int(u) for u in utilities], eps_num, range_int << 40
        )

    def choose_grouped(
        self,
        utilities: npt.NDArray[np.int64],
        bounds: npt.NDArray[np.int64],
        eps_num: int,
        range_int: int,
    ) -> int:
        """The same among candidates in rows, each row with a bound."""
        if self.off:
            return int(np.argmax(utilities))
        return select_grouped(
            self.source, utilities.tolist(), bounds.tolist(), eps_num, range_int << 40
        )
