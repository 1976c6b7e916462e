"""Masked sums of several workers in one process, with somebody on the network between them."""

import ctypes
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from xgboost.core import XGBoostError

from tests.noise.native import _check, _pointer
from xgb_dp.engine import native

TAG = 2  # words of a proof
Words = npt.NDArray[np.uint64]
Tamper = Callable[[int, Words], Words]
"""Changes what a worker, by rank, is told: the messages of all, by rank, in a copy of its own."""


def as_it_is(rank: int, words: Words) -> Words:
    del rank
    return words


def pair_keys(world: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    """Keys as (worker, peer, byte), equal on both sides."""
    rng = np.random.default_rng([world, seed])
    keys = np.zeros((world, world, 32), np.uint8)
    for i, j in itertools.combinations(range(world), 2):
        keys[i, j] = keys[j, i] = rng.integers(0, 256, 32, np.uint8)
    return keys


class Worker:
    """One worker's side of the masked sums of a training."""

    def __init__(self, rank: int, keys: npt.NDArray[np.uint8], session: bytes = bytes(32)) -> None:
        self.rank, self.world = rank, len(keys)
        self.size = 0
        self._handle = ctypes.c_void_p()
        self._keys = np.ascontiguousarray(keys[rank])
        _check(
            native.lib().XGDPTestSums(
                rank, self.world, _pointer(self._keys), session, ctypes.byref(self._handle)
            )
        )
        weakref.finalize(self, native.lib().XGDPTestFree, self._handle)

    def _call(self, name: str, values: Words, size: int, *what: Any) -> Any:
        values = np.ascontiguousarray(values)
        out = np.empty(size, np.uint64)
        count = ctypes.c_size_t(values.size)
        function = getattr(native.lib(), name)
        _check(function(self._handle, *what, _pointer(values), count, _pointer(out)))
        return out

    def send_shares(self, values: Words, what: str = "sums") -> Words:
        """Its numbers, masked, and the tags."""
        self.size = values.size
        name = ctypes.c_char_p(what.encode())
        return self._call("XGDPTestSendShares", values, values.size + TAG * self.world, name)

    def acknowledge(self, said: Words) -> Words:
        """Its answer to the messages of all."""
        return self._call("XGDPTestAcknowledge", said, TAG * self.world)

    def unmask(self, heard: Words) -> npt.NDArray[np.int64]:
        """The sums; raises if anything was not right."""
        return self._call("XGDPTestUnmask", heard, self.size).view(np.int64)


def workers(world: int = 3, seed: int = 0, session: bytes = bytes(32)) -> list[Worker]:
    keys = pair_keys(world, seed)
    return [Worker(rank, keys, session) for rank in range(world)]


def sum_up(
    parties: list[Worker],
    values: Words,
    said: Tamper = as_it_is,
    heard: Tamper = as_it_is,
    what: Callable[[int], str] = lambda rank: "sums",
) -> list[Any]:
    """One sum: what each worker comes to, its sums or its error."""
    words = np.array([w.send_shares(v, what(w.rank)) for w, v in zip(parties, values, strict=True)])
    answers = np.array([w.acknowledge(said(w.rank, words.copy())) for w in parties])
    out: list[Any] = []
    for worker in parties:
        try:
            out.append(worker.unmask(heard(worker.rank, answers.copy())))
        except XGBoostError as error:
            out.append(str(error))
    return out
