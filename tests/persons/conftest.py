"""Whose rows are whose, what the trainer was told of it, and a guard against noise."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from xgb_dp.engine import native


@pytest.fixture
def codes_used(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The codes that the trainer was given, one array for each training."""
    seen: list[np.ndarray] = []
    tell = native.set_persons

    def spy(dtrain: Any, codes: np.ndarray | None) -> None:
        if codes is not None:
            seen.append(codes)
        tell(dtrain, codes)

    monkeypatch.setattr(native, "set_persons", spy)
    return seen


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test if anything is released."""

    def fail(*args: Any) -> None:
        pytest.fail("noise was drawn before the error")

    monkeypatch.setattr(native, "release_before_trees", fail)


def same_partition(codes: np.ndarray, ids: Any) -> bool:
    """Whether codes are dense, and two rows have one code exactly where they have one id."""
    pairs = set(zip(codes.tolist(), list(ids), strict=True))
    return len(pairs) == len(set(codes.tolist())) == len(set(ids)) == codes.max() + 1


def people(n: int, seed: int = 2) -> npt.NDArray[np.int64]:
    """Codes of `n` rows: a third of the rows are of one person, others have one to four rows."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, max(n // 2, 2), n)
    codes[rng.random(n) < 0.33] = 0
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)
