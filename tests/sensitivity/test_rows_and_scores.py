import math

import numpy as np
import pytest

from xgb_dp.accounting import sensitivity
from xgb_dp.accounting.sensitivity import RowBound


def quantise(bound, grid_bits, g, h):
    """The integers of rows, as the trainer makes them."""
    b, c, root = 2**grid_bits, bound.gradient_bound, math.sqrt(bound.hessian_weight)
    if bound.mode == "clip":
        gi = np.rint(np.clip(g, -c, c) * (b / c))
        hi = np.rint(root * np.clip(h, 0, bound.hessian_bound) * (b / c))
        return gi, np.minimum(hi, bound.max_hessian(grid_bits))
    norm = np.sqrt(g * g + bound.hessian_weight * h * h)
    s = np.minimum(1.0, c / np.maximum(norm, 1e-300))
    gi = np.clip(np.rint(g * s * (b / c)), -b, b)
    hi = np.clip(np.rint(root * h * s * (b / c)), 0, b)
    return gi, np.where(gi**2 + hi**2 > b * b, np.floor(np.sqrt(b * b - gi**2)), hi)


@pytest.mark.parametrize("r", [0.01, 0.25, 1.0, 9.0])
@pytest.mark.parametrize("c", [0.05, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("k", [2, 3, 5, 40])
def test_softmax_rounds(k, c, r):
    rng = np.random.default_rng(k)
    bound, bits = RowBound("row_weight", c, r), 10
    n = 4000
    p = rng.dirichlet(np.full(k, 0.3), n)
    p[: n // 2] = 0.0
    for i in range(n // 2):  # m equal classes, the true one among them or not
        m = int(rng.integers(1, k + 1))
        p[i, k - m :] = 1.0 / m
    y = np.zeros((n, k))
    y[np.arange(n), rng.integers(0, k, n)] = 1.0
    y[: n // 4] = 0.0
    y[: n // 4, 0] = 1.0
    gi, hi = quantise(bound, bits, p - y, 2 * p * (1 - p))
    assert np.max(np.sum(gi**2 + hi**2, axis=1)) <= bound.round_sens2(bits, k)


def test_counterexample_to_one_plus_inverse_clip():
    """Five classes, p = (0, 1/4 x 4), true class 0: S^2 = 4.25 C^2, not 1 + 1/C = 3."""
    p = np.array([[0.0, 0.25, 0.25, 0.25, 0.25]])
    y = np.array([[1.0, 0.0, 0.0, 0.0, 0.0]])
    bound = RowBound("row_weight", 0.5, 1.0)
    gi, hi = quantise(bound, 18, p - y, 2 * p * (1 - p))
    total = np.sum(gi**2 + hi**2)
    assert total / 4**18 == pytest.approx(4.25, abs=1e-4)
    assert 3.0 * 4**18 < total <= bound.round_sens2(18, 5)


@pytest.mark.parametrize("k", [2, 5, 40])
def test_unit_hessians_fill_every_class(k):
    """Gradient boosting with softmax: each class is at the clip, and K C^2 is attained."""
    p = np.full((1, k), 1.0 / k)
    y = np.eye(1, k)
    bound = RowBound("row_weight", 0.5, 0.25, unit_hessian=True)
    gi, hi = quantise(bound, 18, p - y, np.ones((1, k)))
    total = np.sum(gi**2 + hi**2)
    assert total == pytest.approx(k * 4.0**18, rel=1e-4)
    assert total <= bound.round_sens2(18, k) == k * 4**18
    newton = RowBound("row_weight", 0.5, 0.25)
    assert k < 5 or newton.round_sens2(18, k) < total


def test_tree_and_round():
    row = RowBound("row_weight", 0.5, 1.0)
    assert row.tree_sens2(18) == row.round_sens2(18) == 2**36
    assert row.round_sens2(18, 100) < 6 * 2**36
    assert RowBound("row_weight", 0.5, 1.0, max_weight=0.0).round_sens2(18, 100) == 100 * 2**36
    clip = RowBound("clip", 0.3, 0.005625, 1.0)
    h_max = clip.max_hessian(18)
    assert h_max == math.ceil(0.25 * 2**18)
    assert clip.tree_sens2(18) == 2**36 + h_max**2
    with pytest.raises(ValueError, match="row_weight"):
        clip.round_sens2(18, 3)
    with pytest.raises(ValueError, match="mode"):
        RowBound("other", 0.3, 1.0)
    with pytest.raises(ValueError, match="positive"):
        RowBound("clip", 0.0, 1.0)


def newton(G, H, tau, lam):
    d = H + lam
    w = np.clip(-G / np.maximum(d, 1e-300), -tau, tau)
    return -(2 * w * G + d * w * w)


@pytest.mark.parametrize("tau", [0.1, 0.5, 2.0, 6.0])
@pytest.mark.parametrize(
    "bound",
    [
        RowBound("row_weight", 0.5, 1.0),
        RowBound("row_weight", 0.5, 0.25),
        RowBound("prediction", 0.5, 0.25),
        RowBound("clip", 0.3, 0.005625, 1.0),
        RowBound("clip", 1.0, 1.0, 0.25),
    ],
)
def test_newton_range(bound, tau):
    bits = 12
    b, root = 2**bits, math.sqrt(bound.hessian_weight)
    rng = np.random.default_rng(1)
    n = 60000
    if bound.mode in ("prediction", "row_weight"):
        angle = rng.uniform(-np.pi / 2, np.pi / 2, n)
        g, h = np.sin(angle), np.cos(angle) / root
    else:
        g = np.where(rng.random(n) < 0.5, 1.0, rng.uniform(-1, 1, n))
        h = rng.choice([0.0, 0.5, 1.0], n) * bound.max_hessian(bits) / (root * b)
    size = 10 ** rng.uniform(-3, 4, n)
    G, H = rng.uniform(-1, 1, n) * size, rng.uniform(0, 1, n) * size
    G[: n // 3] = np.where(rng.random(n // 3) < 0.5, 1e4, -1e4)
    lam = rng.choice([0.0, 1.0, 10.0], n)
    change = newton(G + g, H + h, tau, lam) - newton(G, H, tau, lam)
    psi_high = np.maximum(newton(g, h, tau, 0.0), 0.0)
    psi_low = -(2 * tau * np.abs(g) + h * tau * tau)
    assert np.all(change <= psi_high + 1e-6)
    assert np.all(change >= psi_low - 1e-6)
    widest = float(np.max(psi_high - psi_low))
    allowed = (sensitivity.range_int("newton", bound, bits, tau) - sensitivity.UTILITY_SLACK) / b
    assert widest <= allowed * (1 + 1e-6)
    assert widest >= allowed * 0.98


@pytest.mark.parametrize("lam", [0.0, 1.0, 30.0])
def test_gain_range(lam):
    rng = np.random.default_rng(2)
    n = rng.integers(0, 2000, 100000).astype(float)
    total = np.where(rng.random(n.size) < 0.5, n, rng.uniform(-1, 1, n.size) * n)
    g = rng.choice([-1.0, 1.0, 0.3], n.size)
    before = np.divide(total**2, n + lam, out=np.zeros_like(n), where=n + lam > 0)
    change = (total + g) ** 2 / (n + 1 + lam) - before
    assert np.max(change) <= 1.0 + 1e-9
    assert np.min(change) > -3.0
    bound = RowBound("clip", 0.3, 0.005625)
    assert sensitivity.range_int("gain", bound, 18) == 4 * 2**18 + 64


def test_l1_range():
    rng = np.random.default_rng(3)
    side = rng.integers(-(10**6), 10**6, 10000)
    g = rng.integers(-1024, 1025, 10000)
    change = np.abs(side + g) - np.abs(side)
    bound = RowBound("row_weight", 1.0, 1.0)
    assert np.max(change) - np.min(change) <= sensitivity.range_int("l1", bound, 10)


@pytest.mark.parametrize(
    ("score", "bound", "kwargs"),
    [
        ("gain", RowBound("row_weight", 0.5, 1.0), {}),
        ("gain", RowBound("prediction", 0.5, 1.0), {}),
        ("gain", RowBound("clip", 0.5, 1.0), {"unit_weights": False}),
        ("newton", RowBound("row_weight", 0.5, 1.0), {}),
        ("other", RowBound("row_weight", 0.5, 1.0), {}),
    ],
)
def test_unbounded_scores_are_refused(score, bound, kwargs):
    with pytest.raises(ValueError, match="score"):
        sensitivity.range_int(score, bound, 18, **kwargs)


def test_counts():
    assert sensitivity.candidates_sens2(14, 17, 9) == 14 * 17 * 4**9
    assert sensitivity.intercept_sens2("binary", 3, n_public=False) == 2 * 4**3
    assert sensitivity.intercept_sens2("regression", 3, n_public=True) == 4**3
    assert sensitivity.intercept_sens2("multiclass", 3, n_public=False) == 4**3
    assert sensitivity.leaf_coordinates(3) == 6
    assert sensitivity.replace_one(5) == 20
    with pytest.raises(ValueError, match="kind"):
        sensitivity.intercept_sens2("other", 0, n_public=False)
