"""Computes every sensitivity and range, as exact integers on the grid.

C++ enforces the bounds from which they follow (``plugin_cpp/plan/row_bound.cc``), and computes none
of them. All figures are for adding or removing one unit of privacy, a row or all rows of a person.
Replacing one doubles ranges and sensitivities (:func:`replace_one`). Nothing here looks at data.
Proofs: docs/proofs/sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BudgetError

__all__ = [
    "BALLS",
    "LABEL_CELLS",
    "RowBound",
    "candidate_cells",
    "candidates_sens2",
    "columns_sens2",
    "correction_sens2",
    "feature_cells",
    "intercept_coordinates",
    "intercept_sens2",
    "largest_grid_bits",
    "leaf_coordinates",
    "leaf_sens",
    "range_int",
    "replace_one",
]

# Modes that scale both derivatives of a row together.
BALLS = ("prediction", "row_weight")
# A utility is evaluated with an error of less than 16 units; four times that enlarges the range.
UTILITY_SLACK = 64
# A leaf value is released as an integer of which this many are its sensitivity.
OUTPUT_UNITS = 1 << 20
# The denominator of the exponential mechanism is range * 2^40 and must stay below 2^63.
MAX_RANGE = 1 << 23
# Cells of equal width of the range of labels, in which they are counted for quantiles.
LABEL_CELLS = 64


@dataclass(frozen=True)
class RowBound:
    """How much one row can contribute to the gradient sums of one tree.

    Attributes:
        mode: "prediction" and "row_weight": the pair is scaled so that g^2 + r h^2 <= C^2, by a
            factor of the prediction or by the norm of the row. "clip": |g| clipped to C, and
            0 <= h <= h_max. "filter": the same, but rows with |g| > C take no part.
        gradient_bound: C > 0, in units of the gradient (regression: half widths of the range).
        hessian_weight: r > 0, weight of h in the norm.
        hessian_bound: h_max > 0, used by the modes "clip" and "filter".
        max_weight: Public bound of row weights, > 0; 0 if there is none. 1 without weights.
        unit_hessian: Whether a row's weight stands in for its Hessian (gradient boosting).
        rows_per_person: K >= 1: what a person counts at most, in rows. 1 for rows.
        output_gradient: Largest gradient of one of several outputs, in units of C; 1 if it may be
            all there is.
        output_hessian: Largest sqrt(r) h of one of them, in units of C.
        of_person: Whether it bounds all rows of a person together.
    """

    mode: str
    gradient_bound: float
    hessian_weight: float
    hessian_bound: float = 1.0
    max_weight: float = 1.0
    unit_hessian: bool = False
    rows_per_person: float = 1.0
    output_gradient: float = 1.0
    output_hessian: float = 1.0
    of_person: bool = False

    def __post_init__(self) -> None:
        if self.mode not in ("prediction", "row_weight", "clip", "filter"):
            raise ValueError("`mode` must be 'prediction', 'row_weight', 'clip' or 'filter'.")
        positive = (self.gradient_bound, self.hessian_weight, self.hessian_bound)
        if not all(math.isfinite(v) and v > 0.0 for v in positive):
            raise ValueError("C, r and h_max must be positive and finite.")
        if not (math.isfinite(self.max_weight) and self.max_weight >= 0.0):
            raise ValueError("`max_weight` must be finite and at least 0.")
        if not all(0.0 < v <= 1.0 for v in (self.output_gradient, self.output_hessian)):
            raise ValueError("The bounds of an output must lie in (0, 1].")

    @property
    def ball(self) -> bool:
        """Whether each row's pair is in the ball g^2 + r h^2 <= C^2."""
        return self.mode in BALLS

    def unit(self, grid_bits: int) -> int:
        """B = 2**grid_bits, the integer of a gradient C."""
        return 1 << grid_bits

    def max_hessian(self, grid_bits: int) -> int:
        """Hmax, the largest integer of sqrt(r) h of one row.

        B in the modes "prediction" and "row_weight", else ceil(sqrt(r) h_max / C * B).
        """
        b = self.unit(grid_bits)
        if self.ball:
            return b
        ratio = math.sqrt(self.hessian_weight) * self.hessian_bound / self.gradient_bound
        return math.ceil(ratio * b)

    def most_gradient(self, grid_bits: int) -> int:
        r"""P = ceil(K B), the most that a person adds to a sum of \|g\|; B for rows."""
        return math.ceil(self.rows_per_person * self.unit(grid_bits))

    def most_hessian(self, grid_bits: int) -> int:
        """The most that a person adds to a sum of h: floor(P Hmax / B); Hmax for rows."""
        most = self.most_gradient(grid_bits) * self.max_hessian(grid_bits)
        return most // self.unit(grid_bits)

    def most_gradient_of_output(self, grid_bits: int) -> int:
        r"""The most that a unit adds to a sum of \|g\| of one output: floor(P T / B).

        T = ceil(B times ``output_gradient``) is that of a row.
        """
        b = self.unit(grid_bits)
        return self.most_gradient(grid_bits) * math.ceil(self.output_gradient * b) // b

    def tree_sens2(self, grid_bits: int) -> int:
        """Squared L2 sensitivity of (sum g, sum h) of one tree, in grid units.

        P^2 ("prediction", "row_weight") or P^2 + (P Hmax / B)^2 (the others), with P = B for rows.
        """
        p2 = self.most_gradient(grid_bits) ** 2
        return p2 if self.ball else p2 + self.most_hessian(grid_bits) ** 2

    def round_sens2(self, grid_bits: int, n_class: int = 1) -> int:
        """Squared L2 sensitivity of the leaf sums of all `n_class` trees of one round.

        For one tree, and with "prediction", it is ``tree_sens2``. For softmax with K trees,
        h = 2p(1-p), weights up to w and the mode "row_weight" it is
        min(K B^2, B^2 + K + ceil(A (B^2 + 1.5 B))) with
        A = ((1 + 1e-5) w sqrt(1 + 4r) + 1e-15 K sqrt(r)) / C. Without a bound w, or with unit
        Hessians, which fill every class up to C, it is K B^2. For persons it is K P^2, since the
        worst classes of their rows may differ.

        Args:
            grid_bits: Grid of the gradients.
            n_class: Trees of one round, K >= 1.

        Raises:
            ValueError: Several classes with the mode "clip".
        """
        if n_class == 1 or self.mode == "prediction":
            return self.tree_sens2(grid_bits)
        if self.mode != "row_weight":
            raise ValueError("Several classes need the mode 'row_weight'.")
        if self.of_person:
            return n_class * self.tree_sens2(grid_bits)
        b = self.unit(grid_bits)
        most = n_class * b * b
        if self.unit_hessian or self.max_weight == 0.0:
            return most  # the bound below needs Hessians that vanish with p_k
        r = self.hessian_weight
        a = (
            (1.0 + 1e-5) * self.max_weight * math.sqrt(1.0 + 4.0 * r)
            + 1e-15 * n_class * math.sqrt(r)
        ) / self.gradient_bound
        if a >= n_class:
            return most
        return min(most, b * b + n_class + math.ceil(a * (b * b + 1.5 * b)))

    def spread_sens2(self, grid_bits: int, n_class: int = 1) -> int:
        """Squared L2 sensitivity of leaves with spread persons, and a third of all sums.

        It is S2 + (floor(sqrt(S2)) // 3 + 2 K + 1)^2, where S2 is that of ``round_sens2``. Each of
        the 2 K sums of all rows is rounded.
        """
        s2 = self.round_sens2(grid_bits, n_class)
        return s2 + (math.isqrt(s2) // 3 + 2 * n_class + 1) ** 2

    def round_sens1(self, grid_bits: int, n_class: int = 1) -> int:
        """L1 sensitivity of the leaf sums of a round, 2 K of which a row touches, in grid units.

        In the modes "prediction" and "row_weight" it is floor(sqrt(2 K S2)), where S2 is that of
        ``round_sens2``. In the others it is K (B + Hmax). For persons both have what a person adds
        at most instead.
        """
        if self.ball:
            return math.isqrt(leaf_coordinates(n_class) * self.round_sens2(grid_bits, n_class))
        return n_class * (self.most_gradient(grid_bits) + self.most_hessian(grid_bits))


def leaf_coordinates(n_class: int = 1) -> int:
    """Noisy leaf sums of one round that one row touches: G and H of one leaf per tree."""
    return 2 * n_class


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
            of cells of the range of labels. "rows": the number of rows alone.
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
    if kind not in ("binary", "regression", "targets", "multiclass", "cells", "rows"):
        raise ValueError(
            "`kind` must be 'binary', 'regression', 'targets', 'multiclass', 'cells' or 'rows'."
        )
    if kind == "cells" and person:
        return LABEL_CELLS
    if kind == "multiclass" and person:
        return k
    sums = k if kind == "targets" else 1
    counted = not (kind in ("multiclass", "cells", "rows") or n_public)
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
