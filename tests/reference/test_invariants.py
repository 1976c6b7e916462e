"""The oracle's own invariants: it must be right before anything is compared with it."""

import itertools
import math

import numpy as np
import pytest

from tests.reference.candidates import (
    FLT_MAX,
    Feature,
    bin_features,
    key_of,
    private_cuts,
    value_of,
    walk,
)
from tests.reference.draws import Noise
from tests.reference.plans import base_plan
from tests.reference.trainer import RowBound, Score, candidates, train, utilities

FREE = Noise({"noise_free": True})
OPTIONS = {"levels": 17, "shift": 10, "sigma2": 0, "max_bin": 16, "hessian": False}


def bound(mode: str = "row_weight", C: float = 0.5, r: float = 1.0) -> RowBound:
    return RowBound(mode, C, r, 1.0, 1.0, (-math.inf, math.inf), 1 << 18)


def plan(**changes: object) -> dict[str, object]:
    regression = {
        "objective": "reg:squarederror",
        "rounds": 20,
        "depth": 3,
        "row_bound": {"gradient_bound": "1", "hessian_weight": "0.25", "scale": "3"},
        "candidates": OPTIONS,
    }
    base = base_plan([{"kind": "private", "grid": []}] * 2, **regression)
    for end in ("target_lower", "target_upper"):
        del base["row_bound"][end]
    return base | changes


def test_keys_keep_the_order_of_floats():
    values = np.array(
        [-FLT_MAX, -1.5, -1e-38, -1e-45, 0.0, 1e-45, 1e-38, 1.0, 1.5, FLT_MAX], dtype=np.float32
    )
    keys = key_of(values)
    assert np.all(np.diff(keys) > 0)
    assert [value_of(int(k)) for k in keys] == values.tolist()
    assert key_of(np.array([-0.0], np.float32)) == key_of(np.array([0.0], np.float32))


@pytest.mark.parametrize("levels", [2, 9, 17])
def test_cells_tile_the_keys_and_keep_the_counts(levels):
    column = np.random.default_rng(0).normal(size=500).astype(np.float32)
    column[::7] = np.nan
    (tree,) = walk([column], OPTIONS | {"levels": levels}, FREE)
    cells = tree.cells
    assert cells[0].low == 0
    assert cells[-1].high == 1 << 32
    assert all(a.high == b.low for a, b in itertools.pairwise(cells))
    keys = key_of(column[~np.isnan(column)])
    assert tree.target == len(keys) / OPTIONS["max_bin"]
    for cell in cells:
        assert cell.estimate == np.count_nonzero((cell.low <= keys) & (keys < cell.high))


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_cuts_are_sorted_and_balanced(scale):
    column = (scale * np.random.default_rng(1).lognormal(size=3000)).astype(np.float32)
    cuts = private_cuts(*walk([column], OPTIONS, FREE))
    assert np.all(np.diff(cuts) > 0)
    assert cuts[-1] == np.float32(FLT_MAX)
    counts = np.bincount(np.searchsorted(cuts, column, side="right"))
    assert counts.max() <= 3 * len(column) / OPTIONS["max_bin"]


def test_a_point_mass_has_its_own_cut():
    column = np.random.default_rng(2).normal(size=1000).astype(np.float32)
    column[:500] = 0
    cuts = private_cuts(*walk([column], OPTIONS, FREE))
    bins = np.searchsorted(cuts, column, side="right")
    zero_bin = np.searchsorted(cuts, 0, side="right")
    assert 0 in cuts
    assert column[bins == zero_bin].min() == 0
    assert np.mean(column[bins == zero_bin] == 0) > 0.8


def test_utilities_follow_the_candidates():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 2)).astype(np.float32)
    X[:, 1] = rng.integers(0, 3, 80)
    X[rng.random(X.shape) < 0.2] = np.nan
    specs = [{"kind": "cuts", "cuts": [-1.0, 0.0, 1.0]}, {"kind": "categorical", "size": 4}]
    features: list[Feature] = bin_features({"features": specs}, X, FREE)
    pairs = bound().quantise(rng.normal(size=80), np.ones(80), np.zeros(80), False)
    got = utilities(plan(), features, [0, 1], pairs, np.arange(80), Score("l1", bound(), 0.5, 1.0))
    splits = candidates(features, [0, 1])
    assert len(splits) == len(got) == 7 + 8
    for split, u in zip(splits, got, strict=True):
        x = X[:, split.feature]
        cuts = features[split.feature].cuts
        left = x != split.bin if cuts is None else x < cuts[split.bin]
        left = np.where(np.isnan(x), split.missing_left, left)
        assert u == abs(pairs[left, 0].sum()) + abs(pairs[~left, 0].sum())


def test_it_learns_and_its_margins_are_its_trees():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 2)).astype(np.float32)
    y = (2 * np.sign(X[:, 0]) + np.sign(X[:, 0] * X[:, 1])).astype(np.float32)
    model = train(plan(), X, y, base_score=0.0)
    assert np.mean((model.margin[:, 0] - y) ** 2) < 0.05 * np.var(y)
    margin = np.zeros(len(y), dtype=np.float32)
    for tree in model.trees:
        for i, row in enumerate(X):
            node = 0
            while tree["left"][node] != -1:
                left = row[tree["split_index"][node]] < tree["split_condition"][node]
                node = tree["left" if left else "right"][node]
            margin[i] += tree["leaf"][node]
    np.testing.assert_array_equal(margin, model.margin[:, 0])
