"""Whether few columns matter, from released sums of the cells of each column by class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xgb_dp.accounting.sensitivity import COLUMN_SHIFT
from xgb_dp.training.columns import few_columns_matter

SHIFT, WIDTH, ROWS, EACH = 11, 1000, 14_000, 40  # columns that a row has


class Noise:
    """Of the first release."""

    intercept_shift = SHIFT

    def __init__(self, deviation: float) -> None:
        """Of sums by column, in rows."""
        self.intercept_sigma2 = round((deviation * 2.0 ** (SHIFT + COLUMN_SHIFT)) ** 2)


def sums(
    matter: int,
    effect: float,
    deviation: float = 0.0,
    seed: int = 0,
    share: float = 0.5,
    weight: float = ROWS * EACH**0.5 / WIDTH,
) -> list[int]:
    """A released vector: columns of one weight, of which some are more often of one class.

    Args:
        matter: Number of columns that say something of the label.
        effect: What part of their cells has the other label than expected.
        deviation: Of the noise.
        seed: Of the noise and of the chance of which rows are there.
        share: Of rows with label 1.
        weight: Of the cells of each column.
    """
    rng = np.random.default_rng(seed)
    moved = np.zeros(WIDTH)
    moved[:matter] = effect * weight * np.resize([1.0, -1.0], matter)
    chance = np.sqrt(weight * share * (1 - share) / EACH**0.5) * (deviation > 0)
    moved += chance * rng.standard_normal(WIDTH)
    by_class = np.stack([(1 - share) * weight - moved, share * weight + moved])
    by_class += deviation * rng.standard_normal(by_class.shape)
    grid = np.rint(by_class * 2.0 ** (SHIFT + COLUMN_SHIFT)).astype(np.int64)
    labels, rows = (2 * share - 1) * ROWS, ROWS
    first = [round(v * 2.0**SHIFT) for v in (labels, rows, ROWS * EACH / WIDTH)]
    return [*first, *grid.ravel().tolist()]


def seen(deviation: float, *args: Any, **kwargs: Any) -> bool:
    noise: Any = Noise(max(deviation, 0.01))
    return few_columns_matter(noise, sums(*args, deviation=deviation, **kwargs))


@pytest.mark.parametrize("share", [0.5, 0.03, 0.9])
@pytest.mark.parametrize(("matter", "few"), [(1, True), (40, True), (50, False), (900, False)])
def test_columns_that_say_as_much_are_counted(matter: int, few: bool, share: float) -> None:
    """Without noise, the number of columns that say something, if they say as much each."""
    assert seen(0.0, matter, 0.4, share=share, weight=20_000.0) is few


@pytest.mark.parametrize("weight", [0.0, 1.0, 500.0])
def test_nothing_is_seen_in_columns_that_say_nothing(weight: float) -> None:
    assert not seen(0.0, 0, 0.0, weight=weight)


def test_one_frequent_column_is_seen_in_the_noise() -> None:
    assert all(seen(11.0, 8, 0.6, seed=seed) for seed in range(50))


@pytest.mark.parametrize("share", [0.5, 0.03])
@pytest.mark.parametrize(("matter", "effect"), [(0, 0.0), (500, 0.1)])
def test_noise_is_seldom_taken_for_few_columns(matter: int, effect: float, share: float) -> None:
    found = [seen(11.0, matter, effect, seed=seed, share=share) for seed in range(200)]
    assert np.mean(found) < 0.1


def test_no_rows_and_negative_counts_are_no_error() -> None:
    noise: Any = Noise(11.0)
    assert not few_columns_matter(noise, [0, 0, 0, *[0] * (2 * WIDTH)])
    few_columns_matter(noise, [5, -70_000, -9, *[-(1 << 40)] * (2 * WIDTH)])
