"""Linear algebra of an evaluation takes one thread, and gives the others back."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xgb_dp
from tests.evaluation.tasks import TARGET, rows, stock
from xgb_dp import noisy_sums
from xgb_dp.evaluation.counts import one_thread

threadpoolctl = pytest.importorskip("threadpoolctl")


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield


def threads() -> list[int]:
    pools = threadpoolctl.threadpool_info()
    return [one["num_threads"] for one in pools if one["user_api"] == "blas"]


def test_blas_takes_one_thread_and_gives_it_back():
    assert set(threads()) == {2}
    with one_thread():
        assert set(threads()) == {1}
    assert set(threads()) == {2}
    with pytest.raises(ZeroDivisionError), one_thread():
        _ = 1 // 0
    assert set(threads()) == {2}


def test_an_evaluation_takes_one_thread(monkeypatch):
    seen = []

    def noise(sigma2: int, size: int) -> Any:
        seen.append(set(threads()))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(noisy_sums, "discrete_gaussian", noise)
    xgb_dp.evaluate(stock(*rows(300)), rows(300), by={4: [0, 1, 2]}, **TARGET)
    assert seen and all(one == {1} for one in seen)


def test_nothing_is_asked_for_without_threadpoolctl(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_thread():
        assert set(threads()) == {2}
