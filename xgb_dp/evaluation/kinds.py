"""What the evaluations of all kinds of models share: groups, and the smallest noise that fits."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..accounting import GaussianEvent, make_accountant
from ..accounting.curve import doubled, narrow
from ..accounting.gaussian import gaussian_mu
from ..errors import BudgetError
from ..noisy_sums import MOST_SIGMA2, Block, Floats, Ints, Later, Layout, NoisySums
from .report import EvaluationReport
from .rows import Groups, Judged

_LEAST_SHIFT, _MOST_SHIFT = 8, 16
_LARGEST_MU = 2.0**32  # beyond, the variance is 1 whatever the sums are
_STEPS = 12  # halvings of the search for the noise: a ten-thousandth of it


def scaled(matrix: Ints, share: float) -> Ints:
    """A matrix of a block with a share of the squared norm."""
    return np.asarray(np.rint(matrix * math.sqrt(share)), dtype=np.int64)


class ModelKind(ABC):
    """What is released about one kind of model, and how it is read.

    With groups, all rows and the groups have half of the squared norm of a row each.
    """

    groups: Groups | None
    aimed: Any = None  # makes the blocks of a second step from what the first has released

    @property
    def later(self) -> Later | None:
        """Room of a second step."""
        return None

    @property
    def share(self) -> float:
        """Share of the squared norm of a row that the blocks of all rows have."""
        return 1.0 if self.groups is None else 0.5

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of all rows, and the same for groups."""
        blocks = tuple(map(Block, self._matrices()))
        if self.groups is None:
            return blocks
        return (*blocks, *(Block(b.matrix, len(self.groups.names)) for b in blocks))

    @abstractmethod
    def _matrices(self) -> list[Ints]:
        """Of the blocks of all rows."""

    def cells(self, predictions: Any, labels: Floats, groups: Ints | None = None) -> list[Ints]:
        """The cell of each row in each block."""
        cells = self._cells(predictions, labels)
        if groups is None:
            return cells
        widths = (block.matrix.shape[1] for block in self.blocks)
        return cells + [c + width * groups for c, width in zip(cells, widths, strict=False)]

    @abstractmethod
    def _cells(self, predictions: Any, labels: Floats) -> list[Ints]:
        """The cell of each row in each block of all rows."""

    def later_cells(self, predictions: Any, labels: Floats) -> list[Ints] | None:
        """The cells of a second step; None for those of the first."""
        return None

    def views(self, released: NoisySums, level: float) -> tuple[Any, Mapping[str, Any]]:
        """Figures of all rows, and of each group."""
        overall, *by_group = self._each(released, level)
        names = () if self.groups is None else self.groups.names
        return overall, dict(zip(names, by_group, strict=True))

    def _each(self, released: NoisySums, level: float) -> list[Any]:
        """Figures of all rows, then of each group."""
        return [self._view(s, released.noise * part, level) for s, part in self._sets(released)]

    def _view(self, sums: list[Floats], noise: float, level: float) -> Any:
        """Figures of one set of rows, from the sums of all blocks."""
        raise NotImplementedError

    def report(self, released: NoisySums, cost: Any, level: float, model: Judged) -> Any:
        """Figures of all rows and of each group, with what they cost."""
        overall, by_group = self.views(released, level)
        return EvaluationReport(model.kind, overall, by_group, cost, level, model.trees)

    def _sets(self, released: NoisySums) -> list[tuple[list[Floats], float]]:
        """Sums of all rows and of each group, with the part of the noise that they have."""
        if self.groups is None:
            return [([sums[0] for sums in released.sums], 1.0)]
        copies, per = len(self.groups.names), len(self.blocks) // 2
        every, parts = released.sums[:per], released.sums[per:]
        # All rows were counted twice: at once, and as the sum of their groups with more noise.
        both = [
            (copies * a[0] + b.sum(axis=0)) / (copies + 1)
            for a, b in zip(every, parts, strict=True)
        ]
        by_group = [([sums[i] for sums in parts], 1.0) for i in range(copies)]
        return [(both, math.sqrt(copies / (copies + 1.0))), *by_group]

    def layout(self, epsilon: float, delta: float, group: int, *, persons: bool) -> Layout:
        """What is released, of rows or persons."""
        layout = Layout(self.blocks, later=self.later)
        if not persons:
            return layout
        return replace(layout, shift=shift_for(layout, epsilon, delta, group), unit="person")


def events_for(
    layout: Layout, epsilon: float, delta: float, group: int = 1
) -> tuple[GaussianEvent, ...]:
    """The releases of all steps, with the least noise that meets (epsilon, delta)."""

    def events(mu: float) -> tuple[GaussianEvent, ...]:
        norm2 = sum(event.sensitivity2 for event in unit_noise)
        sigma2 = max(1, math.ceil(norm2 / min(mu, _LARGEST_MU) ** 2))
        return tuple(replace(event, sigma2=sigma2) for event in unit_noise)

    def fits(factor: float) -> bool:
        accountant = make_accountant("exact", events(factor / 4.0 * guess))
        return accountant.get_epsilon(delta, group) <= epsilon

    unit_noise = layout.events(1)
    guess = gaussian_mu(epsilon, delta) / group
    if not guess > 0.0 or events(guess)[0].sigma2 > MOST_SIGMA2 // 4:
        raise BudgetError(
            "The noise of the evaluation would be above 2^14 rows: epsilon is too small. Nothing "
            "was released. Take a larger epsilon or delta."
        )
    factor, _ = narrow(fits, *doubled(fits), _STEPS)
    if factor <= 0.0:
        raise BudgetError(
            f"No noise meets epsilon={epsilon:g}, delta={delta:g} for this evaluation. Nothing was "
            "released. Take a larger epsilon or delta."
        )
    return events(factor / 4.0 * guess)


def shift_for(layout: Layout, epsilon: float, delta: float, group: int = 1) -> int:
    """Bits of the weights of persons: so many that the noise fits the sampler, and 16 at most."""
    mu = gaussian_mu(epsilon, delta) / group
    norm2 = sum(event.sensitivity2 for event in layout.events(1))
    room = math.log2(MOST_SIGMA2 // 4) - math.log2(norm2 / min(mu, _LARGEST_MU) ** 2)
    return min(_MOST_SHIFT, max(_LEAST_SHIFT, math.floor(room / 2.0)))
