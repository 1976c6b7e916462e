"""Whose rows are whose, for tests."""

import numpy as np
import numpy.typing as npt


def people(n: int, seed: int = 2) -> npt.NDArray[np.int64]:
    """Codes of `n` rows: a third of the rows are of one person, others have one to four rows."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, max(n // 2, 2), n)
    codes[rng.random(n) < 0.33] = 0
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)
