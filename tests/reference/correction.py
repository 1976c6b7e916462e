"""The last tree of a regression is shifted by the mean of what labels exceed predictions by."""

from __future__ import annotations

import math

import numpy as np

from .draws import Noise
from .grow import Tree
from .splits import Floats, Plan, RowBound


def residual_sums(bound: RowBound, g: Floats, h: Floats, y: Floats) -> tuple[int, int]:
    """Integer sums of residuals, in units of two half widths over 2^18, and of rows in the range.

    A row counts by its weight, in units of the largest one.
    """
    told, ones = 0, 0
    for gradient, weight, label in zip(g, h, y, strict=True):
        if weight == 0 or not math.isfinite(label + gradient / weight):
            continue
        prediction = label + gradient / weight
        low, high = bound.target
        inside = min(max(prediction, low), high)
        residual = (min(max(label, low), high) - inside) / (2 * bound.scale)
        share = min(max(weight / bound.h_max, 0.0), 1.0)
        told += round(min(max(share * residual, -1.0), 1.0) * 2**18)
        ones += round(share * 2**16) if inside == prediction else 0
    return told, ones


def shift_leaves(
    plan: Plan, tree: Tree, h: dict[int, float], sums: tuple[int, int], noise: Noise
) -> None:
    """Release the sums and shift every leaf, in float32 as XGBoost keeps them."""
    scale, sigma2 = float(plan["row_bound"]["scale"]), int(plan["correction"]["sigma2"])
    told = (sums[0] + noise.gaussian(sigma2)) * 2 / 2**18
    deviation = math.sqrt(sigma2)
    rows = max(sums[1] + noise.gaussian(sigma2), deviation, 1) / 2**16
    leaves = [node for node, left in enumerate(tree["left"]) if left == -1]
    moved = sum(h[n] * float(tree["leaf"][n]) / scale for n in leaves) / sum(h[n] for n in leaves)
    lacks = min(max(told / rows - moved, -2.0), 2.0)
    variance = (deviation * 2 / 2**18 / rows) ** 2
    prior = max(0.01**2, lacks**2 - variance)
    shift = lacks * prior / (prior + variance) * scale
    for node in range(len(tree["left"])):
        weight = float(tree["base_weight"][node]) + shift / float(plan["leaf"]["eta"])
        tree["base_weight"][node] = np.float32(weight)
    for node in leaves:
        tree["leaf"][node] = np.float32(float(tree["leaf"][node]) + shift)
