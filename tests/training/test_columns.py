"""What each column says of the label, from released sums of its cells by class."""

from typing import Any, cast

import numpy as np
import pytest
from scipy import special

from xgb_dp.mechanisms.mechanism import Noise
from xgb_dp.training.start import ColumnEffects, centre_of

SHIFT, WIDTH, ROWS, EACH = 11, 1000, 14_000, 40  # columns that a row has


def noise_of(deviation: float) -> Any:
    """Noise of both releases; the deviation is that of sums by column, in rows."""
    return {
        "intercept": Noise(sigma2=4**SHIFT, shift=SHIFT),
        "columns": Noise(sigma2=round((deviation * 2.0**SHIFT) ** 2), shift=SHIFT),
    }


class Asked(dict[str, Any]):
    """Settings of two classes."""

    labels, exposures = 1, None


def effects_of(
    matter: int,
    effect: float,
    deviation: float = 0.0,
    seed: int = 0,
    share: float = 0.5,
    each: int = EACH,
    rows: int = ROWS,
) -> ColumnEffects:
    """Columns that all rows have as often, of which the first ones move the log-odds."""
    rng = np.random.default_rng(seed)
    weight = rows * each**0.5 / WIDTH
    moved = np.zeros(WIDTH)
    moved[:matter] = share * (1 - share) * weight * effect * np.resize([1.0, -1.0], matter)
    if deviation:
        chance = np.sqrt(weight * share * (1 - share) / each**0.5)
        moved += chance * rng.standard_normal(WIDTH)
    by_class = np.stack([(1 - share) * weight - moved, share * weight + moved])
    by_class += deviation * rng.standard_normal(by_class.shape)
    grid = np.rint(by_class * 2.0**SHIFT).astype(np.int64)
    settings: Any = Asked(dp_public_num_rows=None, dp_features_per_tree=200)
    noise = noise_of(deviation)
    first = [round(v * 2.0**SHIFT) for v in ((2 * share - 1) * rows, rows)]
    return ColumnEffects.of(settings, noise, first, grid.ravel().tolist())


@pytest.mark.parametrize("share", [0.5, 0.1, 0.9])
def test_effects_without_noise_are_those_of_the_columns(share):
    """But for the step, the little that the prior takes, and the way to the rarer class."""
    seen = effects_of(20, 1.0, share=share, rows=10**7)
    labels = np.resize([1.0, -1.0], 2)
    odds = special.logit(share + share * (1 - share) * labels) - special.logit(share)
    expected = 0.75 * np.sign(labels) * np.minimum(np.abs(labels), np.abs(odds))
    assert np.allclose(seen.effects[:20], np.resize(expected, 20), rtol=0.05)
    assert np.abs(seen.effects[20:]).max() < 0.01
    assert np.allclose(seen.rates, EACH / WIDTH, rtol=1e-3)
    assert seen.share == pytest.approx(share)
    assert set(range(20)) <= set(seen.offered)
    assert len(seen.offered) == 200
    assert list(seen.offered) == sorted(seen.offered)
    cells = np.random.default_rng(1).random((50_000, 20)) < seen.rates[:20]
    predicted = special.expit(seen.centre + cells @ seen.effects[:20])
    assert predicted.mean() == pytest.approx(share, rel=0.01)


def test_columns_that_say_nothing_have_no_effect():
    """Noise alone: hardly any log-odds, in any of many draws."""
    assert max(np.abs(effects_of(0, 0.0, 5.0, seed).effects).max() for seed in range(40)) < 0.3


def test_a_column_of_the_rarer_class_alone_says_what_its_rate_does():
    """A cell in whose rows half have label 1, of 2% of all, moves the log-odds by 3.9 at most."""
    seen = effects_of(1, (0.5 - 0.02) / (0.02 * 0.98), share=0.02, rows=10**7)
    assert seen.effects[0] == pytest.approx(-0.75 * special.logit(0.02), rel=0.05)


def test_rare_columns_say_more_where_they_are_seen_to():
    """Effects that grow as columns get rarer are not shrunk to those of frequent ones.

    How far apart they put the classes, over what the true effects would: 0.47 with one prior that
    knows no numbers of cells.
    """
    share, weight, deviation, settings = 0.03, np.geomspace(60, 6000, 300), 34.0, Asked()
    settings |= {"dp_public_num_rows": None, "dp_features_per_tree": 2}
    first = [round(v * 2.0**SHIFT) for v in ((2 * share - 1) * 30_000, 30_000)]
    apart = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        off = 4.0 * np.sqrt(share * weight) * rng.standard_normal(300)
        by_class = np.stack([(1 - share) * weight - off, share * weight + off])
        sums = (by_class + deviation * rng.standard_normal(by_class.shape)) * 2.0**SHIFT
        cells = np.rint(sums).astype(np.int64).ravel().tolist()
        effects = ColumnEffects.of(cast(Any, settings), noise_of(deviation), first, cells).effects
        apart.append(effects @ off / np.sqrt(effects**2 @ weight * (off**2 @ (1 / weight))))
    assert np.mean(apart) > 0.49


def test_the_centre_follows_the_cells():
    """A row without cells is below the mean row where all columns speak for label 1."""
    seen = effects_of(0, 0.0, rows=10**6)
    assert centre_of(np.full(WIDTH, 0.1), seen.rates, 0.5) == pytest.approx(-0.1 * EACH, rel=0.01)


@pytest.mark.parametrize("sums", [[0, 0], [5, -70_000], [1 << 40, 1]])
@pytest.mark.parametrize("cell", [0, -(1 << 40), 1 << 50])
def test_whatever_noise_makes_of_the_sums_is_finite(sums, cell):
    settings: Any = Asked(dp_public_num_rows=None, dp_features_per_tree=2)
    noise = noise_of(5.0)
    seen = ColumnEffects.of(settings, noise, sums, [cell, 0, 7, -3, cell, 1])
    assert np.isfinite(seen.effects).all()
    assert ((seen.rates >= 0) & (seen.rates <= 1)).all()
    assert np.isfinite(seen.centre)
    assert len(seen.offered) == 2
