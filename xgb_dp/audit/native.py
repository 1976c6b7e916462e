"""The samplers of libxgboost, through the test entry points of ``plugin_cpp/random/c_api.cc``.

The C++ code that draws the noise of trainings draws here, with a fresh key of the operating system
for every call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..engine import native

__all__ = ["discrete_gaussian", "select"]

_TRAINING_STREAM = 1


def _pointer(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def discrete_gaussian(sigma2: int, n: int) -> npt.NDArray[np.int64]:
    """`n` draws with probability proportional to exp(-x^2 / (2 sigma2)); touches no data."""
    out = np.empty(n, np.int64)
    native.call(
        "XGDPTestDiscreteGaussian",
        None,
        ctypes.c_uint32(_TRAINING_STREAM),
        ctypes.c_uint64(sigma2),
        ctypes.c_size_t(n),
        _pointer(out),
    )
    return out


def select(utilities: Sequence[int], eps_num: int, den: int, n: int) -> npt.NDArray[np.int64]:
    """`n` choices with weights exp(utility * eps_num / den), by the exponential mechanism."""
    u = np.ascontiguousarray(utilities, np.int64)
    out = np.empty(n, np.uint64)
    native.call(
        "XGDPTestSelect",
        None,
        ctypes.c_uint32(_TRAINING_STREAM),
        _pointer(u),
        ctypes.c_size_t(u.size),
        ctypes.c_uint64(eps_num),
        ctypes.c_uint64(den),
        ctypes.c_size_t(n),
        _pointer(out),
    )
    return out.astype(np.int64)
