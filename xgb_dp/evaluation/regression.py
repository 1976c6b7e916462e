"""Evaluation of a regression: errors within a declared bound, and the spread of the target.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyParameterError
from ..request.parse import parse_number
from .binary import scaled
from .figures import Figure
from .posterior import Solver
from .rows import Groups, Judged
from .table import Block, Released
from .values import Values, root_mean_square, value_cells, value_matrix

__all__ = ["Errors", "Regression"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_TARGET = 0.25  # of the squared norm of a row


@dataclass(frozen=True, eq=False)
class Errors:
    """What the released sums say about a regression, on one set of rows.

    An error is the prediction less the target. Errors beyond the declared bound count as the bound.

    Attributes:
        errors: The errors.
        target: The target, moved into its declared bounds; None where none are known.
        level: Probability with which each interval covers.
    """

    errors: Values
    target: Values | None
    level: float

    @property
    def rmse(self) -> Figure:
        """Root of the mean squared error."""
        return root_mean_square(self.errors)

    @property
    def mae(self) -> Figure:
        """Mean absolute error."""
        values = self.errors
        return values.figure(lambda counts: values.mean_of(counts, size=True), 0.0, values.half)

    @property
    def bias(self) -> Figure:
        """Mean error: above 0 where predictions are too large."""
        return self.errors.mean

    @property
    def r2(self) -> Figure:
        """Share of the variance of the target that is explained: 1 - MSE / variance.

        Raises:
            PrivacyParameterError: The bounds of the target are not known.
        """
        if self.target is None:
            raise PrivacyParameterError(
                "R^2 needs the bounds of the target: evaluate(..., target_bounds=(low, high))."
            )
        errors, target = self.errors, self.target

        def of(own: Floats, other: Floats) -> Floats:
            mean = target.mean_of(other)
            variance = np.maximum(target.mean_of(other, 2) - mean**2, _least(target))
            return np.asarray(1.0 - errors.mean_of(own, 2) / variance)

        value = float(of(errors.counts, target.counts))
        noise = float(np.std(of(errors.draws, target.draws)))
        spread = float(np.std(of(errors.sampled, target.sampled)))
        return Figure.around(value, spread, noise, self.level, high=1.0)

    def quantile(self, share: float) -> Figure:
        """The error below which a share of the rows lies; see :meth:`Values.quantile`."""
        return self.errors.quantile(share)

    def figures(self) -> dict[str, Figure]:
        """The plain figures by name."""
        out = {"rows": self.errors.rows, "rmse": self.rmse, "mae": self.mae, "bias": self.bias}
        if self.target is not None:
            out["r2"] = self.r2
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            out[f"error at {share:.0%}"] = self.quantile(share)
        return out


def _least(values: Values) -> float:
    return (values.half / 64.0) ** 2


@dataclass(frozen=True, eq=False)
class Regression:
    """What is released about a regression, and how it is read.

    Attributes:
        bound: Largest size of an error, in the unit of the target.
        target: Bounds of the target; None where none are known.
        groups: Declared groups.
        blocks: The table.
    """

    bound: float
    target: tuple[float, float] | None
    groups: Groups | None
    blocks: tuple[Block, ...]
    later: ClassVar[None] = None  # no second step

    @classmethod
    def of(
        cls,
        model: Judged,
        groups: Groups | None,
        error_bound: float | None,
        target: tuple[float, float] | None,
    ) -> Regression:
        """The blocks for a model. No row is looked at.

        Raises:
            PrivacyParameterError: No bound of errors is known.
        """
        known = model.public.get("target_bounds")
        if target is None and known:
            target = (float(known[0]), float(known[1]))
        if error_bound is None and target is None:
            raise PrivacyParameterError(
                "`error_bound` is missing: errors of a regression need a public bound beyond which "
                "they count as that. Give it in the unit of the target, or the bounds of the "
                "target as `target_bounds`, of whose width it is then a quarter."
            )
        bound = (
            (target[1] - target[0]) / 4.0
            if error_bound is None and target is not None
            else parse_number("error_bound", error_bound, low=0.0, open_low=True)
        )
        share = {"errors": 1.0} if target is None else {"errors": 1 - _TARGET, "target": _TARGET}
        if groups is not None:
            share = {name: value / 2.0 for name, value in share.items()}
        blocks = [Block(name, scaled(value_matrix(), value)) for name, value in share.items()]
        if groups is not None:
            copies = len(groups.names)
            blocks += [Block(f"{b.name} of groups", b.matrix, copies) for b in blocks]
        return cls(bound, target, groups, tuple(blocks))

    def cells(self, predictions: Floats, labels: Floats, groups: Ints | None) -> list[Ints]:
        """The cell of each row in each block."""
        with np.errstate(over="ignore", invalid="ignore"):
            own = [value_cells((predictions - labels) / self.bound)]
            if self.target is not None:
                middle, half = self._target_scale
                own.append(value_cells((labels - middle) / half))
        if groups is None:
            return own
        size = self.blocks[0].matrix.shape[1]
        return own + [cells + size * groups for cells in own]

    @property
    def _target_scale(self) -> tuple[float, float]:
        assert self.target is not None
        low, high = self.target
        return low + (high - low) / 2.0, (high - low) / 2.0

    def views(self, released: Released, level: float) -> tuple[Errors, Mapping[str, Errors]]:
        """Figures of all rows, and of each group."""
        per = 1 if self.target is None else 2
        solvers = [Solver.of(block.matrix) for block in self.blocks[:per]]
        scales = [(0.0, self.bound)]
        if self.target is not None:
            scales.append(self._target_scale)

        def view(sums: list[Floats], noise: float) -> Errors:
            found = [
                Values.of(solver, own, noise, *scale, level)
                for solver, own, scale in zip(solvers, sums, scales, strict=True)
            ]
            return Errors(found[0], found[1] if per == 2 else None, level)

        if self.groups is None:
            return view([s[0] for s in released.sums], released.noise), {}
        copies = len(self.groups.names)
        pairs = zip(released.sums[:per], released.sums[per:], strict=True)
        both = [(copies * a[0] + b.sum(axis=0)) / (copies + 1) for a, b in pairs]
        overall = view(both, released.noise * math.sqrt(copies / (copies + 1.0)))
        parts = released.sums[per:]
        return overall, {
            name: view([s[i] for s in parts], released.noise)
            for i, name in enumerate(self.groups.names)
        }
