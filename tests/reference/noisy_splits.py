"""Splits by noisy sums of all candidates, or of one random candidate of each feature."""

import math
from typing import NamedTuple

import numpy as np

from .candidates import MISSING, Feature
from .draws import Noise
from .splits import Ints, Plan, RowBound, candidates, left_sides


class Side(NamedTuple):
    """Noisy gradient and Hessian sums of a child, and of how many cells."""

    grad: int
    hess: int
    cells: int


def random_side(
    plan: Plan, feature: Feature, pairs: Ints, rows: Ints, noise: Noise, choice: int
) -> tuple[Side, Side]:
    """Both children of one candidate of a feature, each with noise of its own."""
    split = candidates([feature], [0])[choice]
    bins = feature.bins[rows]
    goes_left = bins != split.bin if feature.cuts is None else bins <= split.bin
    goes_left = np.where(bins == MISSING, split.missing_left, goes_left)
    sides = []
    for side in (goes_left, ~goes_left):
        g, h, _ = pairs[rows][side].sum(axis=0)
        sigma2 = int(plan["histogram"]["sigma2"])
        g, h = int(g) + noise.gaussian(sigma2), int(h) + noise.gaussian(sigma2)
        sides.append(Side(g, h, 1))
    return sides[0], sides[1]


def noisy_sides(
    plan: Plan, feature: Feature, pairs: Ints, rows: Ints, noise: Noise
) -> list[tuple[Side, Side]]:
    """Both children of every candidate of one feature, from released cells alone."""
    bins = feature.bins[rows]
    cells = np.zeros((feature.size + 1, 3), dtype=np.int64)  # the last one: missing values
    np.add.at(cells, np.where(bins == MISSING, feature.size, bins), pairs[rows])
    sigma2 = int(plan["histogram"]["sigma2"])
    for cell in cells:
        cell[0] += noise.gaussian(sigma2)
        cell[1] += noise.gaussian(sigma2)
        cell[2] = 1
    total, left = cells.sum(axis=0), left_sides(cells[:-1], cells.sum(axis=0), feature.cuts is None)
    return [(Side(*map(int, a)), Side(*map(int, total - a))) for a in left]


def noisy_gain(plan: Plan, bound: RowBound, side: Side) -> float:
    """Gain of a leaf with these noisy sums; the Hessian is at least the size of its noise."""
    leaf, noise = plan["leaf"], math.sqrt(int(plan["histogram"]["sigma2"]) * side[2])
    g, h = side[0] * bound.g_unit, side[1] * bound.h_unit
    h = max(h, noise * bound.h_unit, float(leaf["min_child_weight"]), 1e-6)
    return g * g / (h + float(leaf["lambda"]))
