"""Evaluation of a regression: sums over errors and targets, and what is read from them.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import PrivacyParameterError
from ..noisy_sums import Floats, Ints
from ..parameters.parse import parse_number
from ..request.objectives import OBJECTIVES
from .amounts import Means
from .grid import CELLS, tree_matrix, value_cells, value_points
from .kinds import Kind, scaled
from .limits import Limits, outside
from .posterior import Solver
from .regression_errors import ERRORS, JOINT, QUANTILE, TARGET, TREE, Errors
from .rows import Groups, Judged
from .values import FINE, FINE_UNIT, Moment, Moments, Values, moment_matrix, moment_weights

_OF_MEANS = {"errors": 0.3, "deviance": 0.3, "order": 0.4}  # of the squared norm of a row
_POWER = 3  # cells of the tree are fine around 0, where most errors lie
_FAR_WIDER = 4.0  # than the range in which labels were seen: noise then says more than the tail
_NARROWED = (
    " (the declared range is far wider than that in which the training saw labels; "
    "`target_bounds` sets others, such as the declared ones)"
)
_COARSE = 128  # cells of errors, and of targets, where both are looked at together


@dataclass(frozen=True, eq=False)
class Regression(Kind):
    """What is released about a regression, and how it is read."""

    bound: float  # largest size of an error, in the unit of the target
    target: tuple[float, float] | None  # bounds of the target
    groups: Groups | None
    # Whether its bounds follow from what the training released of the labels.
    narrowed: bool = False
    levels: tuple[float, ...] = ()  # of the quantiles that the model predicts
    means: Means | None = None  # for counts and amounts
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(
        cls,
        model: Judged,
        groups: Groups | None,
        error_bound: float | None,
        target: tuple[float, float] | None,
    ) -> Regression:
        """The blocks for a model. No row is looked at."""
        known, narrowed = model.public.get("target_bounds"), False
        if target is None and known:
            declared = (float(known[0]), float(known[1]))
            target = _around(model.public.get("target_seen", declared), declared)
            narrowed = target != declared
        if error_bound is not None:
            bound = parse_number("error_bound", error_bound, low=0.0, open_low=True)
        elif target is not None:
            bound = target[1] - target[0]
        else:
            raise PrivacyParameterError(
                "`target_bounds` is missing. The evaluation of a regression needs a public range "
                "of the target, e.g. target_bounds=(0, 100): the width of it bounds the errors. "
                "Without one, give `error_bound` in the unit of the target: larger errors count "
                "as this bound, and the figures are those of clipped errors."
            )
        means = None
        if model.objective in ("count:poisson", "reg:gamma", "reg:tweedie"):
            means = Means.of(model, model.objective, _labels_of(model.objective, target))
        limits = _limits(model, bound, target, means, narrowed=narrowed)
        return cls(bound, target, groups, narrowed, model.levels, means, limits)

    @property
    def _rest(self) -> float:
        """Share of the squared norm of a row that the sums of all rows have but for the limits."""
        return self.share * self.limits.rest

    @property
    def _within(self) -> tuple[float, float] | None:
        return self.target if self.narrowed else None

    @property
    def _moments(self) -> tuple[Moment, ...]:
        """The sums over errors, and over errors and target."""
        if self.levels:
            return QUANTILE
        return ERRORS if self.target is None else (*ERRORS, *TARGET, *JOINT)

    @property
    def _part(self) -> float:
        """The factor of their shares."""
        if self.levels:
            return self._rest / len(self.levels)
        of_errors = 1.0 if self.means is None else _OF_MEANS["errors"]
        return self._rest * of_errors / (TREE + sum(one.share for one in self._moments))

    def _tree(self) -> Ints:
        tree = tree_matrix(CELLS, 0.0, TREE * self._part)[1:]
        return np.rint(FINE_UNIT * tree).astype(np.int64)

    def _matrices(self) -> list[Ints]:
        part, points = self._part, value_points(1, FINE)
        limits = self.limits.matrices(self.share)
        if self.levels:
            return [moment_matrix(QUANTILE, points, part)] * len(self.levels) + limits
        matrices = [moment_matrix(ERRORS, points, part), self._tree()]
        if self.target is not None:
            coarse = value_points(1, _COARSE)
            both = np.stack([np.repeat(coarse, _COARSE), np.tile(coarse, _COARSE)])
            matrices.append(moment_matrix(TARGET, points, part))
            matrices.append(moment_matrix(JOINT, both, part))
        if self.means is not None:
            matrices.append(scaled(self.means.loss_matrix(), self._rest * _OF_MEANS["deviance"]))
            matrices.append(scaled(self.means.order_matrix(), self._rest * _OF_MEANS["order"]))
        return matrices + limits

    def _cells(self, predictions: Floats, labels: Floats) -> list[Ints]:
        outputs = predictions.T if predictions.ndim == 2 else [predictions]
        # Clamped as in a training, so that errors and target are about the same labels. Whether a
        # label is below a quantile is not clamped.
        target = None if self.levels else self.target
        inside = labels if target is None else np.clip(labels, *target)
        with np.errstate(over="ignore", invalid="ignore"):
            errors = [(output - inside) / self.bound for output in outputs]
        cells = [value_cells(error, 1, FINE) for error in errors]
        beyond = {"errors": np.any([outside(error, -1.0, 1.0) for error in errors], axis=0)}
        if self.levels:
            return cells + self.limits.cells(beyond)
        cells.append(value_cells(errors[0], _POWER))
        if self.target is not None:
            low, high = self.target
            beyond["labels"] = outside(labels, low, high)
            with np.errstate(over="ignore", invalid="ignore"):
                place = 2.0 * (inside - low) / (high - low) - 1.0
            cells.append(value_cells(place, 1, FINE))
            coarse = value_cells(errors[0], 1, _COARSE) * _COARSE
            cells.append(coarse + value_cells(place, 1, _COARSE))
        if self.means is not None:
            losses = self.means.losses(predictions, labels)
            beyond["deviances"] = outside(losses, 0.0, 1.0)
            cells.append(self.means.loss_cells(losses))
            cells.append(self.means.order_cells(predictions, labels))
        return cells + self.limits.cells(beyond)

    def _view(self, sums: list[Floats], noise: float, level: float) -> Errors:
        moments, weights = self._moments, moment_weights(self._moments, self._part)
        width = None if self.target is None else self.target[1] - self.target[0]
        clipped = width is None or self.bound < width or self.narrowed
        sums, beyond = (sums[:-1], sums[-1:]) if self.limits.texts else (sums, [])
        released = [sums[0], *(sums[2:4] if self.target is not None and not self.levels else ())]
        totals = Moments.read(moments, np.concatenate(released), noise, weights, level)
        rows = float(totals.totals[0]), float(totals.noise[0, 0])
        known: dict[str, Any] = {
            "beyond": self.limits.read(beyond, self.share, noise, rows, level),
            "within": self._within,
        }
        if self.levels:
            read = [Moments.read(moments, block, noise, weights, level) for block in sums]
            known["quantiles"] = dict(zip(self.levels, read, strict=True))
            return Errors(totals, None, self.bound, clipped, width, level, **known)
        solver = Solver.of(np.vstack([np.full((1, CELLS), weights[0]), self._tree()]))
        tree = np.concatenate([sums[0][:1], sums[1]])
        values = Values.of(solver, tree, noise, 0.0, self.bound, level, _POWER)
        if self.means is not None:
            matrix, share = self.blocks[len(sums) - 2].matrix, self._rest * _OF_MEANS["order"]
            square = self._square(totals)
            known |= {
                "losses": self.means.read_losses(sums[-2], noise, matrix, level),
                "order": self.means.read_order(sums[-1], noise, share, square, level),
            }
        return Errors(totals, values, self.bound, clipped, width, level, **known)

    def _square(self, sums: Moments) -> float:
        """Mean squared label."""
        assert self.target is not None
        low, high = self.target
        middle, half = low + (high - low) / 2.0, (high - low) / 2.0
        of = {"target 2": half**2, "target": 2.0 * middle * half, "rows": middle**2}
        return sums.total(of) / sums.count


def _around(seen: Sequence[float], declared: tuple[float, float]) -> tuple[float, float]:
    """Twice the range in which a training saw labels; the declared one unless it is far wider.

    Few labels that lie far away are not seen, so that figures within are those of clipped errors.
    """
    low, high = float(seen[0]), float(seen[1])
    margin = (high - low) / 2.0
    if declared[1] - declared[0] <= _FAR_WIDER * (high - low):
        return declared
    return max(declared[0], low - margin), min(declared[1], high + margin)


def _limits(
    model: Judged,
    bound: float,
    target: tuple[float, float] | None,
    means: Means | None,
    *,
    narrowed: bool,
) -> Limits:
    """What is clipped of a row; nothing where the objective has no other labels or errors."""
    texts: dict[str, str] = {}
    known = OBJECTIVES[model.objective]
    every = target is not None and target[0] <= known.lowest and known.highest <= target[1]
    if target is not None and not every and not model.levels:
        texts["labels"] = f"Labels below {target[0]:g} and above {target[1]:g} count as these"
        texts["labels"] += _NARROWED if narrowed else ""
    if not every or bound < known.highest - known.lowest:
        texts["errors"] = f"Errors beyond -{bound:g} and {bound:g} count as these"
    if means is not None:
        texts["deviances"] = (
            f"Predictions below {math.exp(means.low):g} and above {math.exp(means.high):g} count "
            f"as these in their order, and deviances above {means.most:g} count as that"
        )
    return Limits(texts)


def _labels_of(objective: str, target: tuple[float, float] | None) -> tuple[float, float]:
    """The range of the labels of counts or amounts."""
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
    return target
