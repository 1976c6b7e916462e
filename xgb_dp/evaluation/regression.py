"""Evaluation of a regression: errors within a declared bound, and the spread of the target.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyParameterError
from ..request.objectives import OBJECTIVES
from ..request.parse import parse_number
from .binary import scaled
from .figure import Figure
from .grid import CELLS, UNIT
from .means import UNIT as OF_MEANS
from .means import Losses, Means, Order, loss_matrix
from .posterior import Solver
from .rows import Groups, Judged
from .table import Block, Released
from .values import Values, root_mean_square, value_cells, value_matrix

__all__ = ["Errors", "Regression"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_TARGET = 0.25  # of the squared norm of a row
_OF_MEANS = {"errors": 0.15, "target": 0.15, "deviance": 0.3, "order": 0.4}


@dataclass(frozen=True, eq=False)
class Errors:
    """What the released sums say about a regression, on one set of rows.

    An error is the prediction less the target. Errors beyond the declared bound count as the bound.

    Attributes:
        errors: The errors; of several quantiles those of the first one.
        target: The target, moved into its declared bounds; None where none are known.
        level: Probability with which each interval covers.
        quantiles: The errors of each quantile that the model predicts, by its level.
        losses: Deviances of counts and amounts; None for others.
        order: Counts and amounts by the order of their predictions; None for others.

    Examples:
        >>> amounts = xgb.DMatrix(table, 10 * table[:, 0])
        >>> squared = {**params, "objective": "reg:squarederror", "dp_target_bounds": (0, 10)}
        >>> trained = xgb.train(squared, amounts, 5)
        >>> report = xgb_dp.evaluate(trained, amounts, epsilon=0.5, delta=1e-6)
        >>> float(report.overall.rmse) < 2.5  # of amounts whose deviation is 2.9
        True
    """

    errors: Values
    target: Values | None
    level: float
    quantiles: Mapping[float, Values] = field(default_factory=dict)
    losses: Losses | None = None
    order: Order | None = None

    @property
    def rmse(self) -> Figure:
        """Root of the mean squared error."""
        return root_mean_square(self.errors)

    @property
    def mae(self) -> Figure:
        """Mean absolute error."""
        values = self.errors
        return values.mean_figure(values.points_of(size=True), 0.0, values.half)

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
                "R^2 needs the bounds of the target, and this evaluation had none. Give "
                "evaluate(..., target_bounds=(low, high))."
            )
        errors, target = self.errors, self.target

        def parts(own: Floats, other: Floats) -> Floats:
            variance = target.mean_of(other, 2) - target.mean_of(other) ** 2
            return np.stack([errors.mean_of(own, 2), variance], axis=-1)

        share = Figure.quotient(
            parts(errors.counts, target.counts),
            np.cov(parts(errors.draws, target.draws), rowvar=False),
            np.cov(parts(errors.sampled, target.sampled), rowvar=False),
            self.level,
            low=0.0,
        )
        return share.moved(lambda left: 1.0 - left)

    def quantile(self, share: float) -> Figure:
        """The error below which a share of the rows lies; see :meth:`Values.quantile`."""
        return self.errors.quantile(share)

    def _of_level(self, level: float | None) -> tuple[float, Values]:
        if level is None and len(self.quantiles) == 1:
            [level] = self.quantiles
        values = None if level is None else self.quantiles.get(level)
        if level is None or values is None:
            raise PrivacyParameterError(
                "`level` must be one of the levels that the model predicts: "
                f"{', '.join(f'{q:g}' for q in self.quantiles) or 'it predicts no quantiles'}."
            )
        return level, values

    def pinball_loss(self, level: float | None = None) -> Figure:
        """Mean check loss of a quantile.

        Args:
            level: Of the quantile; not needed for a model of one.

        Raises:
            PrivacyParameterError: The model does not predict this quantile.
        """
        level, values = self._of_level(level)

        points = 0.5 * values.points_of(size=True) + (0.5 - level) * values.points
        return values.mean_figure(points, 0.0, values.half)

    def coverage(self, level: float | None = None) -> Figure:
        """Share of the rows whose label is at most the quantile; see :meth:`pinball_loss`."""
        _, values = self._of_level(level)

        return values.mean_figure((np.arange(CELLS) >= CELLS // 2).astype(float), 0.0, 1.0)

    @property
    def deviance(self) -> Figure:
        """Mean deviance of counts or amounts; see :meth:`Order.deviance_saved`."""
        return self._of_means("deviance", self.losses).mean

    @property
    def gini(self) -> Figure:
        """See :meth:`Order.gini`."""
        return self._of_means("gini", self.order).gini

    @property
    def mean_ratio(self) -> Figure:
        """See :meth:`Order.mean_ratio`."""
        return self._of_means("mean_ratio", self.order).mean_ratio

    @property
    def deviance_saved(self) -> Figure:
        """See :meth:`Order.deviance_saved`."""
        return self._of_means("deviance_saved", self.order).deviance_saved

    def lift(self, shares: int = 10) -> list[tuple[float, float]]:
        """See :meth:`Order.lift`."""
        return self._of_means("lift", self.order).lift(shares)

    def _of_means(self, name: str, found: Any) -> Any:
        if found is None:
            raise PrivacyParameterError(
                f"`{name}` exists for models of count:poisson, reg:gamma and reg:tweedie only. "
                "Evaluate such a model, or use another figure."
            )
        return found

    def figures(self) -> dict[str, Figure]:
        """The plain figures by name."""
        if self.quantiles:
            out = {"rows": self.errors.rows}
            for level in self.quantiles:
                out[f"coverage of {level:g}"] = self.coverage(level)
                out[f"pinball loss of {level:g}"] = self.pinball_loss(level)
            return out
        out = {"rows": self.errors.rows, "rmse": self.rmse, "mae": self.mae, "bias": self.bias}
        if self.target is not None:
            out["r2"] = self.r2
        if self.order is not None:
            out |= {"deviance": self.deviance, "deviance saved": self.deviance_saved}
            out |= {"gini": self.gini, "mean ratio": self.mean_ratio}
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            out[f"error at {share:.0%}"] = self.quantile(share)
        return out


@dataclass(frozen=True, eq=False)
class Regression:
    """What is released about a regression, and how it is read.

    Attributes:
        bound: Largest size of an error, in the unit of the target.
        target: Bounds of the target; None where none are known.
        groups: Declared groups.
        blocks: The table.
        levels: Of the quantiles that the model predicts; empty for other models.
        means: For counts and amounts; None for others.
    """

    bound: float
    target: tuple[float, float] | None
    groups: Groups | None
    blocks: tuple[Block, ...]
    levels: tuple[float, ...] = ()
    means: Means | None = None
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
            PrivacyParameterError: No bound of errors is known, or no range that the labels of the
                objective can have.
        """
        objective, levels = model.objective, model.levels
        known = model.public.get("target_bounds")
        if target is None and known:
            target = (float(known[0]), float(known[1]))
        if error_bound is None and target is None:
            raise PrivacyParameterError(
                "`error_bound` is missing. The evaluation of a regression needs a public bound "
                "of the errors; larger errors count as this bound. Give it in the unit of the "
                "target. Or give the bounds of the target as `target_bounds`: the bound is then "
                "a quarter of their width."
            )
        bound = (
            (target[1] - target[0]) / 4.0
            if error_bound is None and target is not None
            else parse_number("error_bound", error_bound, low=0.0, open_low=True)
        )
        means = None
        if objective in ("count:poisson", "reg:gamma", "reg:tweedie"):
            if target is None:
                raise PrivacyParameterError(
                    f"`target_bounds` is missing: the figures of {objective} need a public range "
                    "of the labels, e.g. target_bounds=(0, 10)."
                )
            if target[0] < OBJECTIVES[objective].lowest:
                raise PrivacyParameterError(
                    f"`target_bounds` must begin at 0 or later: labels of {objective} are not "
                    "negative. Give their public range, e.g. target_bounds=(0, 10)."
                )
            means = Means.of(model, objective, target)
        share = {"errors": 1.0} if target is None else {"errors": 1 - _TARGET, "target": _TARGET}
        if means is not None:
            share = dict(_OF_MEANS)
        if groups is not None:
            share = {name: value / 2.0 for name, value in share.items()}
        # The finer grid of small labels is that of all blocks, which have one noise.
        finer = 1 if means is None else OF_MEANS // UNIT
        errors = scaled(finer * value_matrix(), share["errors"] / max(len(levels), 1))
        names = [f"errors of {level:g}" for level in levels] or ["errors"]
        blocks = [Block(name, errors) for name in names]
        if target is not None:
            blocks.append(Block("target", scaled(finer * value_matrix(), share["target"])))
        if means is not None:
            blocks.append(Block("deviance", scaled(loss_matrix(), share["deviance"])))
            blocks.append(Block("order", scaled(means.matrix(), share["order"])))
        if groups is not None:
            copies = len(groups.names)
            blocks += [Block(f"{b.name} of groups", b.matrix, copies) for b in blocks]
        return cls(bound, target, groups, tuple(blocks), levels, means)

    def cells(self, predictions: Floats, labels: Floats, groups: Ints | None) -> list[Ints]:
        """The cell of each row in each block."""
        outputs = predictions.T if predictions.ndim == 2 else [predictions]
        with np.errstate(over="ignore", invalid="ignore"):
            own = [value_cells((output - labels) / self.bound) for output in outputs]
            if self.target is not None:
                middle, half = self._target_scale
                own.append(value_cells((labels - middle) / half))
        if self.means is not None:
            own.append(self.means.losses(predictions, labels))
            own.append(self.means.cells(predictions, labels))
        if groups is None:
            return own
        sizes = (block.matrix.shape[1] for block in self.blocks)
        return own + [cells + size * groups for cells, size in zip(own, sizes, strict=False)]

    @property
    def _target_scale(self) -> tuple[float, float]:
        assert self.target is not None
        low, high = self.target
        return low + (high - low) / 2.0, (high - low) / 2.0

    def views(self, released: Released, level: float) -> tuple[Errors, Mapping[str, Errors]]:
        """Figures of all rows, and of each group."""
        outputs = max(len(self.levels), 1)
        per = len(self.blocks) // (1 if self.groups is None else 2)
        bounded = outputs if self.target is None else outputs + 1
        solvers = [Solver.of(block.matrix) for block in self.blocks[:bounded]]
        scales = [(0.0, self.bound)] * outputs
        if self.target is not None:
            scales.append(self._target_scale)

        def view(sums: list[Floats], noise: float) -> Errors:
            found = [
                Values.of(solver, own, noise, *scale, level, seed=seed)
                for seed, (solver, own, scale) in enumerate(
                    zip(solvers, sums, scales, strict=False)
                )
            ]
            target = None if self.target is None else found[outputs]
            by_level = dict(zip(self.levels, found, strict=False))
            losses = order = None
            if self.means is not None:
                assert target is not None
                share = _OF_MEANS["order"] * (1.0 if self.groups is None else 0.5)
                matrix = self.blocks[per - 2].matrix
                losses = Losses.read(sums[-2], noise, matrix, self.means.most, level)
                order = self.means.read(sums[-1], noise, share, target, level)
            return Errors(found[0], target, level, by_level, losses, order)

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
