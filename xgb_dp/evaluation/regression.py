"""Evaluation of a regression: sums over errors and targets, and what is read from them.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyParameterError
from ..parameters.parse import parse_number
from ..request.objectives import OBJECTIVES
from .binary import scaled
from .errors import ERRORS, JOINT, QUANTILE, TARGET, TREE, Errors
from .grid import CELLS, tree_matrix
from .means import Losses, Means, loss_matrix
from .moments import UNIT, Moment, Moments, fine_cells, fine_points, moment_matrix
from .posterior import Solver
from .rows import Groups, Judged
from .table import Block, Released
from .values import Values, value_cells

__all__ = ["Errors", "Regression"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_OF_MEANS = {"errors": 0.3, "deviance": 0.3, "order": 0.4}  # of the squared norm of a row
_POWER = 3  # cells of the tree are fine around 0, where most errors lie
_COARSE = 128  # cells of errors, and of targets, where both are looked at together


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
        """The blocks for a model. No row is looked at."""
        objective, levels = model.objective, model.levels
        known = model.public.get("target_bounds")
        if target is None and known:
            target = (float(known[0]), float(known[1]))
        if error_bound is None and target is None:
            raise PrivacyParameterError(
                "`target_bounds` is missing. The evaluation of a regression needs a public range "
                "of the target, e.g. target_bounds=(0, 100): the width of it bounds the errors. "
                "Without one, give `error_bound` in the unit of the target: larger errors count "
                "as this bound, and the figures are those of clipped errors."
            )
        bound = (
            target[1] - target[0]
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
        plan = cls(bound, target, groups, (), levels, means)
        return replace(plan, blocks=plan._table())

    @property
    def _half(self) -> float:
        """Share of the squared norm of a row that all rows have, and so have the groups."""
        return 1.0 if self.groups is None else 0.5

    @property
    def _parts(self) -> tuple[tuple[Moment, ...], float]:
        """The sums over errors and target, and the factor of their shares."""
        if self.levels:
            return QUANTILE, self._half / len(self.levels)
        moments = ERRORS if self.target is None else (*ERRORS, *TARGET, *JOINT)
        whole = TREE + sum(one.share for one in moments)
        own = 1.0 if self.means is None else _OF_MEANS["errors"]
        return moments, self._half * own / whole

    def _tree(self) -> Ints:
        tree = tree_matrix(CELLS, 0.0, TREE * self._parts[1])[1:]
        return np.rint(UNIT * tree).astype(np.int64)

    def _table(self) -> tuple[Block, ...]:
        part, points = self._parts[1], fine_points()
        if self.levels:
            own = moment_matrix(QUANTILE, points, part)
            blocks = [Block(f"errors of {level:g}", own) for level in self.levels]
        else:
            blocks = [Block("errors", moment_matrix(ERRORS, points, part))]
            blocks.append(Block("order of errors", self._tree()))
        if not self.levels and self.target is not None:
            coarse = (np.arange(_COARSE) + 0.5) * (2.0 / _COARSE) - 1.0
            both = np.stack([np.repeat(coarse, _COARSE), np.tile(coarse, _COARSE)])
            blocks.append(Block("target", moment_matrix(TARGET, points, part)))
            blocks.append(Block("errors by target", moment_matrix(JOINT, both, part)))
        if self.means is not None:
            order = scaled(self.means.matrix(), self._half * _OF_MEANS["order"])
            loss = scaled(loss_matrix(), self._half * _OF_MEANS["deviance"])
            blocks += [Block("deviance", loss), Block("order", order)]
        if self.groups is not None:
            copies = len(self.groups.names)
            blocks += [Block(f"{b.name} of groups", b.matrix, copies) for b in blocks]
        return tuple(blocks)

    def cells(self, predictions: Floats, labels: Floats, groups: Ints | None) -> list[Ints]:
        """The cell of each row in each block."""
        outputs = predictions.T if predictions.ndim == 2 else [predictions]
        # Clamped as in a training, so that errors and target are about the same labels.
        inside = labels if self.target is None else np.clip(labels, *self.target)
        with np.errstate(over="ignore", invalid="ignore"):
            errors = [(output - inside) / self.bound for output in outputs]
        own = [fine_cells(error) for error in errors]
        if not self.levels:
            own.append(value_cells(errors[0], _POWER))
        if not self.levels and self.target is not None:
            low, high = self.target
            with np.errstate(over="ignore", invalid="ignore"):
                place = 2.0 * (inside - low) / (high - low) - 1.0
            own.append(fine_cells(place))
            own.append(fine_cells(errors[0], _COARSE) * _COARSE + fine_cells(place, _COARSE))
        if self.means is not None:
            own.append(self.means.losses(predictions, labels))
            own.append(self.means.cells(predictions, labels))
        if groups is None:
            return own
        sizes = (block.matrix.shape[1] for block in self.blocks)
        return own + [cells + size * groups for cells, size in zip(own, sizes, strict=False)]

    def views(self, released: Released, level: float) -> tuple[Errors, Mapping[str, Errors]]:
        """Figures of all rows, and of each group."""
        if self.groups is None:
            return self._view([s[0] for s in released.sums], released.noise, level), {}
        copies, per = len(self.groups.names), len(self.blocks) // 2
        pairs = zip(released.sums[:per], released.sums[per:], strict=True)
        both = [(copies * a[0] + b.sum(axis=0)) / (copies + 1) for a, b in pairs]
        overall = self._view(both, released.noise * math.sqrt(copies / (copies + 1.0)), level)
        parts = released.sums[per:]
        return overall, {
            name: self._view([s[i] for s in parts], released.noise, level)
            for i, name in enumerate(self.groups.names)
        }

    def _view(self, sums: list[Floats], noise: float, level: float) -> Errors:
        """Figures of one set of rows, from the sums of all blocks."""
        moments, part = self._parts
        width = None if self.target is None else self.target[1] - self.target[0]
        clipped = width is None or self.bound < width
        if self.levels:
            read = [Moments.read(moments, own, noise, part, level) for own in sums]
            by_level = dict(zip(self.levels, read, strict=True))
            return Errors(read[0], None, self.bound, clipped, width, level, by_level)
        released = [sums[0], *(sums[2:4] if self.target is not None else ())]
        read_all = Moments.read(moments, np.concatenate(released), noise, part, level)
        root = UNIT * math.sqrt(part * ERRORS[0].share)
        solver = Solver.of(np.vstack([np.full((1, CELLS), root), self._tree()]))
        tree = np.concatenate([sums[0][:1], sums[1]])
        values = Values.of(solver, tree, noise, 0.0, self.bound, level, _POWER)
        losses = order = None
        if self.means is not None:
            last = self.blocks[len(sums) - 2].matrix
            losses = Losses.read(sums[-2], noise, last, self.means.most, level)
            share = self._half * _OF_MEANS["order"]
            order = self.means.read(sums[-1], noise, share, self._square(read_all), level)
        return Errors(
            read_all, values, self.bound, clipped, width, level, losses=losses, order=order
        )

    def _square(self, sums: Moments) -> float:
        """Mean squared label."""
        assert self.target is not None
        low, high = self.target
        middle, half = low + (high - low) / 2.0, (high - low) / 2.0
        of = {"target 2": half**2, "target": 2.0 * middle * half, "rows": middle**2}
        return sums.total(of) / sums.count
