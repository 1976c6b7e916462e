"""Computes every sensitivity and range, as exact integers on the grid.

C++ enforces the bounds from which they follow (``plugin_cpp/plan/row_bound.cc``), and computes none
of them. All figures are for adding or removing one unit of privacy, a row or all rows of a person.
Replacing one doubles ranges and sensitivities (:func:`replace_one`). Nothing here looks at data.
Proofs: docs/proofs/sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import BudgetError
from .row_bound import BALLS as BALLS
from .row_bound import RowBound as RowBound
from .row_bound import leaf_coordinates as leaf_coordinates

# A utility is evaluated with an error of less than 16 units; four times that enlarges the range.
UTILITY_SLACK = 64
# A leaf value is released as an integer of which this many are its sensitivity.
OUTPUT_UNITS = 1 << 20
# The denominator of the exponential mechanism is range * 2^40 and must stay below 2^63.
MAX_RANGE = 1 << 23
# Cells of equal width of the range of labels, in which they are counted for quantiles.
LABEL_CELLS = 64
_KINDS = ("binary", "regression", "targets", "multiclass", "cells", "range", "rows")


def leaf_sens(release: str, row_bound: RowBound, grid_bits: int, n_class: int = 1) -> int:
    """L1 sensitivity of the leaves of all classes that are released with Laplace noise.

    Args:
        release: "laplace" for noisy sums, in grid units; "output" for leaf values, in units of
            2**-20 of a value's sensitivity, with two more for rounding.
        row_bound: Bound of one row.
        grid_bits: Grid of the gradients.
        n_class: Trees of one round.
    """
    if release == "laplace":
        return row_bound.round_sens1(grid_bits, n_class)
    return n_class * (OUTPUT_UNITS + 2)


def range_int(
    score: str,
    row_bound: RowBound,
    grid_bits: int,
    tau: float = 0.0,
    *,
    unit_weights: bool = True,
    joint: bool = False,
    depth: int = 0,
) -> int:
    """Range of a split utility: sup - inf of its change over candidates, for any one unit.

    In utility units, of which B = 2**grid_bits are one unit of utility in units of C = 1:

    - "l1", |G_L| + |G_R| in grid units: 2 B, exact; 2 T for one of several outputs whose gradients
      are at most T.
    - "newton", floor(B u) with u = sum over sides of
      max_{|w|<=tau} -(2 w G/C + (H/C + lambda/C) w^2): ceil(R B (1 + 1e-12)) + 64, where
      modes "prediction" and "row_weight": R = 4 tau if tau^2 <= 8 r, else
      max(4 tau, tau^2 (1 + s)^2 / sqrt(tau^2 s^2 + r)) with s = (1 - sqrt(1 - 8 r / tau^2)) / 2;
      other modes, with a = 1 and e = Hmax / (sqrt(r) B): R = 4 tau a if tau e <= a, else
      (a + tau e)^2 / e. The same for one of several outputs, with a = T / B and the largest
      Hessian of its own, where that is less.
    - "gain", floor(B S^2 / (n + lambda)) with S = G/C and n the exact number of rows: 4 B + 64.

    For persons P = ceil(K B) stands for B. The part for rounding is that of all cells of a level,
    which is 2^depth times as much. The norms of joint trees are rounded too, by at most 2 in each.

    Args:
        score: "l1", "newton" or "gain".
        row_bound: Bound of one row.
        grid_bits: Grid of the gradients.
        tau: Clip of the leaf weight, "newton" only, > 0, in units of C.
        unit_weights: Whether every row has weight 1.
        joint: Whether one selection serves the trees of all classes.
        depth: Of the trees, in which the rows of a person may be anywhere.

    Raises:
        ValueError: Unknown score, tau missing, or "gain" where the second derivative varies or
            rows count together.
    """
    b = row_bound.most_gradient(grid_bits)
    cells = 1 << depth if row_bound.of_person else 1
    if score == "l1":
        if not joint:
            return 2 * row_bound.most_gradient_of_output(grid_bits)
        return 2 * b + (2 * cells if row_bound.of_person else 0)
    if score == "newton":
        width = _newton_range(row_bound, grid_bits, tau)
        return math.ceil(width * b * (1.0 + 1e-12)) + UTILITY_SLACK * cells
    if score == "gain":
        if row_bound.of_person:
            raise ValueError("The score 'gain' has no range for persons, whose rows share a bound.")
        if row_bound.ball or not unit_weights:
            raise ValueError(
                "The score 'gain' has a bounded range only where every row counts the same: "
                "squared loss or gradient leaves, without row weights. Use 'l1' or 'newton'."
            )
        return 4 * b + UTILITY_SLACK
    raise ValueError("`score` must be 'l1', 'newton' or 'gain'.")


def largest_grid_bits(
    score: str,
    row_bound: RowBound,
    tau: float,
    most: int = 18,
    *,
    joint: bool = False,
    depth: int = 0,
) -> int:
    """Bits of the finest grid on which the range of a score fits the exponential mechanism.

    Args:
        score: "l1", "newton" or "gain".
        row_bound: Bound of one row.
        tau: Clip of the leaf weight, "newton" only.
        most: Finest grid to try.
        joint: See :func:`range_int`.
        depth: See there.

    Returns:
        int: At least 4.

    Raises:
        BudgetError: No grid fits.
    """
    for bits in range(most, 3, -1):
        if range_int(score, row_bound, bits, tau, joint=joint, depth=depth) < MAX_RANGE:
            return bits
    raise BudgetError(
        "`dp_score_clip` or `dp_rows_per_person` is too large for this gradient bound. Lower it."
    )


def _newton_range(row_bound: RowBound, grid_bits: int, tau: float) -> float:
    if not (math.isfinite(tau) and tau > 0.0):
        raise ValueError("The score 'newton' needs a positive, finite weight clip `tau`.")
    r, b = row_bound.hessian_weight, row_bound.unit(grid_bits)

    def of_box(g: float, h: float) -> float:
        return 4.0 * tau * g if tau * h <= g else (g + tau * h) ** 2 / h

    if not row_bound.ball:
        return of_box(1.0, row_bound.max_hessian(grid_bits) / (math.sqrt(r) * b))
    most = 4.0 * tau
    if tau * tau > 8.0 * r:
        s = 0.5 * (1.0 - math.sqrt(1.0 - 8.0 * r / (tau * tau)))
        most = max(most, (tau * (1.0 + s)) ** 2 / math.sqrt(tau * tau * s * s + r))
    g, h = (math.ceil(v * b) for v in (row_bound.output_gradient, row_bound.output_hessian))
    return min(most, of_box(g / b, h / (math.sqrt(r) * b)))


def candidates_sens2(features: int, levels: int, shift: int) -> int:
    """Squared L2 sensitivity of the counts of all candidate trees: L F 4^shift.

    It is the same for a person, whose rows together count at most one in every level of a tree.

    Args:
        features: Features with private candidates, F.
        levels: Released levels of each tree, the root included, L.
        shift: Counts are multiplied by 2**shift.
    """
    return features * levels << (2 * shift)


def candidate_cells(edges: Sequence[int], levels: int, max_bin: int) -> int:
    """All sums that one release of candidates may have, any of which a person may be in.

    Args:
        edges: How many the public grid of each feature with private candidates has.
        levels: Released levels of each quantile tree; 0 for histograms on the grids.
        max_bin: Target number of bins.
    """
    if levels:
        return len(edges) * ((1 << levels) - 1)
    # Edges that move become no more than there were, or than the bins.
    return sum(max(n - 1, max_bin) for n in edges)


def feature_cells(features: Sequence[tuple[str, int]], max_bin: int, *, tree: bool) -> int:
    """Sums that the noisy histogram of one feature of one node has at most.

    Args:
        features: Kind and number of cuts, categories or grid edges, of each feature.
        max_bin: Target number of bins.
        tree: Whether private candidates come from quantile trees.
    """
    cells = {
        "cuts": lambda size: size + 1,
        "categorical": lambda size: size,
        "private": lambda size: 4 * max_bin + 128 if tree else max(size, max_bin) + 2,
    }
    return max(cells[kind](size) for kind, size in features) + 1  # one for missing values


def intercept_sens2(
    kind: str,
    shift: int,
    *,
    n_public: bool,
    k: int = 1,
    presence: bool = False,
    exposures: bool = False,
) -> int:
    """Squared L2 sensitivity of the label sums: 4^shift for each that a row touches.

    It is the same for a person, who adds the mean of their rows.

    Args:
        kind: "binary" or "regression": sums of a label in [-1, 1] and of 1; the second is not
            released if the number of rows is public. "targets": the same with a sum for each of
            several labels. "multiclass": K counts, of which a row touches one. "cells": the same
            of cells of the range of labels, and "range" of cells by which that range is narrowed.
            "rows": the number of rows alone.
        shift: Sums are multiplied by 2**shift.
        n_public: Whether the number of rows is declared public.
        k: Number of targets, K.
        presence: Whether the share of its cells that each row has is summed too, in [0, 1].
        exposures: Whether exposures are summed too, in [-1, 1].
    """
    units = intercept_coordinates(
        kind, n_public=n_public, k=k, presence=presence, exposures=exposures
    )
    return units << (2 * shift)


def columns_sens2(shift: int) -> int:
    """Squared L2 sensitivity of the cells by class and column, in which a row has the norm 2^shift.

    Args:
        shift: Sums are multiplied by 2**shift.
    """
    return 1 << (2 * shift)


def intercept_coordinates(
    kind: str,
    *,
    n_public: bool,
    person: bool = False,
    k: int = 1,
    presence: bool = False,
    exposures: bool = False,
) -> int:
    """Label sums that one row touches: 2, or 1 for classes, counts and a public number of rows.

    Of K targets K + 1, or K for a public number of rows.

    Args:
        kind: As in :func:`intercept_sens2`.
        n_public: See there.
        person: Whether the unit of privacy is a person, whose rows may be of all classes.
        k: Number of classes or targets, K.
        presence: As in :func:`intercept_sens2`: one sum more.
        exposures: As in :func:`intercept_sens2`: one sum more.
    """
    if kind not in _KINDS:
        raise ValueError(f"`kind` must be one of {', '.join(_KINDS)}.")
    if kind in ("cells", "range") and person:
        return LABEL_CELLS
    if kind == "multiclass" and person:
        return k
    sums = k if kind == "targets" else 1
    counted = not (kind in ("multiclass", "cells", "range", "rows") or n_public)
    return sums + counted + presence + exposures


def correction_sens2() -> int:
    """Squared L2 sensitivity of the two sums of a correction of the mean.

    A row adds at most 2^18 to the sum of residuals and 2^16 to that of predictions in the range. A
    person adds the mean of their rows.
    """
    return (1 << 36) + (1 << 32)


def replace_one(sens2: int) -> int:
    """Squared sensitivity when one row is replaced: a removal and an addition double the norm."""
    return 4 * sens2
