"""The last tree of a regression is shifted by the mean of what labels exceed predictions by."""

import math
from typing import Any

import numpy as np

from .draws import Noise
from .grow import Tree
from .splits import Doubles, Ints, Plan, RowBound


def residual_sums(
    bound: RowBound, g: Doubles, h: Doubles, y: Doubles, added: Doubles, who: Ints | None = None
) -> tuple[int, int]:
    """Integer sums of residuals, in units of two half widths over 2^18, and of rows in the range.

    A row counts by its weight, in units of the largest one, and a person (`who` are the codes of
    rows) as the mean of its rows, rounded towards 0. `added` is what the last tree predicts.
    """
    who = np.arange(len(y)) if who is None else who
    residuals, ones = [0] * (len(y) + 1), [0] * (len(y) + 1)
    n_rows = np.bincount(who, minlength=len(y) + 1)
    low, high = bound.target
    for gradient, weight, label, step, i in zip(g, h, y, added, who, strict=True):
        if weight == 0 or not math.isfinite(label + gradient / weight + step):
            continue
        prediction = label + gradient / weight + step
        inside = min(max(prediction, low), high)
        residual = (min(max(label, low), high) - inside) / (2 * bound.scale)
        share = min(max(weight / (bound.heaviest or 1.0), 0.0), 1.0)
        residuals[i] += round(min(max(share * residual, -1.0), 1.0) * 2**18)
        ones[i] += round(share * 2**16) if inside == prediction else 0
    means = [
        int(math.copysign(abs(v) // n, v)) for v, n in zip(residuals, n_rows, strict=True) if n
    ]
    return sum(means), sum(v // int(n) for v, n in zip(ones, n_rows, strict=True) if n)


def factor_sums(
    bound: RowBound, loss: Any, margin: Doubles, y: Doubles, weight: Doubles,
    who: Ints | None = None,
) -> tuple[int, int]:  # fmt: skip
    """The same sums for a factor: of residuals of means, and of means, cut at the largest one.

    `margin` is after the last tree.
    """
    who = np.arange(len(y)) if who is None else who
    residuals_of, means = [0] * (len(y) + 1), [0] * (len(y) + 1)
    n_rows = np.bincount(who, minlength=len(y) + 1)
    low, high = bound.target
    for mean, label, heavy, i in zip(loss.mean_of(margin), y, weight, who, strict=True):
        if not (math.isfinite(mean) and math.isfinite(label)):
            continue
        inside = min(max(mean, low), high)
        share = min(max(heavy / (bound.heaviest or 1.0), 0.0), 1.0)
        residual = share * (min(max(label, low), high) - inside) / (high - low)
        residuals_of[i] += round(min(max(residual, -1.0), 1.0) * 2**18)
        means[i] += round(min(max(share * inside / loss.largest_mean, 0.0), 1.0) * 2**16)
    residuals = [
        int(math.copysign(abs(v) // n, v)) for v, n in zip(residuals_of, n_rows, strict=True) if n
    ]
    return sum(residuals), sum(v // int(n) for v, n in zip(means, n_rows, strict=True) if n)


def kept_of(lacks: float, variance: float, usual: float) -> float:
    """The share of what is lacking that is its posterior mean: one in ten is of the large kind."""
    weights, shares, skewed = [], [], 0.2**2
    for share, prior in ((0.9, usual), (0.1, skewed)):
        # Both densities are divided by that of the large kind without its constant.
        power = lacks**2 / 2 * (1 / (skewed + variance) - 1 / (prior + variance))
        weights.append(share / math.sqrt(prior + variance) * math.exp(max(power, -100.0)))
        shares.append(prior / (prior + variance) if prior + variance else 0.0)
    return float(np.average(shares, weights=weights))


def correct_factor(
    plan: Plan, loss: Any, tree: Tree, where: Ints, margin: Any, y: Doubles, weight: Any,
    noise: Noise, who: Ints | None = None,
) -> None:  # fmt: skip
    """Release the sums and shift every leaf by the logarithm of a factor; and once more."""
    bound, sigma2 = RowBound.of(plan), int(plan["correction"]["sigma2"])
    deviation, before = math.sqrt(sigma2), 0.05**2
    for _ in range(2):
        after = margin.astype(np.float64) + np.array(tree["leaf"], dtype=np.float64)[where]
        residuals, means = factor_sums(bound, loss, after, y, weight.astype(np.float64), who)
        total = residuals + noise.gaussian(sigma2), means + noise.gaussian(sigma2)
        if total[1] < max(16 * deviation, 1):
            continue
        unit = (bound.target[1] - bound.target[0]) / 2**18
        predicted = total[1] * loss.largest_mean / 2**16
        lacks = min(max(total[0] * unit / predicted, 1 / 20 - 1), 19.0)
        variance = (deviation * unit / predicted) ** 2
        kept = kept_of(lacks, variance, before)
        before = max(kept * variance, 0.001**2)
        shift = math.log1p(kept * lacks)
        for node, left in enumerate(tree["left"]):
            base = float(tree["base_weight"][node]) + shift / float(plan["leaf"]["eta"])
            tree["base_weight"][node] = np.float32(base)
            if left == -1:
                tree["leaf"][node] = np.float32(float(tree["leaf"][node]) + shift)


def correct_mean(
    plan: Plan, tree: Tree, where: Ints, g: Doubles, h: Doubles, y: Doubles, noise: Noise,
    who: Ints | None = None,
) -> None:  # fmt: skip
    """Release the sums and shift every leaf, in float32 as XGBoost keeps them; and once more."""
    bound, sigma2 = RowBound.of(plan), int(plan["correction"]["sigma2"])
    deviation, before = math.sqrt(sigma2), 0.01**2
    for _ in range(2):
        added = np.array(tree["leaf"], dtype=np.float64)[where]
        residuals, ones = residual_sums(bound, g, h, y, added, who)
        rows = (residuals + noise.gaussian(sigma2)) * 2 / 2**18, ones + noise.gaussian(sigma2)
        known = rows[1] >= max(16 * deviation, 1)
        inside = rows[1] / 2**16 if known else float(plan["correction"]["rows"])
        if inside < 2**-16:
            continue
        lacks = min(max(rows[0] / inside, -2.0), 2.0)
        variance = (deviation * 2 / 2**18 / inside) ** 2
        kept = kept_of(lacks, variance, before)
        before = max(kept * variance, 0.001**2)
        shift = kept * lacks * bound.scale
        for node, left in enumerate(tree["left"]):
            weight = float(tree["base_weight"][node]) + shift / float(plan["leaf"]["eta"])
            tree["base_weight"][node] = np.float32(weight)
            if left == -1:
                tree["leaf"][node] = np.float32(float(tree["leaf"][node]) + shift)
