"""The oracle's own invariants: it must be right before anything is compared with it."""

from __future__ import annotations

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
from tests.reference.objective import gradients, initial_margin
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
    made = base_plan([{"kind": "private", "grid": []}] * 2, **regression)
    for end in ("target_lower", "target_upper"):
        del made["row_bound"][end]
    return made | changes


def test_keys_keep_the_order_of_floats() -> None:
    values = np.array(
        [-FLT_MAX, -1.5, -1e-38, -1e-45, 0.0, 1e-45, 1e-38, 1.0, 1.5, FLT_MAX], dtype=np.float32
    )
    keys = key_of(values)
    assert np.all(np.diff(keys) > 0)
    assert [value_of(int(k)) for k in keys] == values.tolist()
    assert key_of(np.array([-0.0], np.float32)) == key_of(np.array([0.0], np.float32))


@pytest.mark.parametrize("levels", [2, 9, 17])
def test_cells_tile_the_keys_and_keep_the_counts(levels: int) -> None:
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
def test_cuts_are_sorted_and_balanced(scale: float) -> None:
    column = (scale * np.random.default_rng(1).lognormal(size=3000)).astype(np.float32)
    cuts = private_cuts(*walk([column], OPTIONS, FREE))
    assert np.all(np.diff(cuts) > 0)
    assert cuts[-1] == np.float32(FLT_MAX)
    counts = np.bincount(np.searchsorted(cuts, column, side="right"))
    assert counts.max() <= 3 * len(column) / OPTIONS["max_bin"]


def test_a_point_mass_has_its_own_cut() -> None:
    column = np.random.default_rng(2).normal(size=1000).astype(np.float32)
    column[:500] = 0
    cuts = private_cuts(*walk([column], OPTIONS, FREE))
    bins = np.searchsorted(cuts, column, side="right")
    zero_bin = np.searchsorted(cuts, 0, side="right")
    assert 0 in cuts
    assert column[bins == zero_bin].min() == 0
    assert np.mean(column[bins == zero_bin] == 0) > 0.8


@pytest.mark.parametrize("r", [0.25, 1.0, 11.0])
def test_no_row_exceeds_its_bound(r: float) -> None:
    rng = np.random.default_rng(3)
    g, h = 3 * rng.normal(size=5000), np.abs(rng.normal(size=5000))
    B = 1 << 18
    pairs = bound(r=r).quantise(g, h, np.zeros_like(g), False)
    assert np.all(pairs[:, 0] ** 2 + pairs[:, 1] ** 2 <= B * B)
    assert np.all(pairs[:, 1] >= 0)
    pairs = bound("clip", r=r).quantise(g, h, np.zeros_like(g), False)
    assert np.abs(pairs[:, 0]).max() == B
    assert pairs[:, 1].max() == math.ceil(math.sqrt(r) * B / 0.5)


def test_bad_gradients_count_as_nothing() -> None:
    bad = np.array([np.nan, np.inf, 0.1])
    pairs = bound().quantise(bad, bad[::-1].copy(), np.zeros(3), False)
    assert not pairs[:, :2].any()


@pytest.mark.parametrize("score", ["l1", "newton", "gain"])
def test_range_covers_one_more_row(score: str) -> None:
    """Adding a row moves all utilities within one interval no wider than the range."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(61, 2)).astype(np.float32)
    specs = [{"kind": "cuts", "cuts": [-1.0, 0.0, 1.0]}, {"kind": "cuts", "cuts": [0.5]}]
    features = bin_features({"features": specs}, X, FREE)
    s = Score(score, bound(r=0.5), 0.5, 1.0)
    widest = 0
    for sign in (-1, 1):
        g = rng.uniform(-1, 1, 61) * 0.2 + 0.4 * sign
        g[-1] = -sign
        pairs = s.bound.quantise(g, np.abs(g) * 0.1, np.zeros(61), False)
        with_row = utilities(plan(), features, [0, 1], pairs, np.arange(61), s)
        without = utilities(plan(), features, [0, 1], pairs, np.arange(60), s)
        change = with_row - without
        assert change.max() - change.min() <= s.range_int
        widest = max(widest, int(change.max() - change.min()), int(np.abs(change).max()))
    assert widest > 0


def test_utilities_follow_the_candidates() -> None:
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


def test_objectives() -> None:
    y, w = np.array([0, 1, 1], np.float32), np.array([1, 1, 2], np.float32)
    margin = initial_margin("binary:logistic", 0.25, 3, 1)
    g, h = gradients("binary:logistic", margin, y, w)
    np.testing.assert_allclose(g[:, 0], [0.25, -0.75, -1.5], rtol=1e-6)
    np.testing.assert_allclose(h[:, 0], [0.1875, 0.1875, 0.375], rtol=1e-6)
    margin = initial_margin("multi:softprob", [0.0, 0.0, math.log(2)], 3, 3)
    g, h = gradients("multi:softprob", margin, y, w)
    np.testing.assert_allclose(g.sum(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(g[0], [-0.75, 0.25, 0.5], rtol=1e-6)
    np.testing.assert_allclose(h[0], [0.375, 0.375, 0.5], rtol=1e-6)


def test_it_learns_and_its_margins_are_its_trees() -> None:
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


def test_oblivious_levels_share_one_split() -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(200, 2)).astype(np.float32), rng.normal(size=200).astype(np.float32)
    model = train(plan(shape="alternate", rounds=2), X, y)
    shared = []
    for tree in model.trees:
        levels = [slice(0, 1), slice(1, 3), slice(3, 7)]
        pairs = list(zip(tree["split_index"], tree["split_condition"], strict=True))
        shared.append(all(len(set(pairs[level])) == 1 for level in levels))
    assert shared == [True, False]
