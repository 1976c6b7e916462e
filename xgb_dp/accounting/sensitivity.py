"""Computes every sensitivity and range, as exact integers on the grid.

C++ enforces the underlying bounds (``plugin_cpp/plan/row_bound.cc``) but computes no sensitivity.
All values are for adding or removing one privacy unit: a row, or all rows of a person. Replacing a
unit doubles ranges and sensitivities (:func:`replace_one`). This module reads no data. Proofs:
docs/proofs/sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .units import PERSON

BALLS = ("prediction", "row_weight")
"""Modes that scale both derivatives of a row together."""
# A utility is evaluated with an error of less than 16 units; four times that enlarges the range.
UTILITY_SLACK = 64
# Leaf values are released as integers; this integer is the sensitivity of a value.
OUTPUT_UNITS = 1 << 20
# The denominator of the exponential mechanism is range * 2^40 and must stay below 2^63.
MAX_RANGE = 1 << 23
# Number of equal-width cells of the label range; their counts give quantiles.
LABEL_CELLS = 64
_KINDS = ("binary", "regression", "targets", "multiclass", "cells", "range", "rows")


@dataclass(frozen=True)
class RowBound:
    """Contribution bound of one row, or all rows of a person, to the sums of one tree."""

    # BALLS: the pair is scaled so that g^2 + r h^2 <= C^2, by a factor that depends on the
    # prediction or by the norm of the row. "clip": |g| is clipped to C, and 0 <= h <= h_max.
    # "filter": like "clip", but rows with |g| > C are dropped.
    mode: str
    gradient_bound: float  # C > 0, in units of the gradient (regression: half widths of the range)
    hessian_weight: float  # r > 0, weight of h in the norm
    hessian_bound: float = 1.0  # h_max > 0, used by the modes "clip" and "filter"
    max_weight: float = 1.0  # public bound of row weights, > 0; 0 if no bound is declared
    unit_hessian: bool = False  # whether a row's weight replaces its Hessian
    max_rows_per_person: float = 1.0  # K >= 1: largest total weight of a person, in rows
    output_gradient: float = 1.0  # largest gradient of one of several outputs, in units of C
    output_hessian: float = 1.0  # largest sqrt(r) h of one of several outputs, in units of C
    of_person: bool = False  # whether the bound is for all rows of a person together

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> RowBound:
        """The bound that a plan enforces on rows or on persons."""
        bound = {f.name: plan["row_bound"][f.name] for f in fields(cls)[:-1]}
        for name, value in bound.items():  # plans encode real numbers as strings
            bound[name] = float(value) if isinstance(value, str) and name != "mode" else value
        return cls(**bound, of_person=plan["unit"] == PERSON)

    def __post_init__(self) -> None:
        if self.mode not in (*BALLS, "clip", "filter"):
            raise ValueError("`mode` must be 'prediction', 'row_weight', 'clip' or 'filter'.")
        positive = (self.gradient_bound, self.hessian_weight, self.hessian_bound)
        if not all(math.isfinite(v) and v > 0.0 for v in positive):
            raise ValueError("C, r and h_max must be positive and finite.")
        if not (math.isfinite(self.max_weight) and self.max_weight >= 0.0):
            raise ValueError("`max_weight` must be finite and at least 0.")
        if not (math.isfinite(self.max_rows_per_person) and self.max_rows_per_person >= 1.0):
            raise ValueError("`max_rows_per_person` must be finite and at least 1.")
        if not all(0.0 < v <= 1.0 for v in (self.output_gradient, self.output_hessian)):
            raise ValueError("The bounds of an output must lie in (0, 1].")

    @property
    def ball(self) -> bool:
        """Whether each row's pair is in the ball g^2 + r h^2 <= C^2."""
        return self.mode in BALLS

    def unit(self, grid_bits: int) -> int:
        """B = 2**grid_bits, the grid integer of the gradient bound C."""
        return 1 << grid_bits

    def max_hessian(self, grid_bits: int) -> int:
        """Hmax, the largest grid integer of sqrt(r) h of one row."""
        b = self.unit(grid_bits)
        if self.ball:
            return b
        ratio = math.sqrt(self.hessian_weight) * self.hessian_bound / self.gradient_bound
        return math.ceil(ratio * b)

    def most_gradient(self, grid_bits: int) -> int:
        r"""P = ceil(K B), the largest contribution of a person to a sum of \|g\|; B for rows."""
        return math.ceil(self.max_rows_per_person * self.unit(grid_bits))

    def most_hessian(self, grid_bits: int) -> int:
        """Largest contribution of a person to a sum of h: floor(P Hmax / B); Hmax for rows."""
        most = self.most_gradient(grid_bits) * self.max_hessian(grid_bits)
        return most // self.unit(grid_bits)

    def most_leaf_hessian(self, grid_bits: int) -> int:
        """Largest norm of the Hessian sums of a person with several rows, in spread leaves."""
        if self.ball:
            return -(-self.most_gradient(grid_bits) // 4)
        return self.most_hessian(grid_bits)

    def most_gradient_of_output(self, grid_bits: int) -> int:
        r"""Largest contribution of a privacy unit to a sum of \|g\| of one output."""
        b = self.unit(grid_bits)
        return self.most_gradient(grid_bits) * math.ceil(self.output_gradient * b) // b

    def tree_sens2(self, grid_bits: int) -> int:
        """Squared L2 sensitivity of (sum g, sum h) of one tree, in grid units."""
        p2 = self.most_gradient(grid_bits) ** 2
        return p2 if self.ball else p2 + self.most_hessian(grid_bits) ** 2

    def round_sens2(self, grid_bits: int, n_class: int = 1) -> int:
        """Squared L2 sensitivity of the leaf sums of all `n_class` trees of one round."""
        if n_class == 1 or self.mode == "prediction":
            return self.tree_sens2(grid_bits)
        if self.mode != "row_weight":
            raise ValueError("Several classes require the mode 'prediction' or 'row_weight'.")
        if self.of_person:  # the worst class may differ between their rows
            return n_class * self.tree_sens2(grid_bits)
        b = self.unit(grid_bits)
        most = n_class * b * b
        if self.unit_hessian or self.max_weight == 0.0:
            return most  # the bound below requires Hessians that vanish with p_k
        r = self.hessian_weight
        a = (
            (1.0 + 1e-5) * self.max_weight * math.sqrt(1.0 + 4.0 * r)
            + 1e-15 * n_class * math.sqrt(r)
        ) / self.gradient_bound
        if a >= n_class:
            return most
        return min(most, b * b + n_class + math.ceil(a * (b * b + 1.5 * b)))

    def spread_sens2(self, grid_bits: int, n_class: int = 1) -> int:
        """Squared L2 sensitivity of spread leaves together with a third of the sums of all rows."""
        s2 = self.round_sens2(grid_bits, n_class)
        several = self.most_gradient(grid_bits) ** 2 + self.most_leaf_hessian(grid_bits) ** 2
        # Each of the 2 K sums of all rows is rounded.
        return max(s2, several) + (math.isqrt(s2) // 3 + 2 * n_class + 1) ** 2

    def round_sens1(self, grid_bits: int, n_class: int = 1) -> int:
        """L1 sensitivity of the leaf sums of a round, in grid units."""
        if self.ball:
            return math.isqrt(leaf_coordinates(n_class) * self.round_sens2(grid_bits, n_class))
        return n_class * (self.most_gradient(grid_bits) + self.most_hessian(grid_bits))


def leaf_coordinates(n_class: int = 1) -> int:
    """Number of noisy leaf sums that one row touches in a round: G and H of one leaf per tree."""
    return 2 * n_class


def leaf_sens(release: str, row_bound: RowBound, grid_bits: int, n_class: int = 1) -> int:
    """L1 sensitivity of the leaves of all classes, for Laplace noise.

    "laplace" releases sums, in grid units. "output" releases leaf values, in units of 2**-20 of a
    value's sensitivity, with two additional units for rounding.
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
    """Range of a split utility: sup - inf of its change over all candidates, for one privacy unit.

    The result is in utility units: for C = 1, a utility of 1 is B = 2**grid_bits units. `tau`
    clips the leaf weight of "newton", in units of C. With `joint`, one selection serves the trees
    of all classes. The rows of a person may be anywhere in a tree of this depth, so the range
    includes the rounding of all cells of a level.
    """
    b = row_bound.most_gradient(grid_bits)
    cells = 1 << depth if row_bound.of_person else 1
    if score == "l1":
        if not joint:
            return 2 * row_bound.most_gradient_of_output(grid_bits)
        # Norms of joint trees are rounded, by at most 2 in each cell.
        return 2 * b + (2 * cells if row_bound.of_person else 0)
    if score == "newton":
        width = _newton_range(row_bound, grid_bits, tau)
        return math.ceil(width * b * (1.0 + 1e-12)) + UTILITY_SLACK * cells
    if score == "gain":
        if row_bound.of_person:
            raise ValueError("The score 'gain' has no proved range for persons.")
        if row_bound.ball or not unit_weights:
            raise ValueError(
                "The score 'gain' has a bounded range only if every row has the same Hessian: with "
                "squared error or gradient leaves, and without row weights. Use 'l1' or 'newton'."
            )
        return 4 * b + UTILITY_SLACK
    raise ValueError("`score` must be 'l1', 'newton' or 'gain'.")


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
    """Squared L2 sensitivity of candidate trees: L F 4^shift; a person adds 1 to each level."""
    return features * levels << (2 * shift)


def candidate_cells(edges: Sequence[int], levels: int, max_bin: int) -> int:
    """Largest number of sums in one release of candidates; 0 levels mean histograms on grids."""
    if levels:
        return len(edges) * ((1 << levels) - 1)
    # Moving edges never outnumber the larger of the present edges and the bins.
    return sum(max(n - 1, max_bin) for n in edges)


def feature_cells(features: Sequence[tuple[str, int]], max_bin: int, *, tree: bool) -> int:
    """Largest number of sums in the histogram of one feature at one node.

    Each feature is a pair: its kind, and its number of cuts, categories or edges.
    """
    cells = {
        "cuts": lambda size: size + 1,
        "categorical": lambda size: size,
        "private": lambda size: 4 * max_bin + 128 if tree else max(size, max_bin) + 2,
    }
    return max(cells[kind](size) for kind, size in features) + 1  # one for missing values


def intercept_sens2(kind: str, shift: int, **sums: Any) -> int:
    """Squared L2 sensitivity of label sums: 4^shift per touched sum; a person adds their mean."""
    return intercept_coordinates(kind, **sums) << (2 * shift)


def intercept_coordinates(
    kind: str,
    *,
    public_num_rows: bool,
    person: bool = False,
    k: int = 1,
    presence: bool = False,
    exposures: bool = False,
) -> int:
    """Number of label sums that one unit touches; labels, presences and exposures are in [-1, 1].

    "binary" and "regression" sum labels, and count rows unless their number is public; "targets"
    sums `k` labels. "multiclass" counts `k` classes, "cells" and "range" count cells of the label
    range, and "rows" counts only rows; a row is in one class or cell. "range" has `k` lists of
    cells, for labels and weights, and a row is in one cell of each list.
    """
    if kind not in _KINDS:
        raise ValueError(f"`kind` must be one of {', '.join(_KINDS)}.")
    if kind in ("cells", "range") and person:
        return LABEL_CELLS * (k if kind == "range" else 1)
    if kind == "multiclass" and person:
        return k
    labels = k if kind in ("targets", "range") else 1
    counted = not (kind in ("multiclass", "cells", "range", "rows") or public_num_rows)
    return labels + counted + presence + exposures


@dataclass(frozen=True)
class LabelSumSizes:
    """Sizes of the label sums that are released before the first tree."""

    kind: str
    shift: int  # sums are multiplied by 2**shift
    public_num_rows: bool  # whether the number of rows is public
    count: int  # classes, cells or targets
    presence: bool  # whether present cells are also summed
    exposures: bool  # whether exposures are also summed

    @classmethod
    def from_request(cls, request: Mapping[str, Any]) -> LabelSumSizes:
        """Read the sizes from a request in a plan."""
        kind = request["kind"]
        lists = sum(name in request for name in ("edges", "weight_edges"))
        if kind == "range" and request["num_class"] != LABEL_CELLS * lists:
            raise ValueError("The number of label or weight cells does not match the plan.")
        return cls(
            kind=kind,
            shift=request.get("shift", 0),
            public_num_rows="public_num_rows" in request,
            count=len(request["lower"]) if kind == "targets" else request["num_class"],
            presence="columns" in request,
            exposures="exposure_lower" in request and kind in ("regression", "cells"),
        )

    def measure(self, *, person: bool) -> tuple[int, int]:
        """Squared L2 sensitivity of the sums, and the number of sums that one unit can touch."""
        k = self.count // LABEL_CELLS if self.kind == "range" else self.count
        if self.kind == "range" and self.count not in (LABEL_CELLS, 2 * LABEL_CELLS):
            raise ValueError("The number of label or weight cells does not match the plan.")
        sums: dict[str, Any] = {"public_num_rows": self.public_num_rows, "k": k}
        sums |= {"presence": self.presence, "exposures": self.exposures}
        coordinates = intercept_coordinates(self.kind, person=person, **sums)
        if self.kind in ("cells", "range") and person:
            coordinates = max(coordinates, self.count)
        return intercept_sens2(self.kind, self.shift, **sums), coordinates


def columns_sens2(shift: int) -> int:
    """Squared L2 sensitivity of the sums by class and column; a row has L2 norm 2^shift."""
    return 1 << (2 * shift)


def correction_sens2() -> int:
    """Squared L2 sensitivity of the two sums of a correction of the mean.

    A row adds at most 2^18 to the sum of residuals, and at most 2^16 to the number or sum of
    predictions within the range. A person adds the mean of their rows.
    """
    return (1 << 36) + (1 << 32)


def replace_one(sens2: int) -> int:
    """Squared sensitivity to the replacement of a row: removal and addition double the norm."""
    return 4 * sens2
