"""The bound of one row, or of all rows of a person, and how far it lets sums of gradients move.

All figures are exact integers on the grid of gradients (``plugin_cpp/plan/row_bound.h``).
Proofs: docs/proofs/sensitivity.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Modes that scale both derivatives of a row together.
BALLS = ("prediction", "row_weight")


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

    def most_leaf_hessian(self, grid_bits: int) -> int:
        """The norm of the Hessians that a person with several rows adds to spread leaves.

        ceil(P / 4) in the modes "prediction" and "row_weight", else ``most_hessian``.
        """
        if self.ball:
            return -(-self.most_gradient(grid_bits) // 4)
        return self.most_hessian(grid_bits)

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

        It is max(S2, P^2 + Pl^2) + (floor(sqrt(S2)) // 3 + 2 K + 1)^2, where S2 is that of
        ``round_sens2`` and Pl that of ``most_leaf_hessian``. Each of the 2 K sums of all rows is
        rounded.
        """
        s2 = self.round_sens2(grid_bits, n_class)
        several = self.most_gradient(grid_bits) ** 2 + self.most_leaf_hessian(grid_bits) ** 2
        return max(s2, several) + (math.isqrt(s2) // 3 + 2 * n_class + 1) ** 2

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
