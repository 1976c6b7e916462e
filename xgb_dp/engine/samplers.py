"""Coins and noise for what is released from Python, under fresh keys of the operating system.

Coins come from the operating system's generator, noise from the exact sampler in libxgboost, under
a fresh key of the same generator. All arithmetic is on integers, so every law is exact.

Proof: docs/proofs/selection.md
"""

from __future__ import annotations

import ctypes
import secrets

import numpy as np
import numpy.typing as npt

from . import native


def coins(size: int) -> npt.NDArray[np.uint32]:
    """Independent uniform 32-bit numbers of the operating system's generator."""
    return np.frombuffer(secrets.token_bytes(4 * size), dtype=np.uint32)


def rows_apart(
    rows: int, share_num: int, persons: npt.NDArray[np.uint32] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Divide rows by a secret coin for each of them, or for each person."""
    tossed = rows if persons is None else int(persons.max(initial=0)) + 1
    apart = coins(tossed) < np.uint64(share_num)
    if persons is not None:
        apart = apart[persons]
    return np.flatnonzero(~apart), np.flatnonzero(apart)


def discrete_gaussian(sigma2: int, size: int) -> npt.NDArray[np.int64]:
    """Independent discrete Gaussian numbers, from a fresh key of the operating system.

    Source: ``plugin_cpp/random/samplers.h``, proof in ``docs/proofs/samplers.md``.
    """
    out = np.empty(size, dtype=np.int64)
    native.call(
        "XGDPDiscreteGaussian",
        ctypes.c_uint64(sigma2),
        ctypes.c_size_t(size),
        out.ctypes.data_as(ctypes.c_void_p),
    )
    return out
