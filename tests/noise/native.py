"""The samplers inside libxgboost, through the entry points of tests/cpp/samplers.cc."""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from xgboost.core import _LIB, XGBoostError

TEST_KEY = bytes(range(32))

_U64 = ctypes.c_uint64
_SIZE = ctypes.c_size_t


def _check(status: int) -> None:
    if status != 0:
        _LIB.XGBGetLastError.restype = ctypes.c_char_p
        raise XGBoostError(_LIB.XGBGetLastError().decode())


def _key(key: bytes | None) -> ctypes.Array[ctypes.c_uint8] | None:
    return None if key is None else (ctypes.c_uint8 * 32)(*key)


def _pointer(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def four_blocks(state: Sequence[int]) -> bytes:
    out = (ctypes.c_uint32 * 64)()
    _check(_LIB.XGDPTestFourBlocks((ctypes.c_uint32 * 16)(*state), out))
    return bytes(out)


def system_key() -> bytes:
    out = (ctypes.c_uint8 * 32)()
    _check(_LIB.XGDPTestSystemKey(out))
    return bytes(out)


class Source:
    """A ChaCha20Source that lives in the library; a key of None is a fresh one."""

    def __init__(self, key: bytes | None, stream_id: int) -> None:
        self._handle = ctypes.c_void_p()
        _check(
            _LIB.XGDPTestSourceCreate(
                _key(key), ctypes.c_uint32(stream_id), ctypes.byref(self._handle)
            )
        )

    def next64(self, n: int) -> list[int]:
        out = np.empty(n, np.uint64)
        _check(_LIB.XGDPTestSourceNext(self._handle, _SIZE(n), _pointer(out)))
        return out.tolist()

    def __del__(self) -> None:
        _LIB.XGDPTestSourceFree(self._handle)


def integer_sqrt(x: int) -> int:
    out = _U64()
    _check(_LIB.XGDPTestIntegerSqrt(_U64(x), ctypes.byref(out)))
    return out.value


def integer_sqrt128(x: int) -> int:
    out = _U64()
    _check(_LIB.XGDPTestIntegerSqrt128(*_halves(x), ctypes.byref(out)))
    return out.value


def _halves(x: int) -> tuple[ctypes.c_uint64, ctypes.c_uint64]:
    return _U64(x >> 64), _U64(x & (2**64 - 1))


def _drawn(
    name: str, out: npt.NDArray[Any], key: bytes | None, stream: int, *arguments: Any
) -> npt.NDArray[Any]:
    """What an entry point writes that draws a number, or a row of them, for each of `out`."""
    draw = getattr(_LIB, f"XGDPTest{name}")
    size = _SIZE(len(out))
    _check(draw(_key(key), ctypes.c_uint32(stream), *arguments, size, _pointer(out)))
    return out


def uniform(key: bytes | None, stream: int, below: int, n: int) -> npt.NDArray[np.uint64]:
    return _drawn("Uniform", np.empty(n, np.uint64), key, stream, _U64(below))


def uniform128(key: bytes | None, stream: int, below: int, n: int) -> list[int]:
    halves = _drawn("Uniform128", np.empty((n, 2), np.uint64), key, stream, *_halves(below))
    return [high << 64 | low for high, low in halves.tolist()]


def bernoulli_exp(
    key: bytes | None, stream: int, q: int, a: int, b: int, n: int
) -> npt.NDArray[np.uint8]:
    exponent = (_U64(q), *_halves(a), *_halves(b))
    return _drawn("BernoulliExp", np.empty(n, np.uint8), key, stream, *exponent)


def discrete_laplace(key: bytes | None, stream: int, scale: int, n: int) -> npt.NDArray[np.int64]:
    return _drawn("DiscreteLaplace", np.empty(n, np.int64), key, stream, _U64(scale))


def discrete_gaussian(key: bytes | None, stream: int, sigma2: int, n: int) -> npt.NDArray[np.int64]:
    return _drawn("DiscreteGaussian", np.empty(n, np.int64), key, stream, _U64(sigma2))


def select(
    key: bytes | None, stream: int, utilities: Any, eps_num: int, den: int, n: int
) -> npt.NDArray[np.uint64]:
    u = np.ascontiguousarray(utilities, np.int64)
    given = _pointer(u), _SIZE(u.size), _U64(eps_num), _U64(den)
    return _drawn("Select", np.empty(n, np.uint64), key, stream, *given)


def select_grouped(
    key: bytes | None, stream: int, utilities: Any, bounds: Any, eps_num: int, den: int, n: int
) -> tuple[npt.NDArray[np.uint64], int]:
    """Choices among candidates in rows with a bound each, and which candidate is the largest."""
    u = np.atleast_2d(np.ascontiguousarray(utilities, np.int64))
    of_groups = np.ascontiguousarray(bounds, np.int64)
    assert len(of_groups) == len(u)
    given = _pointer(u), _pointer(of_groups), _SIZE(len(u)), _SIZE(u.shape[1])
    out = np.empty(n + 1, np.uint64)
    _drawn("SelectGrouped", out, key, stream, *given, _U64(eps_num), _U64(den))
    return out[:-1], int(out[-1])


def num_refills() -> int:
    """How often sources of noise have made key stream: where it stands still, nothing is drawn."""
    out = _U64()
    _check(_LIB.XGDPTestNumRefills(ctypes.byref(out)))
    return out.value


@contextmanager
def row_limits(total: int = 2**63, batch: int = 2**63) -> Iterator[None]:
    """Lower the most rows that a training and a batch of it take."""
    _check(_LIB.XGDPTestRowLimits(_U64(total), _U64(batch)))
    try:
        yield
    finally:
        _check(_LIB.XGDPTestRowLimits(_U64(2**63), _U64(2**63)))


def argmax(utilities: Sequence[int]) -> int:
    u = np.asarray(utilities, np.int64)
    out = _U64()
    _check(_LIB.XGDPTestArgmax(_pointer(u), _SIZE(u.size), ctypes.byref(out)))
    return out.value
