"""Evaluations without noise, or with noise that is the same every time."""

import itertools

import numpy as np
import pytest

from tests.noise import native
from xgb_dp import noisy_sums


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        noisy_sums, "discrete_gaussian", lambda _, size: np.zeros(size, dtype=np.int64)
    )


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables with noise of the library's sampler, under a key and streams that are always the same.

    For tests that compare noisy figures or intervals with the truth: they say the same every time.
    """
    streams = itertools.count()

    def noise(sigma2: int, size: int) -> np.ndarray:
        return native.discrete_gaussian(native.TEST_KEY, next(streams), sigma2, size)

    monkeypatch.setattr(noisy_sums, "discrete_gaussian", noise)
