"""Noisy sums of counts: what is released of an evaluation, and all that reads exact counts.

Every row lies in one cell of each block of the table, which public rules say, and adds the column
of that cell, whole numbers, to the sums of the block. The sums get discrete Gaussian noise. What
one row changes is the root of the sum, over the blocks, of the largest squared norm of a column.
Blocks of a second step may depend on what the first has released, within a norm fixed beforehand.

Proof: docs/proofs/evaluation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..accounting import GaussianEvent, make_accountant
from ..accounting.gaussian import gaussian_mu
from ..accounting.search import doubled, narrow
from ..engine.draws import discrete_gaussian
from ..errors import BudgetError, LedgerError

__all__ = ["Block", "Later", "Layout", "Released", "events_for", "release", "shift_for"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_SIGMA2 = 1 << 56  # of the sampler
_MOST_ENTRY = 1 << 15  # of a matrix, for sums of 2^32 rows within 64 bits
_LEAST_SHIFT, _MOST_SHIFT = 8, 16
_LARGEST_MU = 2.0**32  # beyond, the variance is 1 whatever the sums are
_STEPS = 12  # halvings of the search for the noise: a ten-thousandth of it
RELEASE = "evaluation"
"""Name of the release in ledgers and budgets."""


@dataclass(frozen=True, eq=False)
class Block:
    """Sums over the cells of one division of the rows.

    Attributes:
        name: What it is about.
        matrix: What a row in each cell adds to the sums, in grid units; (sums, cells).
        copies: So many divisions of the same kind, of which a row is in one: groups of rows.
    """

    name: str
    matrix: Ints
    copies: int = 1

    @property
    def cells(self) -> int:
        """Cells of all copies."""
        return self.matrix.shape[1] * self.copies

    @cached_property
    def norm2(self) -> int:
        """Squared norm of what one row adds at most."""
        return int((self.matrix.astype(np.int64) ** 2).sum(axis=0).max())

    def sums(self, cells: Ints, weights: Ints | None) -> Ints:
        """The exact sums: (copies, sums). They must get noise before anybody sees them."""
        inside = (cells >= 0) & (cells < self.cells)
        if not inside.all():
            cells = cells[inside]
            weights = None if weights is None else weights[inside]
        counts = np.zeros(self.cells, dtype=np.int64)
        np.add.at(counts, cells, 1 if weights is None else weights)
        return np.asarray(counts.reshape(self.copies, -1) @ self.matrix.T)


@dataclass(frozen=True)
class Later:
    """What a second step may release; fixed before the first.

    Attributes:
        norm2: Squared norm of what one row adds at most, in the unit of the blocks.
        sums: How many sums there are.
    """

    norm2: int
    sums: int


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks of a step; public.

    Attributes:
        blocks: In the order of the release.
        shift: A row of a person with m rows counts floor(2**shift / m); rows count 2**0.
        unit: "row" or "person".
        later: Room of a second step; None without one.
    """

    blocks: tuple[Block, ...]
    shift: int = 0
    unit: str = "row"
    later: Later | None = None

    @property
    def sensitivity2(self) -> int:
        """Squared L2 norm of what one row, or one person, adds to all sums."""
        for block in self.blocks:
            if not -_MOST_ENTRY < block.matrix.min() <= block.matrix.max() < _MOST_ENTRY:
                raise LedgerError(
                    "A row would count more than the sums of an evaluation can hold. Nothing of "
                    "this step was released. This is a defect of xgb_dp: please report it."
                )
        return sum(block.norm2 for block in self.blocks) << (2 * self.shift)

    @property
    def coordinates(self) -> int:
        """Sums that are released; a row may touch any."""
        return sum(block.matrix.shape[0] * block.copies for block in self.blocks)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """`sensitivity2` and `coordinates` of each step."""
        own = [(self.sensitivity2, self.coordinates)]
        if self.later is not None:
            own.append((self.later.norm2 << (2 * self.shift), self.later.sums))
        return own


@dataclass(frozen=True, eq=False)
class Released:
    """The noisy sums, and what is known about their noise.

    Attributes:
        layout: What was released.
        sums: (copies, sums) for each block, in the units of its matrix.
        noise: Standard deviation of the noise in the same unit.
        aimed: The second step, if there was one.
    """

    layout: Layout
    sums: tuple[Floats, ...]
    noise: float
    aimed: Released | None = None


def events_for(
    layout: Layout, epsilon: float, delta: float, group: int = 1
) -> tuple[GaussianEvent, ...]:
    """The releases of all steps, with the least noise that meets (epsilon, delta)."""

    steps = layout.steps
    whole = sum(norm2 for norm2, _ in steps)

    def events(mu: float) -> tuple[GaussianEvent, ...]:
        sigma2 = max(1, math.ceil(whole / min(mu, _LARGEST_MU) ** 2))
        return tuple(
            GaussianEvent(RELEASE, norm2, sigma2, sums, 1, unit=layout.unit)
            for norm2, sums in steps
        )

    def fits(factor: float) -> bool:
        own = make_accountant("exact", events(factor * guess))
        return own.get_epsilon(delta, group) <= epsilon

    guess = gaussian_mu(epsilon, delta) / group
    if not guess > 0.0 or events(guess)[0].sigma2 > _MOST_SIGMA2 // 4:
        raise BudgetError(
            "The noise of the evaluation would be above 2^14 rows: epsilon is too small. Nothing "
            "was released. Take a larger epsilon or delta."
        )
    low, high = doubled(lambda x: fits(x / 4.0))
    factor, _ = narrow(lambda x: fits(x / 4.0), low, high, _STEPS)
    if factor <= 0.0:
        raise BudgetError(
            f"No noise meets epsilon={epsilon:g}, delta={delta:g} for this evaluation. Nothing was "
            "released. Take a larger epsilon or delta."
        )
    return events(factor / 4.0 * guess)


def shift_for(layout: Layout, epsilon: float, delta: float, group: int = 1) -> int:
    """Bits of the weights of persons: so many that the noise fits the sampler, and 16 at most."""
    mu = gaussian_mu(epsilon, delta) / group
    whole = sum(norm2 for norm2, _ in layout.steps)
    room = math.log2(_MOST_SIGMA2 // 4) - math.log2(whole / min(mu, _LARGEST_MU) ** 2)
    return min(_MOST_SHIFT, max(_LEAST_SHIFT, math.floor(room / 2.0)))


def release(
    layout: Layout,
    events: Sequence[GaussianEvent],
    cells: Sequence[Ints],
    weights: Ints | None,
    aim: Callable[[Released], tuple[Block, ...]] | None = None,
    later: Sequence[Ints] | None = None,
) -> Released:
    """Draw the noise and release the sums. The exact ones leave this function in no form.

    Privacy: spends what `events` say.
    """
    event = events[0]
    if layout.sensitivity2 > event.sensitivity2 or layout.coordinates > event.coordinates:
        raise LedgerError(
            "An evaluation would release more than was booked. This is a defect of xgb_dp: please "
            "report it."
        )
    out = []
    for block, own in zip(layout.blocks, cells, strict=True):
        exact = block.sums(own, weights)
        noisy = exact + discrete_gaussian(event.sigma2, exact.size).reshape(exact.shape)
        out.append(noisy / float(1 << layout.shift))
    found = Released(layout, tuple(out), math.sqrt(event.sigma2) / (1 << layout.shift))
    if aim is None:
        return found
    second = replace(layout, blocks=aim(found), later=None)
    places = cells if later is None else later
    return replace(found, aimed=release(second, events[1:], places, weights))
