"""The last tree of a regression is shifted by the mean of what labels exceed predictions by."""

from __future__ import annotations

import math

import numpy as np

from .draws import Noise
from .grow import Tree
from .splits import Doubles, Ints, Plan, RowBound


def residual_sums(
    bound: RowBound, g: Doubles, h: Doubles, y: Doubles, added: Doubles
) -> tuple[int, int]:
    """Integer sums of residuals, in units of two half widths over 2^18, and of rows in the range.

    A row counts by its weight, in units of the largest one. `added` is what the last tree predicts.
    """
    told, ones = 0, 0
    low, high = bound.target
    for gradient, weight, label, step in zip(g, h, y, added, strict=True):
        if weight == 0 or not math.isfinite(label + gradient / weight + step):
            continue
        prediction = label + gradient / weight + step
        inside = min(max(prediction, low), high)
        residual = (min(max(label, low), high) - inside) / (2 * bound.scale)
        share = min(max(weight / bound.h_max, 0.0), 1.0)
        told += round(min(max(share * residual, -1.0), 1.0) * 2**18)
        ones += round(share * 2**16) if inside == prediction else 0
    return told, ones


def correct_mean(
    plan: Plan, tree: Tree, where: Ints, g: Doubles, h: Doubles, y: Doubles, noise: Noise
) -> None:
    """Release the sums and shift every leaf, in float32 as XGBoost keeps them; and once more."""
    bound, sigma2 = RowBound.of(plan), int(plan["correction"]["sigma2"])
    deviation, before = math.sqrt(sigma2), 0.01**2
    for _ in range(2):
        told, ones = residual_sums(bound, g, h, y, np.array(tree["leaf"], dtype=np.float64)[where])
        rows = (told + noise.gaussian(sigma2)) * 2 / 2**18, ones + noise.gaussian(sigma2)
        if rows[1] < max(16 * deviation, 1):
            continue
        inside = rows[1] / 2**16
        lacks = min(max(rows[0] / inside, -2.0), 2.0)
        variance = (deviation * 2 / 2**18 / inside) ** 2
        prior = max(before, lacks**2 - 4 * variance)
        kept = prior / (prior + variance)
        before = max(kept * variance, 0.001**2)
        shift = kept * lacks * bound.scale
        for node, left in enumerate(tree["left"]):
            weight = float(tree["base_weight"][node]) + shift / float(plan["leaf"]["eta"])
            tree["base_weight"][node] = np.float32(weight)
            if left == -1:
                tree["leaf"][node] = np.float32(float(tree["leaf"][node]) + shift)
